// Activation functions. Most are one scalar formula, so that narrow floats are rounded once. Those
// of `nn` are composites.
#include <cmath>

#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/slopes.h"
#include "tenon/operators.h"

namespace tn::ops {

using loop::constant_like;

static S clamp(S x, double low, double high) {
  return sc::min(sc::max(x, constant_like(x, low)), constant_like(x, high));
}

// log(1 + exp(x)) without overflow, and accurate on both sides.
static S softplus_of(S x) {
  return sc::max(x, constant_like(x, 0)) + sc::log1p(sc::exp(-sc::abs(x)));
}

constexpr auto relu_def = Elementwise<>{
    .doc = "`maximum(x, 0)`; NaN stays NaN. The derivative at 0 is 0.",
    .types = reals,
    .scalar = [](S x) { return sc::max(x, constant_like(x, 0)); },
    .partials = {[](T t, T x) { return tn::where(x > 0, t, 0); }},
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(relu);

constexpr auto relu6_def = Elementwise<>{
    .doc = "`x` limited to [0, 6]; NaN stays NaN. The derivative at both ends is 0.",
    .types = reals,
    .scalar = [](S x) { return clamp(x, 0, 6); },
    .partials = {[](T t, T x) { return where_inside(t, x, 0, 6); }},
    .samples = {{"f32[2,3]", "", -3, 9}, {"f32[]"}},
};
TN_OP(relu6);

struct LeakyReluAttrs {
  double negative_slope = 0.01;
  static constexpr void fields(auto& a, auto&& f) { f("negative_slope", a.negative_slope); }
};

constexpr auto leaky_relu_def = Elementwise<LeakyReluAttrs>{
    .doc =
        "`x`, times `negative_slope` where it is negative. The derivative at 0 is "
        "`negative_slope`.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](const LeakyReluAttrs& a,
                 S x) { return sc::select(x < 0.0, x * a.negative_slope, x); },
    .partials = {[](const LeakyReluAttrs& a, T t, T x) {
      return tn::where(x > 0, t, t * a.negative_slope);
    }},
    .samples = {{"f32[2,3]"}, {"f32[4]", "negative_slope=0.2"}, {"f32[]"}},
};
TN_OP(leaky_relu);

constexpr auto sigmoid_def = Elementwise<>{
    .doc = "`1 / (1 + exp(-x))`, between 0 and 1.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::sigmoid(x); },
    .partials = {[](T t, T, T out) { return t * out * (1 - out); }},
    .samples = {{"f32[2,3]"}, {"f32[]", "", -30, 30}},
};
TN_OP(sigmoid);

constexpr auto log_sigmoid_def = Elementwise<>{
    .doc = "`log(sigmoid(x))`, accurate where it is small and without overflow where it is large.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return -softplus_of(-x); },
    .partials = {[](T t, T x) { return t * tn::sigmoid(-x); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[4]", "", -50, 50}},
};
TN_OP(log_sigmoid);

constexpr auto silu_def = Elementwise<>{
    .doc = "`x * sigmoid(x)`.",
    .aliases = {"swish"},
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return x * sc::sigmoid(x); },
    .partials = {[](T t, T x) {
      return times_slope(t, x, [](T v) {
        Tensor s = tn::sigmoid(v);
        return s * (1 + v * (1 - s));
      });
    }},
    .samples = {{"f32[2,3]"}, {"f32[]", "", -30, 30}},
};
TN_OP(silu);

constexpr auto gelu_slope_def = Elementwise<>{
    .doc = "The derivative of `gelu`: `erfc(-x / sqrt(2)) / 2 + x * exp(-x**2 / 2) / sqrt(2 pi)`.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::gelu_slope(x); },
    .partials = {[](T t, T x) {
      return times_slope(t, x, [](T v) {
        Tensor squared = v * v;
        return (2 - squared) * tn::exp(squared * -0.5) * (M_SQRT1_2 * M_2_SQRTPI / 2);
      });
    }},
    .surface = false,
    .samples = {{"f32[2,3]"}, {"f32[4]", "", -6, 6}},
};
TN_OP(gelu_slope);

constexpr auto gelu_def = Elementwise<>{
    .doc = "`x` times the normal distribution function of `x`: `x * erfc(-x / sqrt(2)) / 2`.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return sc::gelu(x); },
    .partials = {[](T t, T x) {
      return times_slope(t, x, [](T v) { return emit(gelu_slope, {v}); });
    }},
    .samples = {{"f32[2,3]"}, {"f32[4]", "", -6, 6}},
};
TN_OP(gelu);

static constexpr double kCubic = 0.044715, kSteepness = M_SQRT2 * M_2_SQRTPI;

constexpr auto gelu_tanh_def = Elementwise<>{
    .doc =
        "The approximation of `gelu` by tanh: `x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))) / "
        "2`.",
    .aliases = {"gelu_approx"},
    .types = floats,
    .operands = Operands::inexact,
    .scalar =
        [](S x) {
          // (1 + tanh(u)) / 2 is sigmoid(2u), which keeps its accuracy where it is small.
          S u = (x + x * x * x * kCubic) * kSteepness;
          return x * sc::sigmoid(u);
        },
    .partials = {[](T t, T x) {
      return times_slope(t, x, [](T v) {
        Tensor squared = v * v;
        Tensor s = tn::sigmoid(v * (squared * (kCubic * kSteepness) + kSteepness));
        return s + v * s * (1 - s) * (squared * (3 * kCubic * kSteepness) + kSteepness);
      });
    }},
    .samples = {{"f32[2,3]"}, {"f32[4]", "", -6, 6}},
};
TN_OP(gelu_tanh);

constexpr auto softplus_def = Elementwise<>{
    .doc = "`log(1 + exp(x))` without overflow.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return softplus_of(x); },
    .partials = {[](T t, T x) { return t * tn::sigmoid(x); }},
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[4]", "", -50, 50}},
};
TN_OP(softplus);

constexpr auto softsign_def = Elementwise<>{
    .doc = "`x / (1 + abs(x))`, between -1 and 1.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return x / (sc::abs(x) + 1.0); },
    .partials = {[](T t, T x) { return t / tn::square(tn::abs(x) + 1); }},
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(softsign);

struct AlphaAttrs {
  double alpha = 1;
  static constexpr void fields(auto& a, auto&& f) { f("alpha", a.alpha); }
};

constexpr auto elu_def = Elementwise<AlphaAttrs>{
    .doc = "`x`, or `alpha * (exp(x) - 1)` where it is negative.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](const AlphaAttrs& a,
                 S x) { return sc::select(x < 0.0, sc::expm1(x) * a.alpha, x); },
    .partials = {[](const AlphaAttrs& a, T t, T x, T out) {
      return tn::where(x > 0, t, t * (out + a.alpha));
    }},
    .samples = {{"f32[2,3]"}, {"f32[4]", "alpha=0.5"}, {"f32[]"}},
};
TN_OP(elu);

static constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;

constexpr auto selu_def = Elementwise<>{
    .doc =
        "`scale * elu(x, alpha)` with the constants that keep mean 0 and variance 1 through "
        "layers.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar =
        [](S x) {
          return sc::select(x < 0.0, sc::expm1(x) * (kSeluScale * kSeluAlpha), x * kSeluScale);
        },
    .partials = {[](T t, T x, T out) {
      return tn::where(x > 0, t * kSeluScale, t * (out + kSeluScale * kSeluAlpha));
    }},
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(selu);

constexpr auto celu_def = Elementwise<AlphaAttrs>{
    .doc = "`x`, or `alpha * (exp(x / alpha) - 1)` where it is negative.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](const AlphaAttrs& a,
                 S x) { return sc::select(x < 0.0, sc::expm1(x / a.alpha) * a.alpha, x); },
    .partials = {[](const AlphaAttrs& a, T t, T x, T out) {
      return tn::where(x > 0, t, t * (out / a.alpha + 1));
    }},
    .samples = {{"f32[2,3]"}, {"f32[4]", "alpha=0.5"}, {"f32[]"}},
};
TN_OP(celu);

constexpr auto mish_def = Elementwise<>{
    .doc = "`x * tanh(softplus(x))`.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return x * sc::tanh(softplus_of(x)); },
    .partials = {[](T t, T x) {
      return times_slope(t, x, [](T v) {
        Tensor gate = tn::tanh(tn::softplus(v));
        return gate + v * tn::sigmoid(v) * (1 - gate * gate);
      });
    }},
    .samples = {{"f32[2,3]"}, {"f32[4]", "", -20, 20}},
};
TN_OP(mish);

constexpr auto hardswish_def = Elementwise<>{
    .doc = "`x * relu6(x + 3) / 6`.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S x) { return x * clamp(x + 3.0, 0, 6) / 6.0; },
    .partials = {[](T t, T x) {
      return tn::where(x < 3, tn::where(x > -3, t * (x / 3 + 0.5), 0), t);
    }},
    .samples = {{"f32[2,3]", "", -5, 5}, {"f32[]"}},
};
TN_OP(hardswish);

struct HardTanhAttrs {
  double min_val = -1, max_val = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("min_val", a.min_val), f("max_val", a.max_val);
  }
};

constexpr auto hard_tanh_def = Elementwise<HardTanhAttrs>{
    .doc =
        "`x` limited to [`min_val`, `max_val`]; NaN stays NaN. The derivative at both ends is 0.",
    .aliases = {"hardtanh"},
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](const HardTanhAttrs& a, S x) { return clamp(x, a.min_val, a.max_val); },
    .partials = {[](const HardTanhAttrs& a, T t, T x) {
      return where_inside(t, x, a.min_val, a.max_val);
    }},
    .samples = {{"f32[2,3]"}, {"f32[4]", "min_val=-0.5, max_val=0.25"}, {"f32[]"}},
};
TN_OP(hard_tanh);

