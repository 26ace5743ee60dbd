// Losses: functions of predictions and targets. Shapes must be equal: what would broadcast is an
// error, since it gives a loss that was not meant. Gradients are finite also where a loss has a
// kink or a logarithm its pole.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/index_bounds.h"
#include "ops/indexing.h"
#include "ops/loss_parts.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {

void check_alike(std::string_view loss, std::initializer_list<NamedTensor> given) {
  std::vector<std::string> types;
  bool alike = true;
  for (const NamedTensor& one : given) {
    alike = alike && decide_equal(one.tensor.shape(), given.begin()->tensor.shape());
    types.push_back(format("{} ({})", *type_of(one.tensor), one.name));
  }
  std::string last = types.back();
  types.pop_back();
  if (!alike) fail("{}: shapes differ: {} and {}", loss, join(types, ", "), last);
}

Tensor reduced(const Tensor& loss, Reduce reduction) {
  if (reduction == Reduce::mean) return tn::mean(loss);
  return reduction == Reduce::sum ? tn::sum(loss) : loss;
}

Tensor weighted(std::string_view name, const Tensor& loss, const Tensor& weights) {
  if (!weights.defined()) return loss;
  int more = loss.rank() - weights.rank();
  bool fits = more >= 0;
  for (int axis = 0; fits && axis < weights.rank(); ++axis) {
    Dim size = weights.shape()[axis];
    fits = decide_equal(size, 1) || decide_equal(size, loss.shape()[axis + more]);
  }
  if (!fits)
    fail("{}: weights of shape {} for losses of shape {}", name, weights.shape(), loss.shape());
  return loss * weights;
}

namespace {

struct CrossEntropyLossAttrs {
  Axis axis = -1;
  double label_smoothing = 0;
  Reduce reduction = Reduce::none;
  Maybe<int64_t> ignore_index;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("label_smoothing", a.label_smoothing), f("reduction", a.reduction);
    f("ignore_index", a.ignore_index);
  }
};

struct NllAttrs {
  Axis axis = -1;
  Reduce reduction = Reduce::none;
  Maybe<int64_t> ignore_index;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("reduction", a.reduction), f("ignore_index", a.ignore_index);
  }
};

struct BinaryAttrs {
  bool with_logits = true;
  Reduce reduction = Reduce::mean;
  static constexpr void fields(auto& a, auto&& f) {
    f("with_logits", a.with_logits), f("reduction", a.reduction);
  }
};

struct AxisLossAttrs {
  Axis axis = -1;
  Reduce reduction = Reduce::none;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("reduction", a.reduction);
  }
};

struct CosineAttrs {
  Axis axis = 1;
  double eps = 1e-8;
  Reduce reduction = Reduce::none;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("eps", a.eps), f("reduction", a.reduction);
  }
};

/// Fails unless all operands of a loss have one shape.
void check_operands(const OpDef& op, const Tensors& in) {
  if (op.args.size() == 2)
    return check_alike(op.name, {{op.args[0].name, in[0]}, {op.args[1].name, in[1]}});
  check_alike(op.name,
              {{op.args[0].name, in[0]}, {op.args[1].name, in[1]}, {op.args[2].name, in[2]}});
}

void check_positive(const OpDef& op, std::string_view name, double value) {
  if (!(value > 0)) fail("{}: {} must be above 0, not {}", op.name, name, value);
}

/// The reduced loss of the examples that are `counted`.
Tensor reduced_of(const Tensor& loss, Reduce reduction, const Tensor& counted) {
  Tensor kept = tn::where(counted, loss, 0);
  if (reduction != Reduce::mean) return reduced(kept, reduction);
  return tn::sum(kept) / tn::maximum(tn::sum(counted), 1);
}

Tensors cross_entropy_loss_body(const CrossEntropyLossAttrs& a, const Tensors& in) {
  const Tensor &logits = in[0], &targets = in[1], &weights = in[2];
  auto entropy = [&](const Tensor& of, Reduce reduction) {
    return tn::cross_entropy(logits, of, kReduces[static_cast<size_t>(reduction)],
                             a.label_smoothing, a.axis);
  };
  if (!a.ignore_index || decide_equal(targets.shape(), logits.shape())) {
    if (!weights.defined()) return {entropy(targets, a.reduction)};
    Tensor loss = entropy(targets, Reduce::none);
    return {reduced(weighted(cross_entropy_loss.name, loss, weights), a.reduction)};
  }
  Tensor counted = tn::not_equal(targets, *a.ignore_index);
  Tensor loss = entropy(tn::where(counted, targets, 0), Reduce::none);
  return {reduced_of(weighted(cross_entropy_loss.name, loss, weights), a.reduction, counted)};
}

