// Adam and its relatives.
#include <cmath>

#include "nn/optimizer_def.h"
#include "tenon/operators.h"

namespace tn::optim {

struct AdamAttrs {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool bias_correction = true;
  double weight_decay = 0;
  bool amsgrad = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("betas", a.beta1, a.beta2, share), f("eps", a.eps, not_negative);
    f("bias_correction", a.bias_correction), f("weight_decay", a.weight_decay);
    f("amsgrad", a.amsgrad);
  }
};

/// Those of Adam, in another order.
struct AdamWAttrs : AdamAttrs {
  constexpr AdamWAttrs() { weight_decay = 0.01; }
  static constexpr void fields(auto& a, auto&& f) {
    f("betas", a.beta1, a.beta2, share), f("eps", a.eps, not_negative);
    f("weight_decay", a.weight_decay), f("bias_correction", a.bias_correction);
    f("amsgrad", a.amsgrad);
  }
};

/// `x / (1 - beta**step)`, without the cancellation.
static Tensor over_weights(const Tensor& x, double beta, const Tensor& step) {
  return beta > 0 ? x / -expm1(step * std::log(beta)) : x / 1.0;
}

static Tensor adam_update(const AdamAttrs& a, OptimizerStep& u) {
  u["m"] = a.beta1 * u["m"] + (1 - a.beta1) * u.gradient;
  u["v"] = a.beta2 * u["v"] + (1 - a.beta2) * square(u.gradient);
  Tensor m = u["m"], v = u["v"];
  if (a.amsgrad) v = u["v_max"] = maximum(u["v_max"], v);
  if (a.bias_correction) m = over_weights(m, a.beta1, u.step), v = over_weights(v, a.beta2, u.step);
  return u.parameter - u.rate * m / (sqrt(v) + a.eps);
}

static Tensor largest_square(const AdamAttrs& a, T w) { return zeros_if(a.amsgrad, w); }

extern constinit const OptimizerDef adam = UpdateRule<AdamAttrs>{
    .name = "Adam",
    .doc = R"(Adam (Kingma and Ba, 2015):

    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    w = w - learning_rate * m / (sqrt(v) + eps)

`bias_correction` divides `m` and `v` by the sum of the weights of the gradients in them. With
`amsgrad`, the largest `v` so far replaces `v`.)",
    .state = {"m", "v", {"v_max", ops::rule<largest_square>}},
    .update = ops::rule<adam_update>,
};

extern constinit const OptimizerDef adamw = UpdateRule<AdamWAttrs>{
    .name = "AdamW",
    .doc = R"(Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

Large gradients do not reduce the decay.)",
    .example = R"(no_biases = lambda name, w: 0.1 if w.ndim > 1 else 0
optimizer = tn.optim.AdamW(1e-3, weight_decay=no_biases))",
    .base = &adam,
    .decoupled = true,
    .state = {"m", "v", {"v_max", ops::rule<largest_square>}},
    .update = ops::rule<adam_update>,
};

struct AdamaxAttrs {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("betas", a.beta1, a.beta2, share), f("eps", a.eps, not_negative);
    f("weight_decay", a.weight_decay);
  }
};

extern constinit const OptimizerDef adamax = UpdateRule<AdamaxAttrs>{
    .name = "Adamax",
    .doc = R"(Adam with the largest gradient in place of their mean square (Kingma and Ba, 2015):

    m = beta1 * m + (1 - beta1) * gradient
    u = max(beta2 * u, abs(gradient) + eps)
    w = w - learning_rate / (1 - beta1**step) * m / u)",
    .learning_rate = 2e-3,
    .state = {"m", "u"},
    .update =
        [](const AdamaxAttrs& a, OptimizerStep& u) {
          u["m"] = a.beta1 * u["m"] + (1 - a.beta1) * u.gradient;
          u["u"] = maximum(a.beta2 * u["u"], abs(u.gradient) + a.eps);
          return u.parameter - over_weights(u.rate, a.beta1, u.step) * u["m"] / u["u"];
        },
};

}  // namespace tn::optim