constexpr auto gelu_fast_approx_def = Composite<>{
    .doc = "`x * sigmoid(1.702 x)`, a rough approximation of `gelu`.",
    .module = "nn",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      return {in[0] * tn::sigmoid(1.702 * in[0])};
    },
    .samples = {{"f32[2,3]"}},
};
TN_OP(gelu_fast_approx);

struct LastAxisAttrs {
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

constexpr auto glu_def = Composite<LastAxisAttrs>{
    .doc = "`a * sigmoid(b)`, where `a` and `b` are the halves of `x` along `axis`.",
    .module = "nn",
    .args = {"x"},
    .body = [](const LastAxisAttrs& a, const Tensors& in) -> Tensors {
      Tensors halves = tn::split(in[0], 2, a.axis);
      return {halves[0] * tn::sigmoid(halves[1])};
    },
    .samples = {{"f32[2,4]"}, {"f32[2,3]", "axis=0"}},
};
TN_OP(glu);

constexpr auto prelu_def = Composite<>{
    .doc = "`x`, multiplied by `weight` where it is negative.",
    .module = "nn",
    .args = {"x", "weight"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      return {tn::where(in[0] > 0, in[0], in[1] * in[0])};
    },
    .samples = {{"f32[2,3], f32[3]"}, {"f32[4], f32[]"}},
};
TN_OP(prelu);

constexpr auto relu2_def = Composite<>{
    .doc = "`relu(x)` squared.",
    .module = "nn",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      return {tn::square(tn::relu(in[0]))};
    },
    .samples = {{"f32[2,3]"}},
};
TN_OP(relu2);