Tensors nll_loss_body(const NllAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  if (x.rank() == 0) fail("nll_loss: inputs need an axis of classes: {}", *type_of(x));
  int axis = normal_axis(a.axis, x.rank(), "nll_loss");
  Shape wanted = without_axes(x.shape(), Axes(axis));
  if (!decide_equal(in[1].shape(), wanted))
    fail("nll_loss: targets must be classes of shape {}: {} (inputs {})", wanted, *type_of(in[1]),
         *type_of(x));
  Tensor counted, targets = in[1];
  if (a.ignore_index) {
    counted = tn::not_equal(targets, *a.ignore_index);
    targets = tn::where(counted, targets, 0);
  }
  check_bounds("nll_loss", targets, *type_of(x), axis, Negative::is_outside);
  Tensor known = tn::logical_and(tn::greater_equal(targets, 0), tn::less(targets, x.shape()[axis]));
  Tensor at = tn::reshape(targets, without_axes(x.shape(), Axes(axis), true));
  Tensor chosen = tn::reshape(read_along(x, at, axis), targets.shape());
  Tensor loss = tn::where(known, -chosen, std::numeric_limits<double>::quiet_NaN());
  return {counted.defined() ? reduced_of(loss, a.reduction, counted) : reduced(loss, a.reduction)};
}

struct Logs {
  Tensor of_true, of_false;
  explicit Logs(const Tensor& p)
      : of_true(tn::clip(tn::log(p), -100)), of_false(tn::clip(tn::log1p(-p), -100)) {}
};

Tensors bernoulli_loss_body(const NoAttrs&, const Tensors& in) {
  Logs logs(in[0]);
  return {-(in[1] * logs.of_true + (1 - in[1]) * logs.of_false)};
}

/// The slope is bounded but large, so that a prediction that is surely wrong still moves.
Tensors bernoulli_loss_jvp(const NoAttrs&, const Primal& primal, const Tensors& tangents) {
  const Tensor &p = primal.in[0], &targets = primal.in[1];
  Tensor moved;
  if (tangents[0].defined()) moved = (p - targets) / tn::maximum(p * (1 - p), 1e-12) * tangents[0];
  if (tangents[1].defined()) {
    Logs logs(p);
    Tensor by_target = (logs.of_false - logs.of_true) * tangents[1];
    moved = moved.defined() ? moved + by_target : by_target;
  }
  return {moved};
}

Tensors binary_cross_entropy_body(const BinaryAttrs& a, const Tensors& in) {
  check_alike(binary_cross_entropy.name, {{"inputs", in[0]}, {"targets", in[1]}});
  NoAttrs none;
  Tensor loss = a.with_logits ? tn::softplus(in[0]) - in[0] * in[1]
                              : call_with(bernoulli_loss, {in[0], in[1]}, &none)[0];
  return {reduced(weighted(binary_cross_entropy.name, loss, in[2]), a.reduction)};
}

Tensor huber(const Tensor& error, double delta) {
  Tensor size = tn::abs(error), curved = tn::minimum(size, delta);
  return 0.5 * tn::square(curved) + delta * (size - curved);
}

Tensors log_cosh_loss_body(const LossAttrs<Reduce::none>& a, const Tensors& in) {
  check_operands(log_cosh_loss, in);
  Tensor size = tn::abs(in[0] - in[1]);
  Tensor near = tn::log1p(2 * tn::square(tn::sinh(tn::minimum(size, 1) / 2)));  // cancels nothing
  Tensor far = size + tn::log1p(tn::exp(-2.0 * size)) - std::numbers::ln2;      // never overflows
  return {reduced(tn::where(tn::less(size, 1), near, far), a.reduction)};
}

Tensors gaussian_nll_loss_body(const GaussianAttrs& a, const Tensors& in) {
  check_operands(gaussian_nll_loss, in);
  const Tensor& vars = in[2];
  // A variance below eps has the slope at eps, which makes it grow again.
  Tensor bounded = vars + tn::stop_gradient(tn::maximum(vars, a.eps) - vars);
  Tensor loss = 0.5 * (tn::log(bounded) + tn::square(in[0] - in[1]) / bounded);
  if (a.full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return {reduced(loss, a.reduction)};
}

Tensors kl_div_loss_body(const AxisLossAttrs& a, const Tensors& in) {
  check_operands(kl_div_loss, in);
  Tensor p = tn::exp(in[1]);
  // What is impossible adds nothing, though its log is -inf.
  Tensor terms = p * tn::where(tn::greater(p, 0), in[1] - in[0], 0);
  return {reduced(tn::sum(terms, Axes(a.axis.i)), a.reduction)};
}

Tensors triplet_loss_body(const TripletAttrs<Reduce::none>& a, const Tensors& in) {
  check_operands(triplet_loss, in);
  auto distance = [&](const Tensor& others) {
    return tn::vector_norm(in[0] - others + a.eps, Axes(a.axis.i), false, a.p);
  };
  Tensor loss = tn::relu(distance(in[1]) - distance(in[2]) + a.margin);
  return {reduced(loss, a.reduction)};
}

Tensors cosine_similarity_loss_body(const CosineAttrs& a, const Tensors& in) {
  check_operands(cosine_similarity_loss, in);
  auto norm = [&](const Tensor& x) {
    return tn::maximum(tn::vector_norm(x, Axes(a.axis.i)), a.eps);
  };
  Tensor loss = tn::sum(in[0] * in[1], Axes(a.axis.i)) / (norm(in[0]) * norm(in[1]));
  return {reduced(loss, a.reduction)};
}

}  // namespace

