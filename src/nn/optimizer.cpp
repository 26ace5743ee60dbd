// The base of the optimizers.
#include "tenon/optim/optimizer.h"

#include <algorithm>

#include "base/error.h"
#include "ir/node.h"
#include "ir/place.h"
#include "ir/trace.h"
#include "ir/visit_field.h"
#include "nn/optimizer_def.h"
#include "tenon/backward.h"
#include "tenon/mesh.h"
#include "tenon/operators.h"

namespace tn::optim {

static void check_not_negative(std::string_view name, double value) {
  if (!(value >= 0)) fail("{}: must be at least 0, not {}", name, value);
}

LearningRate::LearningRate(double number, nn::Place at) : value(number) {
  LocScope scope(at);
  check_not_negative("learning_rate", number);
}

static Tensor at_least_float32(const Tensor& x) {
  return astype(x, promote(x.dtype(), DType::f32));
}

Optimizer::Optimizer(const LearningRate& rate, const WeightDecay& decay, bool decoupled)
    : decay_(decay), decoupled_(decoupled) {
  check_not_negative("weight_decay", decay.value);
  set_learning_rate(rate);
}

void Optimizer::set_learning_rate(const LearningRate& rate) {
  DeviceScope numbers{Device()};  // of the host go to wherever a parameter is
  schedule_ = rate.schedule;
  Tensor value = schedule_ ? schedule_(step_) : rate.value;
  if (!value.defined() || value.rank() != 0) fail("learning_rate: expected a scalar");
  learning_rate_ = astype(value, DType::f32);
}

static void check_gradient(const std::string& name, const Tensor& gradient,
                           const TensorMap& parameters) {
  auto found = parameters.find(name);
  if (found == parameters.end()) fail("update: a gradient for {}, which is no parameter", name);
  if (!gradient.defined()) fail(Fault::type, "update: the gradient of {} is a null tensor", name);
  if (!identical(gradient.shape(), found->second.shape()))
    fail("update: the gradient of {} has the wrong shape: {} for {}", name, *type_of(gradient),
         *type_of(found->second));
}

Birth::Birth() noexcept : number_(next_sequence()) {}

void Birth::check_tied(const Tensor& state, std::string_view what) const {
  if (!state.defined() || state.node()->traced) return;
  if (const Trace* trace = Trace::compiling(); trace && number_ < trace->start)
    fail(Hint{format("name it: tn::compile(f, std::tie(model, {}))", what)},
         "update: the {} is not part of the state of the compiled function", what);
}

TensorMap Optimizer::apply_gradients(const TensorMap& gradients, const TensorMap& parameters,
                                     std::source_location place) {
  LocScope at(place);
  NoGrad plain;  // steps are not differentiated
  birth_.check_tied(step_, "optimizer");
  for (const auto& [name, gradient] : gradients) check_gradient(name, gradient, parameters);
  {
    DeviceScope numbers{Device()};
    if (schedule_) learning_rate_ = astype(schedule_(step_), DType::f32);
    step_ = step_ + 1;
  }
  TensorMap made;
  for (const auto& [name, gradient] : gradients)
    made.emplace(name, applied(name, gradient, parameters.at(name)));
  return made;
}

Tensor Optimizer::applied(const std::string& name, const Tensor& given, const Tensor& parameter) {
  Tensor wide = at_least_float32(parameter), gradient = astype(given, wide.dtype());
  double decay = decay_.by_parameter ? decay_.by_parameter(name, parameter) : decay_.value;
  if (decay != 0 && !decoupled_) gradient = gradient + decay * wide;
  Tensor made = apply_single(gradient, wide, moments_of(name, wide));
  if (decay != 0 && decoupled_) made = made - learning_rate_ * decay * wide;
  return astype(made, parameter.dtype());
}

void Optimizer::init(const TensorMap& parameters) {
  for (const auto& [name, parameter] : parameters) moments_of(name, at_least_float32(parameter));
}

// Watched parameters ---------------------------------------------------------------------------

void Optimizer::watch(const nn::Parameters& given) {
  NoGrad plain;
  models_.push_back(given.as_visit());
  for (const nn::Parameter& each : parameters()) {
    require_grad(each.tensor);
    moments_of(each.name, at_least_float32(each.tensor));
  }
}

std::vector<nn::Parameter> Optimizer::parameters() const {
  std::vector<nn::Parameter> all;
  for (size_t i = 0; i < models_.size(); ++i)
    for (nn::Parameter& each : nn::trained_in(models_[i]))
      all.push_back({i ? format("{}.{}", i, each.name) : std::move(each.name), each.tensor});
  return all;
}

static void check_any_gradient(const TensorMap& gradients, size_t parameters, bool is_given_any) {
  if (!gradients.empty()) return;
  if (parameters == 0 && is_given_any)
    fail(Hint{"unfreeze them; tensors that are no part of a model must stay where they are"},
         "step: the parameters of the optimizer are frozen, or were moved to another place");
  if (parameters == 0)
    fail(Hint{"write SGD(model.parameters(), {.learning_rate = 0.1})"},
         "step: the optimizer was given no parameters");
  fail(Hint{"call loss.backward() first"}, "step: none of {} parameters has a gradient",
       parameters);
}

void Optimizer::step(std::source_location place) {
  LocScope at(place);
  std::vector<nn::Parameter> all = parameters();
  TensorMap before, gradients;
  for (const auto& [name, parameter] : all) {
    before.emplace(name, parameter);
    if (Tensor gradient = grad(parameter); gradient.defined())
      gradients.emplace(name, std::move(gradient));
  }
  check_any_gradient(gradients, all.size(), !models_.empty());
  TensorMap made = apply_gradients(gradients, before, place);
  before.clear(), gradients.clear();  // the new values reuse their memory
  for (const auto& [name, parameter] : all)
    if (auto found = made.extract(name)) rebind(parameter, std::move(found.mapped()));
  if (Trace::current()) return;
  // A training loop may never read a value, and pending ops must not accumulate.
  Tensors pending;
  for (const auto& [name, parameter] : all) pending.push_back(parameter);
  for (auto& [name, tensor] : state_dict()) pending.push_back(std::move(tensor));
  eval(pending);
}

void Optimizer::zero_grad() {
  for (const nn::Parameter& each : parameters()) set_grad(each.tensor, {});
}

// State ----------------------------------------------------------------------------------------

/// The state of a parameter, given in at least float32.
TensorMap& Optimizer::moments_of(const std::string& name, const Tensor& parameter) {
  auto [at, is_new] = moments_.try_emplace(name);
  if (is_new) init_single(parameter, at->second);
  auto known = shapes_.find(name);
  bool is_known = known != shapes_.end() && identical(known->second, parameter.shape());
  if (!is_new && !is_known) check_moments(name, parameter);
  if (!is_known) shapes_.insert_or_assign(name, parameter.shape());
  return at->second;
}

/// State of another model may broadcast, or fail inside of the rule.
void Optimizer::check_moments(const std::string& name, const Tensor& parameter) {
  TensorMap fresh;
  init_single(parameter, fresh);
  for (const auto& [moment, tensor] : moments_[name])
    if (auto wanted = fresh.find(moment);
        wanted != fresh.end() && !identical(wanted->second.shape(), tensor.shape()))
      fail(Hint{"make an optimizer for each model"},
           "update: the optimizer has the state of another model: moments.{}.{} is {} for {}", name,
           moment, *type_of(tensor), *type_of(parameter));
}

void Optimizer::visit(nn::Visitor& visitor) {
  visitor.tensor({.path = {.name = "step"}, .tensor = step_});
  visitor.tensor({.path = {.name = "learning_rate"}, .tensor = learning_rate_});
  nn::Path root{.name = "moments"};
  for (auto& [name, moments] : moments_) {
    nn::Path parameter{&root, name};
    for (auto& [moment, tensor] : moments)
      visitor.tensor({.path = {&parameter, moment}, .tensor = tensor});
  }
}

nn::Visit Optimizer::as_visit() const {
  return [this](nn::Visitor& v) { const_cast<Optimizer*>(this)->visit(v); };
}

TensorMap Optimizer::state_dict() const { return nn::tensors_in(as_visit()); }

void Optimizer::load_state_dict(const TensorMap& state) {
  constexpr std::string_view kMoments = "moments.";
  TensorMap known = state_dict();
  Tensor step = step_, rate = learning_rate_;
  std::map<std::string, TensorMap> moments;
  for (const auto& [name, tensor] : state) {
    if (!tensor.defined()) fail(Fault::type, "load_state_dict: {} is a null tensor", name);
    if (auto mine = known.find(name);
        mine != known.end() && !identical(mine->second.shape(), tensor.shape()))
      fail("load_state_dict: {} is {}, given {}", name, *type_of(mine->second), *type_of(tensor));
    size_t dot = name.rfind('.');
    if (name == "step")
      step = tensor;
    else if (name == "learning_rate")
      rate = tensor;
    else if (name.starts_with(kMoments) && dot > kMoments.size())
      moments[name.substr(kMoments.size(), dot - kMoments.size())][name.substr(dot + 1)] = tensor;
    else
      fail("load_state_dict: an optimizer has no {}", name);
  }
  for (auto& [owner, tensors] : moments)  // what is divided stays divided
    for (auto& [name, tensor] : tensors)
      if (auto mine = known.find(format("{}{}.{}", kMoments, owner, name));
          mine != known.end() && is_mesh(mine->second.device()))
        tensor = shard_like(tensor, mine->second);
  step_ = std::move(step), learning_rate_ = std::move(rate), moments_ = std::move(moments);
  shapes_.clear();
}

// Optimizers whose rule is a record ------------------------------------------------------------

static const OptimizerDef& def_of(std::string_view name) {
  const OptimizerDef* def = find_optimizer(name);
  invariant(def, "no optimizer '{}'", name);
  return *def;
}

static uint8_t choice_of(const Field& field, std::string_view name, std::string_view optimizer) {
  auto found = std::ranges::find(field.choices, name);
  if (found == field.choices.end())
    fail("{}: {} must be one of {}: '{}'", optimizer, field.name, join(field.choices, ", "), name);
  return static_cast<uint8_t>(found - field.choices.begin());
}

/// Copies what a class was given, a T or a Maybe<T>, into a field.
static void take(const Field& field, const void* given, std::string_view optimizer) {
  auto read = [&]<class T>(T) {
    return field.set ? static_cast<const Maybe<T>*>(given)->value : *static_cast<const T*>(given);
  };
  if (field.set) {
    *field.set = *static_cast<const bool*>(given);
    if (!*field.set) return;
  }
  visit_field(field, [&]<class T>(T& to) {
    if constexpr (std::is_same_v<T, uint8_t>)
      to = choice_of(field, read(std::string_view()), optimizer);
    else
      to = read(T());
  });
}

/// The given value, or the default of the record.
static LearningRate rate_of(const OptimizerDef& def, const LearningRate& rate,
                            const LearningRate& setting) {
  if (rate.is_given() && setting.is_given()) fail("{}: learning_rate is given twice", def.name);
  if (rate.is_given()) return rate;
  return setting.is_given() ? setting : LearningRate(def.learning_rate);
}

RuleOptimizer::RuleOptimizer(std::string_view name, const LearningRate& rate,
                             const LearningRate& setting, const WeightDecay& decay,
                             std::initializer_list<const void*> options, const nn::Place& at)
    // The scope lives until the base is constructed.
    : Optimizer((LocScope(at), rate_of(def_of(name), rate, setting)), decay,
                def_of(name).decoupled),
      def_(&def_of(name)) {
  LocScope scope(at);
  auto attrs = std::make_shared<AttrBuffer>();
  def_->defaults(attrs->data);
  const void* const* next = options.begin();
  for (const Hyperparameter& h : hyperparameters_of(*def_, attrs->data))
    for (const Field& part : h.parts.items)
      if (!h.is_decay()) take(part, *next++, name);
  check_attrs(*def_, attrs->data, name);
  attrs_ = std::shared_ptr<const void>(attrs, attrs->data);
}

std::string RuleOptimizer::kind() const { return std::string(def_->name); }

void RuleOptimizer::init_single(const Tensor& parameter, TensorMap& moments) const {
  Tensors state = initial_state(*def_, attrs_.get(), parameter);
  for (int i = 0; i < def_->state.size(); ++i)
    if (Tensor& each = state[static_cast<size_t>(i)]; each.defined())
      moments.emplace(def_->state[i].name, std::move(each));
}

Tensor RuleOptimizer::apply_single(const Tensor& gradient, const Tensor& parameter,
                                   TensorMap& moments) const {
  OptimizerStep update{*def_, gradient, parameter, steps(), learning_rate()};
  for (const StateDef& each : def_->state) {
    auto found = moments.find(std::string(each.name));
    update.state.push_back(found == moments.end() ? Tensor() : found->second);
  }
  Tensor made = def_->update(attrs_.get(), update);
  for (int i = 0; i < def_->state.size(); ++i)
    if (Tensor& each = update.state[static_cast<size_t>(i)]; each.defined())
      moments[std::string(def_->state[i].name)] = std::move(each);
  return made;
}

}  // namespace tn::optim