constexpr auto softmin_def = Composite<LastAxisAttrs>{
    .doc = "`softmax(-x)` along `axis`.",
    .module = "nn",
    .args = {"x"},
    // -x of unsigned integers would wrap around.
    .prepare = [](LastAxisAttrs&, Tensors& in) { promote_all(in, "softmin", floats, true); },
    .body = [](const LastAxisAttrs& a, const Tensors& in) -> Tensors {
      return {tn::softmax(-in[0], Axes{a.axis})};
    },
    .precision = Precision::full,
    .samples = {{"f32[2,3]"}, {"f32[2,3]", "axis=0"}},
};
TN_OP(softmin);

struct ShrinkAttrs {
  double lambd = 0.5;
  static constexpr void fields(auto& a, auto&& f) { f("lambd", a.lambd); }
};

/// 0 where `x` is in [-limit, limit], else `otherwise`. The least integer has no magnitude.
static Tensor where_beyond(const Tensor& x, double limit, const Tensor& otherwise) {
  return tn::where((x <= limit) & (x >= -limit), 0, otherwise);
}

constexpr auto hard_shrink_def = Composite<ShrinkAttrs>{
    .doc = "`x` where its magnitude exceeds `lambd`, else 0.",
    .module = "nn",
    .args = {"x"},
    .body = [](const ShrinkAttrs& a, const Tensors& in) -> Tensors {
      return {where_beyond(in[0], a.lambd, in[0])};
    },
    .samples = {{"f32[2,3]"}, {"f32[4]", "lambd=0.25"}},
};
TN_OP(hard_shrink);

constexpr auto softshrink_def = Composite<ShrinkAttrs>{
    .doc = "`x` shrunk towards 0 by `lambd`; 0 where its magnitude is at most `lambd`.",
    .module = "nn",
    .args = {"x"},
    .body = [](const ShrinkAttrs& a, const Tensors& in) -> Tensors {
      return {where_beyond(in[0], a.lambd, in[0] - tn::sign(in[0]) * a.lambd)};
    },
    .samples = {{"f32[2,3]"}, {"f32[4]", "lambd=0.25"}},
};
TN_OP(softshrink);

struct StepAttrs {
  double threshold = 0;
  static constexpr void fields(auto& a, auto&& f) { f("threshold", a.threshold); }
};

constexpr auto step_def = Composite<StepAttrs>{
    .doc = "1 where `x` exceeds `threshold`, else 0. The derivative is 0.",
    .module = "nn",
    .args = {"x"},
    .body = [](const StepAttrs& a, const Tensors& in) -> Tensors {
      return {tn::astype(in[0] > a.threshold, in[0].dtype())};
    },
    .samples = {{"f32[2,3]"}, {"f32[4]", "threshold=0.25"}},
};
TN_OP(step);

}  // namespace tn::ops
