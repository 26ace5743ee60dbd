// Optimizers that scale gradients by running averages of their squares.
#include "nn/optimizer_def.h"
#include "tenon/operators.h"

namespace tn::optim {

struct RMSpropAttrs {
  double alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("alpha", a.alpha, share), f("eps", a.eps, not_negative), f("weight_decay", a.weight_decay);
    f("momentum", a.momentum, not_negative), f("centered", a.centered);
  }
};

extern constinit const OptimizerDef rmsprop = UpdateRule<RMSpropAttrs>{
    .name = "RMSprop",
    .doc = R"(RMSprop (Hinton, 2012):

    v = alpha * v + (1 - alpha) * gradient**2
    w = w - learning_rate * gradient / (sqrt(v) + eps)

`centered` subtracts the square of the gradient's running mean from `v`. With `momentum`, steps
accumulate: `b = momentum * b + gradient / (sqrt(v) + eps)`.)",
    .learning_rate = 1e-2,
    .state = {"v",
              {"b", [](const RMSpropAttrs& a, T w) { return zeros_if(a.momentum > 0, w); }},
              {"mean", [](const RMSpropAttrs& a, T w) { return zeros_if(a.centered, w); }}},
    .update =
        [](const RMSpropAttrs& a, OptimizerStep& u) {
          Tensor v = u["v"] = a.alpha * u["v"] + (1 - a.alpha) * square(u.gradient);
          if (a.centered) {
            u["mean"] = a.alpha * u["mean"] + (1 - a.alpha) * u.gradient;
            v = maximum(v - square(u["mean"]), 0);  // rounding may go below
          }
          Tensor change = u.gradient / (sqrt(v) + a.eps);
          if (a.momentum > 0) change = u["b"] = a.momentum * u["b"] + change;
          return u.parameter - u.rate * change;
        },
};

struct AdagradAttrs {
  double eps = 1e-10, weight_decay = 0, lr_decay = 0, initial_accumulator_value = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("eps", a.eps, not_negative), f("weight_decay", a.weight_decay);
    f("lr_decay", a.lr_decay, not_negative);
    f("initial_accumulator_value", a.initial_accumulator_value, not_negative);
  }
};

extern constinit const OptimizerDef adagrad = UpdateRule<AdagradAttrs>{
    .name = "Adagrad",
    .doc = R"(Adagrad (Duchi, Hazan and Singer, 2011):

    v = v + gradient**2
    w = w - learning_rate / (1 + (step - 1) * lr_decay) * gradient / (sqrt(v) + eps)

where `v` begins with `initial_accumulator_value`.)",
    .learning_rate = 1e-2,
    .state = {{"v", [](const AdagradAttrs& a,
                       T w) { return full_like(w, a.initial_accumulator_value); }}},
    .update =
        [](const AdagradAttrs& a, OptimizerStep& u) {
          Tensor v = u["v"] = u["v"] + square(u.gradient), rate = u.rate;
          if (a.lr_decay != 0) rate = rate / (1 + (u.step - 1) * a.lr_decay);
          return u.parameter - rate * u.gradient / (sqrt(v) + a.eps);
        },
};

struct AdaDeltaAttrs {
  double rho = 0.9, eps = 1e-6, weight_decay = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("rho", a.rho, share), f("eps", a.eps, not_negative), f("weight_decay", a.weight_decay);
  }
};

extern constinit const OptimizerDef adadelta = UpdateRule<AdaDeltaAttrs>{
    .name = "AdaDelta",
    .doc = R"(AdaDelta (Zeiler, 2012), which scales steps by the size of earlier steps:

    v = rho * v + (1 - rho) * gradient**2
    change = sqrt(u + eps) / sqrt(v + eps) * gradient
    u = rho * u + (1 - rho) * change**2
    w = w - learning_rate * change)",
    .alias = "Adadelta",
    .learning_rate = 1.0,
    .state = {"v", "u"},
    .update =
        [](const AdaDeltaAttrs& a, OptimizerStep& u) {
          u["v"] = a.rho * u["v"] + (1 - a.rho) * square(u.gradient);
          Tensor change = sqrt(u["u"] + a.eps) / sqrt(u["v"] + a.eps) * u.gradient;
          u["u"] = a.rho * u["u"] + (1 - a.rho) * square(change);
          return u.parameter - u.rate * change;
        },
};

}  // namespace tn::optim
