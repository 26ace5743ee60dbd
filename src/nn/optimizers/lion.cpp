// Lion.
#include "nn/optimizer_def.h"
#include "tenon/operators.h"

namespace tn::optim {

struct LionAttrs {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("betas", a.beta1, a.beta2, share), f("weight_decay", a.weight_decay);
  }
};

extern constinit const OptimizerDef lion = UpdateRule<LionAttrs>{
    .name = "Lion",
    .doc = R"(Lion (Chen and others, 2023), whose steps all have one size:

    w = w - learning_rate * sign(beta1 * m + (1 - beta1) * gradient)
    m = beta2 * m + (1 - beta2) * gradient

Its learning rate is 3 to 10 times smaller than that of AdamW, and its weight decay larger.
Weight decay is decoupled.)",
    .learning_rate = 1e-4,
    .decoupled = true,
    .state = {"m"},
    .update =
        [](const LionAttrs& a, OptimizerStep& u) {
          Tensor m = u["m"];
          u["m"] = a.beta2 * m + (1 - a.beta2) * u.gradient;
          return u.parameter - u.rate * sign(a.beta1 * m + (1 - a.beta1) * u.gradient);
        },
};

}  // namespace tn::optim
