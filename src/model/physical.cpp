#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "model/model_functions.h"
#include "tenon/executable.h"
#include "tenon/physical_model.h"
#include "tenon/random.h"

namespace tn::model {

struct PhysicalModel::State {
  Functions functions;
  CompileSettings settings;
  bool inference;
  CompiledFunction<Function> forward;
  /// By outputs whose gradients are given.
  mutable std::mutex mutex = {};
  mutable std::map<std::vector<bool>, CompiledFunction<Function>> backward = {};

  State(Functions made, CompileSettings said, bool inference)
      : functions(std::move(made)),
        settings(std::move(said)),
        inference(inference),
        forward([this](const Tensors& given) { return functions.forward(given); }, settings) {}

  const std::string& name() const { return functions.model().flat.name; }

  Tensors gather(const Values& params, const Values& data, const Values& state) const;
  CompiledFunction<Function> gradients(const std::vector<bool>& has) const;
};

namespace {

/// Fails unless a tensor is as the model has it; open sizes are one in all tensors.
void check(const Given& given, const Tensor& value, std::map<std::string, Dim>& sizes) {
  if (value.dtype() != given.type->dtype)
    fail(Fault::type, "evaluate: type mismatch: '{}' is {}, not {}", given.name,
         name_of(value.dtype()), name_of(given.type->dtype));
  const Shape& wanted = given.type->shape;
  Shape shape = value.shape();
  bool fits = shape.rank() == wanted.rank();
  for (int axis = 0; fits && axis < shape.rank(); ++axis) {
    Dim expected = wanted[axis].is_const()
                       ? wanted[axis]
                       : sizes.try_emplace(to_text(wanted[axis]), shape[axis]).first->second;
    fits = shape[axis] == expected;
  }
  if (!fits)
    fail("evaluate: the shape of '{}' is {}, not {}", given.name, to_text(shape), to_text(wanted));
}

constexpr std::string_view argument_of(Role role) {
  return role == Role::parameter ? "params" : role == Role::input ? "data" : "state";
}

void check_names(const Functions& functions, const Values& values, Role role) {
  std::vector<std::string_view> known;
  for (const Given& given : functions.given())
    if (given.role == role) known.push_back(given.name);
  for (const auto& [name, value] : values) {
    if (std::ranges::count(known, name)) continue;
    std::string_view near = nearest_name(name, known);
    fail(Hint{near.empty() ? format("there are {}", join(known, ", "))
                           : format("did you mean '{}'?", near)},
         "evaluate: {} has no '{}' among its {}", functions.model().flat.name, name,
         argument_of(role));
  }
}

Values named(const std::vector<std::string>& names, Tensors::iterator from) {
  Values values;
  for (const std::string& name : names) values.emplace(name, std::move(*from++));
  return values;
}

Values first_values(const Functions& functions, uint64_t seed, Role role) {
  Tensors all = functions.first_values(random::key(seed));
  Values values;
  for (size_t i = 0; i < all.size(); ++i)
    if (const Given& given = functions.given()[i]; given.role == role)
      values.emplace(given.name, all[i]);
  return values;
}

/// A size of an executable: an open one may be any, and is best where inference tried it.
DimensionInfo dimension_info(const Resolved& model, Dim size) {
  constexpr int64_t kLargest = 65536;
  if (size.is_const()) return size.value();
  auto tried = std::ranges::find(model.sizes, size, &Binding::symbol);
  return {1, tried->value, kLargest, to_text(size)};
}

}  // namespace

Tensors PhysicalModel::State::gather(const Values& params, const Values& data,
                                     const Values& state) const {
  check_names(functions, params, Role::parameter);
  check_names(functions, data, Role::input);
  check_names(functions, state, Role::state);
  if (state.empty() && draws(functions.model()))
    fail(Hint{"give a state, of initial_state(seed) or of a former evaluation"},
         "evaluate: {} draws random numbers and has no key", name());
  bool first = state.empty() && !functions.states().empty();
  Values states = first ? first_values(functions, 0, Role::state) : state;
  std::map<std::string, Dim> sizes;
  Tensors values;
  for (const Given& given : functions.given()) {
    const Values& from = given.role == Role::parameter ? params
                         : given.role == Role::input   ? data
                                                       : states;
    auto found = from.find(given.name);
    if (found == from.end() || !found->second)
      fail("evaluate: {} has no '{}'", argument_of(given.role), given.name);
    check(given, found->second, sizes);
    values.push_back(found->second);
  }
  return values;
}

CompiledFunction<Function> PhysicalModel::State::gradients(const std::vector<bool>& has) const {
  std::lock_guard lock(mutex);
  auto known = backward.find(has);
  if (known != backward.end()) return known->second;
  Function f = [this, has](const Tensors& args) {
    auto next = args.begin() + std::ssize(functions.given());
    Tensors cotangents;
    for (bool given : has) cotangents.push_back(given ? *next++ : Tensor());
    return functions.gradients({args.begin(), args.begin() + std::ssize(functions.given())},
                               cotangents);
  };
  return backward.emplace(has, tn::compile(f, settings)).first->second;
}

Values PhysicalModel::randomize_params(uint64_t seed) const {
  return first_values(state_->functions, seed, Role::parameter);
}

Values PhysicalModel::initial_state(uint64_t seed) const {
  return first_values(state_->functions, seed, Role::state);
}

Evaluated PhysicalModel::evaluate(const Values& params, const Values& data,
                                  const Values& state) const {
  const Functions& functions = state_->functions;
  Tensors made = state_->forward(state_->gather(params, data, state));
  Evaluated all{.outputs = named(functions.outputs(), made.begin()), .gradients = {}, .state = {}};
  if (!state.empty())
    all.state = named(functions.states(), made.begin() + std::ssize(functions.outputs()));
  return all;
}

Evaluated PhysicalModel::evaluate_gradients(const Values& params, const Values& data,
                                            const Values& output_gradients,
                                            const Values& state) const {
  const Functions& functions = state_->functions;
  if (state_->inference)
    fail("evaluate: {} was compiled for inference and has no gradients", state_->name());
  Tensors args = state_->gather(params, data, state);
  std::vector<bool> has;
  for (const std::string& name : functions.outputs()) {
    auto found = output_gradients.find(name);
    has.push_back(found != output_gradients.end());
    if (has.back()) args.push_back(found->second);
  }
  for (const auto& [name, value] : output_gradients)
    if (!std::ranges::count(functions.outputs(), name))
      fail(Hint{format("there are {}", join(functions.outputs(), ", "))},
           "evaluate: {} has no output '{}'", state_->name(), name);
  Tensors made = state_->gradients(has)(args);
  auto states = made.begin() + std::ssize(functions.outputs());
  auto gradients = states + std::ssize(functions.states());
  Evaluated all{.outputs = named(functions.outputs(), made.begin()), .gradients = {}, .state = {}};
  if (!state.empty()) all.state = named(functions.states(), states);
  for (const Given& given : functions.given())
    if (given.trainable) all.gradients.emplace(given.name, std::move(*gradients++));
  return all;
}

std::map<std::string, Shape> PhysicalModel::shapes() const {
  const Resolved& model = state_->functions.model();
  std::map<std::string, Shape> shapes;
  for (size_t w = 0; w < model.types.size(); ++w)
    shapes.emplace(model.flat.wires[w].name, model.types[w]->shape);
  return shapes;
}

std::map<std::string, DType> PhysicalModel::types() const {
  const Resolved& model = state_->functions.model();
  std::map<std::string, DType> types;
  for (size_t w = 0; w < model.types.size(); ++w)
    types.emplace(model.flat.wires[w].name, model.types[w]->dtype);
  return types;
}

std::string PhysicalModel::show(std::string_view stage) const {
  return state_->functions.text(stage);
}

void PhysicalModel::save(const std::string& path) const {
  const Functions& functions = state_->functions;
  std::vector<InputInfo> inputs;
  for (const Given& given : functions.given()) {
    InputInfo info{.shape = {}, .dtype = given.type->dtype, .name = given.name};
    for (Dim size : given.type->shape)
      info.shape.push_back(dimension_info(functions.model(), size));
    inputs.push_back(std::move(info));
  }
  std::vector<std::string> names = functions.outputs();
  if (!state_->inference)
    names.insert(names.end(), functions.states().begin(), functions.states().end());
  AheadSettings settings{.optimization_level = state_->settings.optimization_level,
                         .name = state_->name(),
                         .memory_limit = state_->settings.memory_limit,
                         .plan = state_->settings.plan};
  settings.surface = [&] { return Surface{.text = {}, .output_names = names}; };
  auto f = [&](const Tensors& given) {
    Tensors made = functions.forward(given);
    made.resize(names.size());
    return made;
  };
  flat::compile_ahead(f, inputs, settings).save(path);
}

PhysicalModel compile(const Model& model, const PhysicalSettings& settings) {
  InferenceRequest request{.shapes = settings.shapes,
                           .types = settings.types,
                           .precision = settings.precision,
                           .static_shapes = settings.static_shapes,
                           .training = !settings.inference};
  Functions functions = resolved_functions(model, request, settings.keys,
                                           {.trainable = settings.keys.trainable,
                                            .narrow = settings.mixed_precision,
                                            .segments = settings.checkpoint_segments});
  CompileSettings compile = settings.compile;
  if (settings.inference) compile.plan.on.emplace_back("absorb");  // batch norm into convolutions
  return PhysicalModel(std::make_shared<const PhysicalModel::State>(
      std::move(functions), std::move(compile), settings.inference));
}

}  // namespace tn::model
