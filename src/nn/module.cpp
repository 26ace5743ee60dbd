// What modules are asked, by visits.
#include <algorithm>
#include <mutex>
#include <ostream>
#include <vector>

#include "base/error.h"
#include "ir/node.h"
#include "ir/place.h"
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
  void module(const Path& path, ModuleBase& module, VisitModule*) override { f(path, module); }
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

TensorMap tensors_in(const Visit& model, const Place& at) {
  LocScope scope(at);
  TensorMap all;
  each_tensor(model, [&](const Slot& slot) {
    if (slot.tensor.defined()) add(all, slot);
  });
  return all;
}

TensorMap trainable_in(const Visit& model, const Place& at) {
  LocScope scope(at);
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

void update(const Visit& model, const TensorMap& tensors, const Place& at) {
  LocScope scope(at);
  put_with(model, tensors, renew);
}

// Copies ---------------------------------------------------------------------------------------

namespace {

/// Gives variables of a copied module nodes of their own: gradients belong to nodes. Fields that
/// share a variable go on sharing one.
struct Owning final : Visitor {
  std::vector<ModuleBase*> modules = {};
  std::map<std::pair<Node*, uint32_t>, Tensor> own = {};

  void module(const Path&, ModuleBase& module, VisitModule*) override {
    modules.push_back(&module);
  }
  void tensor(const Slot& slot) override {
    if (!slot.owner || !slot.owner->lacks_variables() || !slot.tensor.defined()) return;
    // The original may have another value already: then this one is no variable any more.
    Node* node = slot.tensor.node();
    bool is_shared = is_variable(*node) && node->refs.load(std::memory_order_acquire) > 1;
    if (!is_shared && !(watch_bits(*node) & kReplaced)) return;
    auto [at, is_new] = own.try_emplace({node, slot.tensor.index()});
    if (is_new) at->second = as_variable(copy(slot.tensor), {});
    slot.tensor = at->second;
  }
};

}  // namespace

void ModuleBase::own_variables(const Callback<void(Visitor&)>& contents) {
  if (__atomic_load_n(&origin_, __ATOMIC_RELAXED) == kMoved)
    fail(Hint{"use the module that it was moved to, or assign a new one; make compiled functions "
              "when their model is in its last place"},
         "module: it was moved to another place, and is empty here");
  static std::mutex calls;  // a new copy may first be called by several threads at once
  static thread_local bool is_inside = false;
  if (is_inside) return;
  std::lock_guard lock(calls);
  if (origin_ != kCopied) return;
  NoGrad plain;
  Owning owning;
  owning.modules.push_back(this);
  is_inside = true;
  try {
    contents(owning);
  } catch (...) {
    is_inside = false;
    throw;
  }
  is_inside = false;
  for (ModuleBase* module : owning.modules)
    __atomic_store_n(&module->origin_, kOwn, __ATOMIC_RELEASE);
}

const SharedPtr<ModuleHome>& ModuleBase::home() {
  static std::mutex homes;
  std::lock_guard lock(homes);
  if (!home_) home_ = SharedPtr<ModuleHome>::make(ModuleHome{this});
  return home_;
}

/// Who follows the module that is assigned finds this one, and who follows this one still does.
void ModuleBase::move_in(SharedPtr<ModuleHome> home) noexcept {
  if (home_)
    home->module = nullptr, home->next = home_;
  else
    home_ = std::move(home), home_->module = this;
}

ModuleBase& module_of(const ModuleHome& home) {
  const ModuleHome* at = &home;
  while (at->next) at = at->next.get();
  if (!at->module)
    fail(Hint{"keep the model for as long as its optimizer is used"},
         "module: the model of these parameters does not exist any more");
  return *at->module;
}

void own_all_variables(const Visit& model) {
  Visitor none;
  model(none);
}

// Parameters -----------------------------------------------------------------------------------

Parameters::Parameters(Visit model, const Place& at) : visit_(std::move(model)) {
  LocScope scope(at);
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

void set_training(const Visit& model, bool training, const Place& at) {
  LocScope scope(at);
  each_module(model, [&](const Path&, ModuleBase& module) { module.training = training; });
}

namespace {

/// Fails for a name that no field with a tensor has.
void check_fields(const Visit& model, const std::set<std::string>& names, bool frozen) {
  std::set<std::string> tensors, modules;
  each_tensor(model, [&](const Slot& slot) {
    if (!slot.is_buffer) tensors.emplace(slot.field);
  });
  each_module(model, [&](const Path& path, ModuleBase&) { modules.insert(path.accessed()); });
  for (const std::string& name : names) {
    if (tensors.contains(name)) continue;
    std::string_view call = frozen ? "freeze" : "unfreeze", near = nearest_name(name, tensors);
    std::string hint = modules.contains(name) ? format("write model.{}.{}()", name, call)
                       : near.empty()         ? format("there are {}", join(tensors, ", "))
                                              : format("did you mean '{}'?", near);
    fail(Hint{hint}, "{}: no field '{}' holds a tensor that is trained", call, name);
  }
}

}  // namespace

void set_frozen(const Visit& model, const std::set<std::string>& names, bool frozen,
                std::source_location at) {
  LocScope scope(at);
  check_fields(model, names, frozen);
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
