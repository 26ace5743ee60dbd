// Rounding to whole numbers.
#include <cmath>

#include "base/error.h"
#include "ops/families.h"
#include "ops/op_decls.h"

namespace tn::ops {

constexpr auto floor_def = Elementwise<>{
    .doc = "The largest whole number not above `x`. Integers stay as they are.",
    .types = reals,
    .scalar = [](S x) { return is_float(x.type()) ? sc::floor(x) : x; },
    .gradient = Gradient::zero,
    .samples = {{"f32[2,3]", "", -9, 9}, {"f32[]"}},
};
TN_OP(floor);

constexpr auto ceil_def = Elementwise<>{
    .doc = "The smallest whole number not below `x`. Integers stay as they are.",
    .types = reals,
    .scalar = [](S x) { return is_float(x.type()) ? sc::ceil(x) : x; },
    .gradient = Gradient::zero,
    .samples = {{"f32[2,3]", "", -9, 9}, {"f32[]"}},
};
TN_OP(ceil);

constexpr auto trunc_def = Elementwise<>{
    .doc = "`x` without its fraction. Integers stay as they are.",
    .types = reals,
    .scalar = [](S x) { return is_float(x.type()) ? sc::trunc(x) : x; },
    .gradient = Gradient::zero,
    .samples = {{"f32[2,3]", "", -9, 9}, {"f32[]"}},
};
TN_OP(trunc);

struct RoundAttrs {
  int64_t decimals = 0;
  static constexpr void fields(auto& a, auto&& f) { f("decimals", a.decimals); }
};

static S round_to(const RoundAttrs& a, S x) {
  if (!is_float(x.type())) return x;
  if (a.decimals == 0) return sc::round(x);
  double power = std::pow(10.0, static_cast<double>(std::abs(a.decimals)));
  return a.decimals > 0 ? sc::round(x * power) / power : sc::round(x / power) * power;
}

constexpr auto round_def = Elementwise<RoundAttrs>{
    .doc =
        "The nearest whole number, or the nearest number with `decimals` decimals; halves go to "
        "the "
        "even neighbour. Integers stay as they are; of complex numbers both parts are rounded.",
    .aliases = {"rint"},
    .types = numeric,
    .scalar = [](const RoundAttrs& a, S x) { return round_to(a, x); },
    .complex = [](const RoundAttrs& a, Z z) { return Z{round_to(a, z.re), round_to(a, z.im)}; },
    .prepare =
        [](RoundAttrs& a, Tensors& in) {
          if (a.decimals > 300 || a.decimals < -300)
            fail("round: decimals out of range [-300, 300]: {} ({})", a.decimals, *type_of(in[0]));
          if (a.decimals < 0 && is_integer(in[0].dtype()))
            unsupported(Hint{"convert to a float first: astype(x, float64)"},
                        "round: integers with negative decimals: {} ({})", a.decimals,
                        *type_of(in[0]));
        },
    .gradient = Gradient::zero,
    .samples = {{"f32[2,3]", "", -9, 9}, {"f32[4]", "decimals=1"}, {"f32[]"}},
};
TN_OP(round);

}  // namespace tn::ops
