// What modules are asked, by visits.
#include <algorithm>
#include <ostream>
#include <vector>

#include "base/error.h"
#include "ir/node.h"
#include "ir/watch.h"
#include "tenon/nn/parameters.h"
#include "tenon/ops.h"
#include "transforms/backward.h"

namespace tn::nn {

namespace {

template <class F>
struct EachTensor : Visitor {
  F f;
  explicit EachTensor(F f) : f(std::move(f)) {}
  void tensor(const Slot& slot) override { f(slot); }
};

template <class F>
void each_tensor(const Visit& model, F f) {
  EachTensor<F> visitor(std::move(f));
  model(visitor);
}

template <class F>
struct EachModule : Visitor {
  F f;
  explicit EachModule(F f) : f(std::move(f)) {}
  void module(const Path& path, ModuleBase& module) override { f(path, module); }
};

template <class F>
void each_module(const Visit& model, F f) {
  EachModule<F> visitor(std::move(f));
  model(visitor);
}

void add(TensorMap& tensors, const Slot& slot) {
  auto [at, is_new] = tensors.emplace(slot.path.dotted(), slot.tensor);
  if (!is_new) fail("fields: two tensors have the name {}", at->first);
}

/// An error in a module, and where in the modules around it that is.
class ModuleError : public UserError {
 public:
  ModuleError(Fault fault, const ModuleBase& outermost, std::string path, std::string text)
      : UserError(fault, path.empty() ? text : format("model.{}: {}", path, text)),
        outermost(&outermost),
        path(std::move(path)),
        text(std::move(text)) {}

  const ModuleBase* outermost;  // only compared
  std::string path, text;       // inside that
};

}  // namespace

TensorMap tensors_in(const Visit& model) {
  TensorMap all;
  each_tensor(model, [&](const Slot& slot) {
    if (slot.tensor.defined()) add(all, slot);
  });
  return all;
}

TensorMap trainable_in(const Visit& model) {
  TensorMap all;
  each_tensor(model, [&](const Slot& slot) {
    if (slot.is_trainable()) add(all, slot);
  });
  return all;
}

namespace {

template <class F>
void put_with(const Visit& model, const TensorMap& tensors, F put) {
  std::set<std::string> unknown;
  for (const auto& [name, tensor] : tensors) unknown.insert(name);
  each_tensor(model, [&](const Slot& slot) { unknown.erase(slot.path.dotted()); });
  if (!unknown.empty()) fail("update: the model has no {}", join(unknown, ", "));
  each_tensor(model, [&](const Slot& slot) {
    if (auto found = tensors.find(slot.path.dotted()); found != tensors.end())
      put(slot.tensor, found->second);
  });
}

void renew(Tensor& variable, const Tensor& value) {
  bool required = variable.defined() && is_variable(*variable.node());
  if (required && value.defined() && type_of(variable) == type_of(value))
    return rebind(variable, value);
  variable = value;
  if (required && value.defined()) require_grad(variable);
}

}  // namespace

void put(const Visit& model, const TensorMap& tensors) {
  put_with(model, tensors, [](Tensor& to, const Tensor& value) { to = value; });
}

void update(const Visit& model, const TensorMap& tensors) { put_with(model, tensors, renew); }

// Parameters -----------------------------------------------------------------------------------

Parameters::Parameters(Visit model) : visit_(std::move(model)) {
  each_tensor(visit_, [&](const Slot& slot) {
    if (slot.tensor.defined() && !slot.is_buffer)
      list_.push_back({slot.path.dotted(), slot.tensor});
  });
}

Parameters::operator TensorMap() const {
  TensorMap all;
  for (const Parameter& each : list_) all.emplace(each.name, each.tensor);
  return all;
}

std::vector<Parameter> trained_in(const Visit& model) {
  std::vector<Parameter> all;
  each_tensor(model, [&](const Slot& slot) {
    bool trained = slot.owner ? slot.is_trainable() : slot.tensor.defined();
    if (trained && is_inexact(slot.tensor.dtype()))
      all.push_back({slot.path.dotted(), slot.tensor});
  });
  return all;
}

std::string text_of(const Visit& model) {
  std::vector<std::pair<std::string, std::string>> lines;
  size_t width = 0;
  int64_t trained = 0;
  each_tensor(model, [&](const Slot& slot) {
    if (!slot.tensor.defined()) return;
    std::string text = to_text(*type_of(slot.tensor));
    if (slot.is_trainable())
      trained += slot.tensor.size();
    else
      text += slot.is_buffer ? "  buffer" : "  frozen";
    lines.emplace_back(slot.path.dotted(), std::move(text));
    width = std::max(width, lines.back().first.size());
  });
  std::string all;
  for (const auto& [name, text] : lines) all += format("{:{}}  {}\n", name, width, text);
  return all + format("{} trainable elements", trained);
}

std::ostream& print(std::ostream& out, const Visit& model) { return out << text_of(model); }

void set_training(const Visit& model, bool training) {
  each_module(model, [&](const Path&, ModuleBase& module) { module.training = training; });
}

void set_frozen(const Visit& model, const std::set<std::string>& names, bool frozen) {
  each_tensor(model, [&](const Slot& slot) {
    std::string field(slot.field);
    if (slot.is_buffer || (!names.empty() && !names.contains(field))) return;
    if (frozen)
      slot.owner->frozen.insert(field);
    else
      slot.owner->frozen.erase(field);
  });
}

void fail_in(const Visit& model, const ModuleBase& base, const UserError& error) {
  const auto* inside = dynamic_cast<const ModuleError*>(&error);
  if (!inside) throw ModuleError(error.fault(), base, "", error.what());
  std::string path;
  each_module(model, [&](const Path& at, ModuleBase& module) {
    if (&module == inside->outermost) path = at.accessed();
  });
  std::string dot = path.empty() || inside->path.empty() ? "" : ".";
  throw ModuleError(error.fault(), base, path + dot + inside->path, inside->text);
}

}  // namespace tn::nn
