#include "model/model_functions.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tenon/amp.h"
#include "tenon/flat.h"

namespace tn::model {
namespace {

std::vector<std::string> names_of(const FlatModel& flat, const std::vector<int>& wires) {
  std::vector<std::string> names;
  for (int w : wires) names.push_back(flat.wires[w].name);
  return names;
}

/// The wire of that name among `wires`, which are what `option` may name.
int named(const FlatModel& flat, const std::vector<int>& wires, const std::string& name,
          std::string_view option, std::string_view kind) {
  for (int w : wires)
    if (flat.wires[w].name == name) return w;
  std::vector<std::string> names = names_of(flat, wires);
  std::string_view near = nearest_name(name, names);
  fail(Hint{near.empty() ? format("there are {}", join(names, ", "))
                         : format("did you mean '{}'?", near)},
       "{}: no {} '{}', named in {}", flat.name, kind, name, option);
}

constexpr std::string_view kOpen = "input or parameter";

/// Constants and discarded outputs are left out; parameters that are data have that role.
void apply_keys(FlatModel& flat, const KeySettings& keys) {
  for (const auto& [name, value] : keys.constants) {
    int w = named(flat, flat.open, name, "constant_keys", kOpen);
    flat.wires[w].value = value;
  }
  for (const std::string& name : keys.data)
    flat.wires[named(flat, flat.open, name, "data_keys", kOpen)].role = Role::input;
  for (const std::string& name : keys.discard)
    std::erase(flat.outputs, named(flat, flat.outputs, name, "discard_keys", "output"));
  if (flat.outputs.empty()) fail("{}: discard_keys leaves no output", flat.name);
  std::erase_if(flat.open, [&](int w) { return keys.constants.contains(flat.wires[w].name); });
}

/// Mixed precision, while it lives.
struct Policy {
  std::optional<amp::Autocast> cast;
  explicit Policy(std::optional<DType> narrow) {
    if (narrow) cast.emplace(narrow);
  }
};

}  // namespace

Functions::Functions(Resolved model, const FunctionSettings& settings)
    : model_(std::move(model)), narrow_(settings.narrow), segments_(settings.segments) {
  const FlatModel& flat = model_.flat;
  std::set<int> trainable;
  if (settings.trainable)
    for (const std::string& name : *settings.trainable)
      trainable.insert(named(flat, flat.open, name, "trainable_keys", kOpen));
  for (int w : flat.open) {
    const FlatWire& wire = flat.wires[w];
    TypeRef type = model_.types[w];
    bool floating = is_inexact(type->dtype);
    if (trainable.contains(w) && !floating)
      fail(Fault::type, "{}: '{}' has no gradient: it is {}", flat.name, wire.name,
           name_of(type->dtype));
    bool trains =
        settings.trainable ? trainable.contains(w) : floating && wire.role == Role::parameter;
    if (trains) trainable_.push_back(static_cast<int>(given_.size()));
    given_.push_back({wire.name, wire.role, type, trains});
  }
  if (draws(model_) && flat.find(kRandomKey) >= 0)
    fail("{}: '{}' is the name of its random key, and of a connection", flat.name, kRandomKey);
  if (draws(model_))
    given_.push_back({std::string(kRandomKey), Role::state, intern(DType::u32, {2})});
  outputs_ = names_of(flat, flat.outputs);
  for (size_t i = 0; i < flat.states.size(); ++i) {
    const std::string& name = flat.wires[flat.states[i]].name;
    if (std::ranges::find(given_, name, &Given::name) == given_.end()) continue;
    states_.push_back(name);
    kept_states_.push_back(outputs_.size() + i);
  }
  if (!draws(model_)) return;
  states_.emplace_back(kRandomKey);
  kept_states_.push_back(outputs_.size() + flat.states.size());
}

Tensors Functions::recorded(const Tensors& given) const {
  Tensors made = record(model_, given);
  Tensors kept(made.begin(), made.begin() + std::ssize(outputs_));
  for (size_t i : kept_states_) kept.push_back(made[i]);
  return kept;
}

Tensors Functions::forward(const Tensors& given) const {
  Policy policy(narrow_);
  return recorded(given);
}

Tensors Functions::gradients(const Tensors& given, const Tensors& cotangents) const {
  auto argument = [&](size_t i) { return format("'{}'", given_[i].name); };
  auto result = [&](size_t i) { return format("'{}'", outputs_[i]); };
  Function f = [&](const Tensors& args) { return forward(args); };
  if (segments_ > 0) f = flat::checkpoint(f, segments_);
  flat::Pullback pullback(f, given, trainable_, {"evaluate", argument, result});
  Tensors all = cotangents;
  all.resize(pullback.outputs().size());
  Tensors made = pullback.outputs();
  for (Tensor& gradient : pullback(all)) made.push_back(std::move(gradient));
  return made;
}

Tensors Functions::first_values(const Tensor& key) const {
  Tensors values = model::first_values(model_, key);
  if (draws(model_)) values.push_back(key);
  return values;
}

std::string Functions::text(std::string_view stage) const {
  if (stage == "flattening") return blocks_text(model_.flat);
  if (stage == "terminals") return terminals_text(model_.flat);
  if (stage == "shapes") return shapes_text(model_);
  if (stage == "types") return types_text(model_);
  fail("show: no stage \"{}\": there are flattening, terminals, shapes, types", stage);
}

Functions resolved_functions(const Model& model, const InferenceRequest& request,
                             const KeySettings& keys, const FunctionSettings& settings) {
  FlatModel flat = flatten(model);
  apply_keys(flat, keys);
  Policy policy(settings.narrow);
  return {infer(std::move(flat), request), settings};
}

}  // namespace tn::model
