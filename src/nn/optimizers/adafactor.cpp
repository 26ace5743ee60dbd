// Adafactor.
#include "nn/optimizer_def.h"
#include "ops/matrices.h"
#include "tenon/operators.h"

namespace tn::optim {

static constexpr Range not_positive{[](double v) { return v <= 0; }, "at most 0"};

struct AdafactorAttrs {
  Maybe<double> least = {};
  double least_scale = 1e-3, clip_threshold = 1, decay_rate = -0.8;
  Maybe<double> beta_1 = {};
  double weight_decay = 0;
  bool scale_parameter = true, relative_step = true, warmup_init = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("eps", a.least, a.least_scale), f("clip_threshold", a.clip_threshold);
    f("decay_rate", a.decay_rate, not_positive), f("beta_1", a.beta_1, share);
    f("weight_decay", a.weight_decay), f("scale_parameter", a.scale_parameter);
    f("relative_step", a.relative_step), f("warmup_init", a.warmup_init);
  }
};

static Tensor rms(const Tensor& x) { return sqrt(mean(square(x))); }

/// Zeros for the means of a matrix along `axis`; none for a vector.
static Tensor means_along(int axis, const Tensor& w) {
  if (w.rank() < 2) return {};
  Shape shape = w.shape();
  shape[w.rank() + axis] = 1;
  return zeros(shape, w.dtype(), w.device());
}

/// The running mean of the squared gradient, of matrices as a product.
static Tensor mean_square(const AdafactorAttrs& a, OptimizerStep& u, double least) {
  Tensor share_of_new = pow(astype(u.step, u.gradient.dtype()), a.decay_rate);
  auto mean_of = [&](std::string_view name, const Tensor& value) {
    Tensor& known = u[name];
    return known = known + share_of_new * (value - known);
  };
  Tensor squares = square(u.gradient);
  if (u.gradient.rank() < 2) return mean_of("v", squares);
  Tensor row = mean_of("row", mean(squares, Axes(-1), true));
  Tensor column = mean_of("column", mean(squares, Axes(-2), true));
  return row / maximum(mean(row, Axes(-2), true), least) * column;
}

static Tensor rate_of(const AdafactorAttrs& a, const OptimizerStep& u) {
  Tensor step = astype(u.step, DType::f32), rate = a.warmup_init ? 1e-6 * step : u.rate;
  if (a.relative_step) rate = minimum(rate, rsqrt(step));
  return a.scale_parameter ? maximum(a.least_scale, rms(u.parameter)) * rate : rate;
}

extern constinit const OptimizerDef adafactor = UpdateRule<AdafactorAttrs>{
    .name = "Adafactor",
    .doc = R"(Adafactor (Shazeer and Stern, 2018), which keeps a row and a column of each matrix.

They are the running means of the squared gradients along the last two axes; their product
stands for the mean of each element. For vectors `v` itself is kept:

    kept = 1 - step**decay_rate
    v = kept * v + (1 - kept) * gradient**2
    u = gradient / max(sqrt(v), eps[0])
    w = w - rate * u / max(1, rms(u) / clip_threshold)

The rate is the learning rate, with `relative_step` at most `1 / sqrt(step)`; with
`scale_parameter` times `max(eps[1], rms(w))`. `warmup_init` replaces the learning rate by
`1e-6 * step`, and `beta_1` keeps a running mean of the changes. Weight decay is decoupled.
Without `eps[0]` it is the precision of the parameter.)",
    .learning_rate = 1e-2,
    .decoupled = true,
    .state = {{"row", [](const AdafactorAttrs&, T w) { return means_along(-1, w); }},
              {"column", [](const AdafactorAttrs&, T w) { return means_along(-2, w); }},
              {"v", [](const AdafactorAttrs&, T w) { return zeros_if(w.rank() < 2, w); }},
              {"m", [](const AdafactorAttrs& a, T w) { return zeros_if(a.beta_1.set, w); }}},
    .update =
        [](const AdafactorAttrs& a, OptimizerStep& u) {
          double least = a.least.value_or(ops::epsilon_of(u.parameter.dtype()));
          Tensor v = mean_square(a, u, least);
          Tensor change = u.gradient * rsqrt(maximum(v, least * least));
          change = change / maximum(1.0, rms(change) / a.clip_threshold);
          change = rate_of(a, u) * change;
          if (a.beta_1) change = u["m"] = *a.beta_1 * u["m"] + (1 - *a.beta_1) * change;
          return u.parameter - change;
        },
};

}  // namespace tn::optim
