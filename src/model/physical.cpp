#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "model/given_values.h"
#include "runtime/device.h"
#include "tenon/executable.h"
#include "tenon/physical_model.h"
#include "tenon/random.h"

namespace tn::model {

struct PhysicalModel::State {
  Functions functions;
  CompileSettings settings;
  bool inference;
  Device device;
  CompiledFunction<Function> forward;
  /// By outputs whose gradients are given.
  mutable std::mutex mutex = {};
  mutable std::map<std::vector<bool>, CompiledFunction<Function>> backward = {};

  State(Functions made, CompileSettings said, bool inference, Device device)
      : functions(std::move(made)),
        settings(std::move(said)),
        inference(inference),
        device(device),
        forward([this](const Tensors& given) { return functions.forward(given); }, settings) {}

  const std::string& name() const { return functions.model().flat.name; }

  Tensors gather(const Values& params, const Values& data, const Values& state) const;
  /// Where it is evaluated; the CPU takes values as they are.
  Tensor placed(const Tensor& value) const {
    return device.is_host() || !value.defined() ? value : value.to(device);
  }
  Values placed(Values values) const {
    for (auto& [name, value] : values) value = placed(value);
    return values;
  }
  CompiledFunction<Function> gradients(const std::vector<bool>& has) const;
};

namespace {

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
  auto tried = find_symbol(model.sizes, size);
  return {1, tried->value, kLargest, to_text(size)};
}

}  // namespace

Tensors PhysicalModel::State::gather(const Values& params, const Values& data,
                                     const Values& state) const {
  bool first = state.empty() && !functions.states().empty();
  Values own = first ? first_values(functions, 0, Role::state) : Values();
  Tensors all = model::gather(
      functions,
      {.params = params, .data = data, .state = state.empty() ? nullptr : &state, .own = own});
  for (Tensor& value : all) value = placed(value);
  return all;
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
  return state_->placed(first_values(state_->functions, seed, Role::parameter));
}

Values PhysicalModel::initial_state(uint64_t seed) const {
  return state_->placed(first_values(state_->functions, seed, Role::state));
}

Evaluated PhysicalModel::evaluate(const Values& params, const Values& data,
                                  const Values& state) const {
  const Functions& functions = state_->functions;
  DeviceScope here(state_->device.is_host() ? current_device() : state_->device);
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
  DeviceScope here(state_->device.is_host() ? current_device() : state_->device);
  Tensors args = state_->gather(params, data, state);
  std::vector<bool> has;
  for (Tensor& cotangent : output_cotangents(functions, output_gradients)) {
    has.push_back(cotangent.defined());
    if (cotangent.defined()) args.push_back(state_->placed(cotangent));
  }
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
  KeySettings keys = settings.keys;
  for (auto& [name, value] : keys.constants)
    if (!settings.device.is_host()) value = value.to(settings.device);
  Functions functions = resolved_functions(model, request, keys,
                                           {.trainable = settings.keys.trainable,
                                            .narrow = settings.mixed_precision,
                                            .segments = settings.checkpoint_segments});
  CompileSettings compile = settings.compile;
  if (settings.inference) compile.plan.on.emplace_back("absorb");  // batch norm into convolutions
  return PhysicalModel(std::make_shared<const PhysicalModel::State>(
      std::move(functions), std::move(compile), settings.inference, settings.device));
}

}  // namespace tn::model