constexpr auto cross_entropy_loss_def = Composite<CrossEntropyLossAttrs>{
    .doc =
        "`cross_entropy` with weights: minus the log of the probability that `softmax(logits)` "
        "gives the targets, which are classes, without `axis`, or probabilities like `logits`. "
        "`weights` multiply the losses. Those of class `ignore_index` are 0 and do not count in "
        "the mean. Python calls it `tn.nn.losses.cross_entropy`.",
    .module = "nn.losses",
    .args = {"logits", "targets", "?weights"},
    .body = rule<cross_entropy_loss_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], i64[2]", "", 0, 2},
                {"f32[2,3], i64[2], f32[2]", "reduction=mean, ignore_index=1", 0, 2}},
};
TN_OP(cross_entropy_loss);

constexpr auto nll_loss_def = Composite<NllAttrs>{
    .doc =
        "Minus the log probability, in `inputs`, of the target classes, which are without "
        "`axis`. Those of class `ignore_index` are 0 and do not count in the mean. A class "
        "outside the range is an error, which compiled code checks under `debug_indices` only; "
        "otherwise its loss is NaN.",
    .module = "nn.losses",
    .args = {"inputs", "targets"},
    .body = rule<nll_loss_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], i64[2]", "", 0, 2},
                {"f32[2,3,4], i64[2,4]", "axis=1, reduction=mean, ignore_index=1", 0, 2}},
};
TN_OP(nll_loss);

constexpr auto bernoulli_loss_def = Composite<>{
    .doc =
        "Minus the log of the probability of targets 0 and 1 (or between), of which `p` is that "
        "of 1.",
    .args = {"p", "targets"},
    .recorded = true,
    .surface = false,
    .prepare = [](NoAttrs&, Tensors& in) { promote_all(in, "binary_cross_entropy", floats, true); },
    .body = rule<bernoulli_loss_body>,
    .jvp = rule<bernoulli_loss_jvp>,
};
TN_OP(bernoulli_loss);

constexpr auto binary_cross_entropy_def = Composite<BinaryAttrs>{
    .doc =
        "Minus the log of the probability of targets 0 and 1 (or between). `inputs` are logits, "
        "or the probabilities of 1 when not `with_logits`. The log of a probability counts as "
        "at least -100. `weights` multiply the losses.",
    .module = "nn.losses",
    .args = {"inputs", "targets", "?weights"},
    .body = rule<binary_cross_entropy_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]", "", 0, 1},
                {"f32[4], f32[4], f32[4]", "with_logits=false, reduction=none", 0.1, 0.9}},
};
TN_OP(binary_cross_entropy);

