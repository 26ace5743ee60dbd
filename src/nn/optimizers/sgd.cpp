// Stochastic gradient descent.
#include "nn/optimizer_def.h"
#include "tenon/operators.h"

namespace tn::optim {

struct SGDAttrs {
  double momentum = 0, weight_decay = 0, dampening = 0;
  bool nesterov = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("momentum", a.momentum, not_negative), f("weight_decay", a.weight_decay);
    f("dampening", a.dampening), f("nesterov", a.nesterov);
  }
};

extern constinit const OptimizerDef sgd = UpdateRule<SGDAttrs>{
    .name = "SGD",
    .doc = R"(Stochastic gradient descent, with momentum

    v = momentum * v + (1 - dampening) * gradient
    w = w - learning_rate * v

where the first `v` is the gradient. With `nesterov`, `gradient + momentum * v` replaces `v`.)",
    .check = [](const SGDAttrs& a) -> std::string_view {
      bool fits = !a.nesterov || (a.momentum != 0 && a.dampening == 0);
      return fits ? "" : "nesterov needs a momentum above 0 and no dampening";
    },
    .state = {{"v", [](const SGDAttrs& a, T w) { return zeros_if(a.momentum > 0, w); }}},
    .update =
        [](const SGDAttrs& a, OptimizerStep& u) {
          if (!(a.momentum > 0)) return u.parameter - u.rate * u.gradient;
          Tensor added = u.gradient;
          if (a.dampening != 0) added = where(u.step == 1, 1.0, 1 - a.dampening) * u.gradient;
          Tensor& v = u["v"];
          v = a.momentum * v + added;
          return u.parameter - u.rate * (a.nesterov ? u.gradient + a.momentum * v : v);
        },
};

}  // namespace tn::optim
