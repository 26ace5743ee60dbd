#include "tenon/optim/lbfgs.h"

#include <cmath>

#include "base/error.h"
#include "ir/place.h"
#include "ir/trace.h"
#include "nn/wolfe_search.h"
#include "tenon/backward.h"
#include "tenon/operators.h"

namespace tn::optim {

static double largest(const Tensor& x) { return x.size() ? max(abs(x)).item<double>() : 0; }
static double dot(const Tensor& x, const Tensor& y) { return sum(x * y).item<double>(); }

LBFGS::LBFGS(const nn::Parameters& parameters, const LBFGSSettings& settings)
    : model_(parameters.as_visit()), settings_(settings) {
  if (settings.max_iter < 1) fail("LBFGS: max_iter must be at least 1, not {}", settings.max_iter);
  if (settings.history_size < 1)
    fail("LBFGS: history_size must be at least 1, not {}", settings.history_size);
  if (this->parameters().empty()) fail("LBFGS: there are no parameters to train");
  for (const nn::Parameter& each : this->parameters()) require_grad(each.tensor);
}

void LBFGS::zero_grad() {
  for (const nn::Parameter& each : parameters()) set_grad(each.tensor, {});
}

/// The gradients of all parameters in a row; zeros for those without one.
Tensor LBFGS::flat_gradient() const {
  Tensors parts;
  for (const nn::Parameter& each : parameters()) {
    Tensor gradient = grad(each.tensor);
    parts.push_back(reshape(gradient.defined() ? gradient : zeros_like(each.tensor), {-1}));
  }
  return concat(parts).eval();
}

LBFGS::Evaluated LBFGS::evaluated(const Callback<Tensor()>& closure) const {
  Tensor loss;
  {
    GradMode recorded(true);
    loss = closure();
  }
  return {loss.item<double>(), flat_gradient()};
}

Tensor LBFGS::step(const Callback<Tensor()>& closure, std::source_location place) {
  LocScope at(place);
  if (const Trace* trace = Trace::tracing())
    fail(Fault::type, Hint{"let the closure call a compiled function"},
         "LBFGS: step cannot be traced by {}, because it branches on computed values", trace->by);
  NoGrad plain;
  Tensor first;
  {
    GradMode recorded(true);
    first = closure();
  }
  Evaluated now{first.item<double>(), flat_gradient()};
  if (largest(now.gradient) > settings_.tolerance_grad) iterate(closure, std::move(now));
  return first;
}

void LBFGS::iterate(const Callback<Tensor()>& closure, Evaluated now) {
  int evaluations = 1, most = settings_.max_eval.value_or(settings_.max_iter * 5 / 4);
  for (int iteration = 1; iteration <= settings_.max_iter; ++iteration) {
    ++steps_;
    bool is_first = !last_direction_.defined();
    if (!is_first) remember(last_direction_ * last_length_, now.gradient - last_gradient_);
    last_direction_ = direction(now.gradient);
    last_gradient_ = now.gradient;
    double slope = dot(now.gradient, last_direction_), before = now.loss;
    double length = settings_.learning_rate;
    if (is_first)  // nothing is known of the scale yet
      length *= std::min(1.0, 1.0 / sum(abs(now.gradient)).item<double>());
    last_length_ = length;
    if (slope > -settings_.tolerance_change) return;
    bool is_last = iteration == settings_.max_iter;
    now = move_along(closure, now, slope, length, evaluations, is_last);
    last_length_ = length;
    bool is_small = largest(last_direction_ * length) <= settings_.tolerance_change ||
                    std::abs(now.loss - before) < settings_.tolerance_change;
    if (is_small || largest(now.gradient) <= settings_.tolerance_grad || evaluations >= most)
      return;
  }
}

/// One step along the direction, of the given length or of one that the line search finds.
LBFGS::Evaluated LBFGS::move_along(const Callback<Tensor()>& closure, const Evaluated& from,
                                   double slope, double& length, int& evaluations, bool is_last) {
  if (!settings_.strong_wolfe) {
    move(last_direction_, length);
    if (is_last) return from;
    ++evaluations;
    return evaluated(closure);
  }
  Tensors before;
  for (const nn::Parameter& each : parameters())
    before.push_back(stop_gradient(each.tensor).eval());
  auto at = [&](double tried) -> LinePoint {
    move(last_direction_, tried);
    Evaluated there = evaluated(closure);
    size_t i = 0;
    for (const nn::Parameter& each : parameters()) rebind(each.tensor, before[i++]);
    return {tried, there.loss, there.gradient, dot(there.gradient, last_direction_)};
  };
  LinePoint start{0, from.loss, from.gradient, slope};
  LineFound found =
      strong_wolfe(at, start, length, largest(last_direction_), settings_.tolerance_change);
  evaluations += found.evaluations;
  length = found.point.length;
  move(last_direction_, length);
  return {found.point.loss, found.point.gradient};
}

/// Adds to the history only if the curvature is positive, which keeps H positive definite.
void LBFGS::remember(const Tensor& change, const Tensor& gradient_change) {
  if (dot(change, gradient_change) <= 1e-10) return;
  auto keep = [this](Tensors& all, const Tensor& value) {
    all.push_back(value);
    if (all.size() > static_cast<size_t>(settings_.history_size)) all.erase(all.begin());
  };
  keep(changes_, change), keep(gradient_changes_, gradient_change);
  eval({change, gradient_change});
}

/// `-H g`, by the two-loop recursion over the history.
Tensor LBFGS::direction(const Tensor& gradient) const {
  Tensor made = -gradient;
  Tensors weights(changes_.size());
  for (size_t i = changes_.size(); i-- > 0;) {
    const Tensor &s = changes_[i], &y = gradient_changes_[i];
    weights[i] = sum(s * made) / sum(s * y);
    made = made - weights[i] * y;
  }
  if (!changes_.empty()) {
    const Tensor &s = changes_.back(), &y = gradient_changes_.back();
    made = made * (sum(s * y) / sum(y * y));
  }
  for (size_t i = 0; i < changes_.size(); ++i) {
    const Tensor &s = changes_[i], &y = gradient_changes_[i];
    made = made + s * (weights[i] - sum(y * made) / sum(s * y));
  }
  return made.eval();
}

void LBFGS::move(const Tensor& direction, double length) const {
  int64_t begin = 0;
  for (const nn::Parameter& each : parameters()) {
    int64_t end = begin + each.tensor.size();
    Tensor part = reshape(index(direction, {slice(begin, end)}), each.tensor.shape());
    Tensor moved = astype(each.tensor + length * part, each.tensor.dtype());
    rebind(each.tensor, moved.eval());
    begin = end;
  }
}

nn::TensorMap LBFGS::state_dict() const {
  nn::TensorMap state{{"step", Tensor(steps_)},
                      {"learning_rate", full({}, settings_.learning_rate, DType::f64)}};
  for (size_t i = 0; i < changes_.size(); ++i) {
    state.emplace(format("changes.{}", i), changes_[i]);
    state.emplace(format("gradient_changes.{}", i), gradient_changes_[i]);
  }
  if (!last_direction_.defined()) return state;
  state.emplace("last.direction", last_direction_), state.emplace("last.gradient", last_gradient_);
  state.emplace("last.length", full({}, last_length_, DType::f64));
  return state;
}

void LBFGS::load_state_dict(const nn::TensorMap& state) {
  auto find = [&](const std::string& name) {
    auto found = state.find(name);
    return found == state.end() ? Tensor() : found->second;
  };
  Tensor steps = find("step"), rate = find("learning_rate"), length = find("last.length");
  if (!steps.defined() || !rate.defined())
    fail("load_state_dict: step and learning_rate of an LBFGS are missing");
  Tensors changes, gradient_changes;
  for (size_t i = 0;; ++i) {
    Tensor s = find(format("changes.{}", i)), y = find(format("gradient_changes.{}", i));
    if (!s.defined() || !y.defined()) break;
    changes.push_back(s), gradient_changes.push_back(y);
  }
  steps_ = steps.item<int64_t>(), settings_.learning_rate = rate.item<double>();
  changes_ = std::move(changes), gradient_changes_ = std::move(gradient_changes);
  last_direction_ = find("last.direction"), last_gradient_ = find("last.gradient");
  last_length_ = length.defined() ? length.item<double>() : 0;
}

}  // namespace tn::optim
