// Common divisors and multiples.
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/flat.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

Tensors promoted(std::string_view op, const Tensors& in) {
  Tensors both = in;
  promote_all(both, op, integers);
  Shape shape = broadcast(both[0].shape(), both[1].shape(), op);
  for (Tensor& x : both) x = tn::broadcast_to(tn::abs(x), shape);
  return both;
}

/// Euclid's algorithm, on all elements at once until the last one is done. The lowest number of a
/// type is its own magnitude, and remainders have its sign.
Tensor common_divisor(const Tensors& both) {
  auto go_on = [](const Tensors& at) -> Tensors { return {tn::any(at[1] != 0)}; };
  auto step = [](const Tensors& at) -> Tensors {
    Tensor done = at[1] == 0;
    return {tn::where(done, at[0], at[1]), tn::where(done, at[1], tn::remainder(at[0], at[1]))};
  };
  return tn::abs(flat::while_loop(go_on, step, both)[0]);
}

}  // namespace

constexpr auto gcd_def = Composite<>{
    .doc = "The greatest common divisor of the magnitudes of two integers; 0 of two zeros.",
    .args = {"x1", "x2"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      return {common_divisor(promoted("gcd", in))};
    },
    .samples = {{"i32[2,3], i32[2,3]", "", -60, 60},
                {"i64[4], i64[]", "", -60, 60},
                {"u8[2,1], u8[3]", "", 0, 200}},
};
TN_OP(gcd);

constexpr auto lcm_def = Composite<>{
    .doc =
        "The least common multiple of the magnitudes of two integers; 0 where one of them is. It "
        "wraps around where the type does not hold it.",
    .args = {"x1", "x2"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Tensors both = promoted("lcm", in);
      return {tn::floor_divide(both[0], common_divisor(both)) * both[1]};
    },
    .samples = {{"i32[2,3], i32[2,3]", "", -60, 60}, {"i64[4], i64[]", "", -60, 60}},
};
TN_OP(lcm);

}  // namespace tn::ops
