// Muon.
#include <cmath>

#include "nn/optimizer_def.h"
#include "tenon/operators.h"

namespace tn::optim {

enum class RateAdjustment : uint8_t { original, match_rms_adamw };
inline ChoiceNames choice_names(RateAdjustment) {
  static constexpr std::string_view kNames[] = {"original", "match_rms_adamw"};
  return kNames;
}

static constexpr Range few{[](double v) { return v >= 0 && v <= 1000; },
                           "at least 0 and at most 1000"};

struct MuonAttrs {
  double momentum = 0.95, weight_decay = 0.1;
  bool nesterov = true;
  int64_t ns_steps = 5;
  double eps = 1e-7;
  Maybe<RateAdjustment> adjust_lr_fn;
  static constexpr void fields(auto& a, auto&& f) {
    f("momentum", a.momentum, share), f("weight_decay", a.weight_decay), f("nesterov", a.nesterov);
    f("ns_steps", a.ns_steps, few), f("eps", a.eps), f("adjust_lr_fn", a.adjust_lr_fn);
  }
};

/// `x` with singular values of about 1, by products with the smaller of its squares. An iteration
/// makes a*s + b*s**3 + c*s**5 of a singular value. It need not converge to 1: values between 0.7
/// and 1.2 after few steps train as well (Jordan and others, 2024).
static Tensor orthogonal(const MuonAttrs& a, Tensor x) {
  if (x.shape()[0].value() > x.shape()[1].value())
    return permute_dims(orthogonal(a, permute_dims(x)));
  x = x / maximum(vector_norm(x), a.eps);  // no singular value above 1
  for (int64_t i = 0; i < a.ns_steps; ++i) {
    Tensor square = matmul(x, permute_dims(x));
    x = 3.4445 * x + matmul(-4.7750 * square + matmul(2.0315 * square, square), x);
  }
  return x;
}

static double rate_adjustment(const MuonAttrs& a, double rows, double columns) {
  if (a.adjust_lr_fn && *a.adjust_lr_fn == RateAdjustment::match_rms_adamw)
    return 0.2 * std::sqrt(std::max(rows, columns));
  return std::sqrt(std::max(1.0, rows / columns));
}

extern constinit const OptimizerDef muon = UpdateRule<MuonAttrs>{
    .name = "Muon",
    .doc = R"(Muon (Jordan and others, 2024): steps whose singular values are all about 1.

    m = momentum * m + (1 - momentum) * gradient
    w = w - rate * orthogonal(momentum * m + (1 - momentum) * gradient)

Without `nesterov` it is `orthogonal(m)`. `ns_steps` Newton-Schulz iterations make the matrix
orthogonal, in the type of the parameter and at least float32. A matrix with more rows than
columns has the rate `learning_rate * sqrt(rows / columns)`. With
`adjust_lr_fn="match_rms_adamw"` all have `0.2 * learning_rate * sqrt(max(rows, columns))`, and
take the learning rates of AdamW. Weight decay is decoupled.

It is for the matrices inside a model. Of parameters with more axes, as those of convolutions,
the axes after the first count as one; vectors take plain steps with momentum. Leave embeddings,
the last layer and vectors to another optimizer.)",
    .example = R"(hidden = lambda name, w: w.ndim > 1 and "embedding" not in name
optimizer = tn.optim.MultiOptimizer([tn.optim.Muon(0.02), tn.optim.AdamW()], [hidden]))",
    .decoupled = true,
    .state = {"m"},
    .update =
        [](const MuonAttrs& a, OptimizerStep& u) {
          Tensor m = u["m"] = a.momentum * u["m"] + (1 - a.momentum) * u.gradient;
          Tensor change = a.nesterov ? a.momentum * m + (1 - a.momentum) * u.gradient : m;
          if (change.rank() < 2) return u.parameter - u.rate * change;
          Tensor matrix = reshape(change, {change.shape()[0], -1});
          auto rows = static_cast<double>(matrix.shape()[0].value());
          auto columns = static_cast<double>(matrix.shape()[1].value());
          change = reshape(orthogonal(a, matrix), change.shape());
          return u.parameter - rate_adjustment(a, rows, columns) * u.rate * change;
        },
};

}  // namespace tn::optim