constexpr auto mse_loss_def = Composite<LossAttrs<Reduce::mean>>{
    .doc = "The squared differences.",
    .module = "nn.losses",
    .args = {"predictions", "targets"},
    .body = [](const LossAttrs<Reduce::mean>& a, const Tensors& in) -> Tensors {
      check_operands(mse_loss, in);
      return {reduced(tn::square(in[0] - in[1]), a.reduction)};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[4], f32[4]", "reduction=none"}},
};
TN_OP(mse_loss);

constexpr auto l1_loss_def = Composite<LossAttrs<Reduce::mean>>{
    .doc = "The absolute differences.",
    .module = "nn.losses",
    .args = {"predictions", "targets"},
    .body = [](const LossAttrs<Reduce::mean>& a, const Tensors& in) -> Tensors {
      check_operands(l1_loss, in);
      return {reduced(tn::abs(in[0] - in[1]), a.reduction)};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]", "reduction=sum"}},
};
TN_OP(l1_loss);

constexpr auto huber_loss_def = Composite<HuberAttrs<Reduce::none>>{
    .doc = "Half the squared difference up to `delta`, and from there on along its tangent.",
    .module = "nn.losses",
    .args = {"inputs", "targets"},
    .body = [](const HuberAttrs<Reduce::none>& a, const Tensors& in) -> Tensors {
      check_operands(huber_loss, in);
      check_positive(huber_loss, "delta", a.delta);
      return {reduced(huber(in[0] - in[1], a.delta), a.reduction)};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]", "delta=0.5"}},
};
TN_OP(huber_loss);

constexpr auto smooth_l1_loss_def = Composite<SmoothL1Attrs>{
    .doc =
        "`huber_loss` with `delta=beta`, divided by `beta`: absolute differences, smooth around "
        "0.",
    .module = "nn.losses",
    .args = {"predictions", "targets"},
    .body = [](const SmoothL1Attrs& a, const Tensors& in) -> Tensors {
      check_operands(smooth_l1_loss, in);
      if (a.beta == 0) return {reduced(tn::abs(in[0] - in[1]), a.reduction)};
      check_positive(smooth_l1_loss, "beta", a.beta);
      return {reduced(huber(in[0] - in[1], a.beta) / a.beta, a.reduction)};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]", "beta=0.5, reduction=none"}},
};
TN_OP(smooth_l1_loss);

constexpr auto log_cosh_loss_def = Composite<LossAttrs<Reduce::none>>{
    .doc = "`log(cosh(inputs - targets))`: like half the square near 0, like the size far from it.",
    .module = "nn.losses",
    .args = {"inputs", "targets"},
    .body = rule<log_cosh_loss_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]"}},
};
TN_OP(log_cosh_loss);

constexpr auto gaussian_nll_loss_def = Composite<GaussianAttrs>{
    .doc =
        "Minus the log density of `targets` for normal variables with means `inputs`. `vars` "
        "are their variances, taken as at least `eps`; the constant term is there when `full`.",
    .module = "nn.losses",
    .args = {"inputs", "targets", "vars"},
    .body = rule<gaussian_nll_loss_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3], f32[2,3]", "full=true, reduction=none", 0.5, 2}},
};
TN_OP(gaussian_nll_loss);

constexpr auto kl_div_loss_def = Composite<AxisLossAttrs>{
    .doc =
        "How far `inputs` are from `targets`, both log probabilities along `axis`: "
        "`sum(exp(targets) * (targets - inputs))`.",
    .module = "nn.losses",
    .args = {"inputs", "targets"},
    .body = rule<kl_div_loss_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]"}},
};
TN_OP(kl_div_loss);

constexpr auto hinge_loss_def = Composite<LossAttrs<Reduce::none>>{
    .doc = "`max(0, 1 - inputs * targets)`, with targets -1 and 1.",
    .module = "nn.losses",
    .args = {"inputs", "targets"},
    .body = [](const LossAttrs<Reduce::none>& a, const Tensors& in) -> Tensors {
      check_operands(hinge_loss, in);
      return {reduced(tn::relu(1 - in[0] * in[1]), a.reduction)};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]"}},
};
TN_OP(hinge_loss);

constexpr auto margin_ranking_loss_def = Composite<MarginAttrs<Reduce::none>>{
    .doc =
        "`max(0, margin - targets * (inputs1 - inputs2))`. A target is 1 where the first input "
        "should be the larger one, and -1 otherwise.",
    .module = "nn.losses",
    .args = {"inputs1", "inputs2", "targets"},
    .body = [](const MarginAttrs<Reduce::none>& a, const Tensors& in) -> Tensors {
      check_operands(margin_ranking_loss, in);
      return {reduced(tn::relu(a.margin - in[2] * (in[0] - in[1])), a.reduction)};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3], f32[2,3]", "margin=0.5"}},
};
TN_OP(margin_ranking_loss);

constexpr auto triplet_loss_def = Composite<TripletAttrs<Reduce::none>>{
    .doc =
        "`max(0, d(anchors, positives) - d(anchors, negatives) + margin)`, where `d(x, y)` is "
        "the norm of order `p` of `x - y + eps` along `axis`.",
    .module = "nn.losses",
    .args = {"anchors", "positives", "negatives"},
    .body = rule<triplet_loss_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3], f32[2,3]"}},
};
TN_OP(triplet_loss);

constexpr auto cosine_similarity_loss_def = Composite<CosineAttrs>{
    .doc =
        "The cosine of the angle between vectors along `axis`, 1 when they point the same way. "
        "Norms count as at least `eps`.",
    .module = "nn.losses",
    .args = {"x1", "x2"},
    .body = rule<cosine_similarity_loss_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3], f32[2,3]"}},
};
TN_OP(cosine_similarity_loss);

}  // namespace tn::ops
