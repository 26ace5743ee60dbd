// Comparisons and logic.
#include "ir/number.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/ops.h"

namespace tn::ops {

// A plain integer that the tensor's type cannot hold still compares exactly: as a 64-bit one.
static void keep_exact(Tensor& number, const Tensor& other) {
  const Node& node = *number.node();
  if (!is_scalar(node) || !node.weak || !is_integer(other.dtype()) || other.node()->weak) return;
  const Scalar& value = scalar_value(node);
  if (value.kind != Kind::integer && value.kind != Kind::natural) return;
  bool natural = kind_of(other.dtype()) == Kind::natural;
  int64_t bits = size_of(other.dtype()) * 8 - (natural ? 0 : 1);
  bool beyond = value.kind == Kind::natural ? bits < 64 : bits < 63 && value.integer >> bits > 0;
  bool below = value.kind == Kind::integer && value.integer < 0 &&
               (natural || (bits < 63 && value.integer >> bits < -1));
  if (beyond || below)
    number = make_scalar(value, value.kind == Kind::natural ? DType::u64 : DType::i64, false);
}

// 1, 0 or -1 as `plain` (u64) is above, equal to or below `with_sign`.
static Tensor three_way(const Tensor& plain, const Tensor& with_sign) {
  Tensor other = tn::astype(with_sign, DType::u64);
  Tensor above = tn::logical_or(tn::less(with_sign, 0), tn::greater(plain, other));
  return tn::where(above, 1, tn::where(tn::less(plain, other), -1, 0));
}

// No type holds both u64 and signed integers, and f32 would lose bits: compare the outcome with 0.
static void compare_exactly(NoAttrs&, Tensors& in) {
  keep_exact(in[0], in[1]);
  keep_exact(in[1], in[0]);
  if (is_number(in[0]) || is_number(in[1])) return;
  Tensor zero = make_scalar(0, DType::i64, false);
  Kind a = kind_of(in[0].dtype()), b = kind_of(in[1].dtype());
  if (in[0].dtype() == DType::u64 && b == Kind::integer) {
    in = {three_way(in[0], in[1]), zero};
  } else if (in[1].dtype() == DType::u64 && a == Kind::integer) {
    in = {zero, three_way(in[1], in[0])};
  }
}

constexpr auto equal_def = Elementwise<>{
    .doc =
        "Whether the operands are equal. NaN equals nothing, not even itself. "
        "Integers of any types compare exactly.",
    .aliases = {"eq"},
    .symbol = "==",
    .types = every_type,
    .result = ResultType::boolean,
    .scalar = [](S a, S b) { return a == b; },
    .complex = [](Z a, Z b) { return Z{(a.re == b.re) & (a.im == b.im), {}}; },
    .prepare = rule<compare_exactly>,
    .samples = {{"f32[2,3], f32[2,3]", "", 0, 2},
                {"f32[2,1], f32[3]"},
                {"i32[4], i32[]", "", 0, 2}},
};
TN_OP(equal);

constexpr auto not_equal_def = Elementwise<>{
    .doc =
        "Whether the operands differ. NaN differs from everything. "
        "Integers of any types compare exactly.",
    .aliases = {"ne"},
    .symbol = "!=",
    .types = every_type,
    .result = ResultType::boolean,
    .scalar = [](S a, S b) { return a != b; },
    .complex = [](Z a, Z b) { return Z{(a.re != b.re) | (a.im != b.im), {}}; },
    .prepare = rule<compare_exactly>,
    .samples = {{"f32[2,3], f32[2,3]", "", 0, 2},
                {"f32[2,1], f32[3]"},
                {"i32[4], i32[]", "", 0, 2}},
};
TN_OP(not_equal);

constexpr auto less_def = Elementwise<>{
    .doc = "Whether `x1 < x2`; false where either is NaN. Integers of any types compare exactly.",
    .aliases = {"lt"},
    .symbol = "<",
    .types = ordered,
    .result = ResultType::boolean,
    .scalar = [](S a, S b) { return a < b; },
    .prepare = rule<compare_exactly>,
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"i32[4], i32[]"}},
};
TN_OP(less);

constexpr auto less_equal_def = Elementwise<>{
    .doc = "Whether `x1 <= x2`; false where either is NaN. Integers of any types compare exactly.",
    .aliases = {"le"},
    .symbol = "<=",
    .types = ordered,
    .result = ResultType::boolean,
    .scalar = [](S a, S b) { return a <= b; },
    .prepare = rule<compare_exactly>,
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"i32[4], i32[]"}},
};
TN_OP(less_equal);

constexpr auto greater_def = Elementwise<>{
    .doc = "Whether `x1 > x2`; false where either is NaN. Integers of any types compare exactly.",
    .aliases = {"gt"},
    .symbol = ">",
    .types = ordered,
    .result = ResultType::boolean,
    .scalar = [](S a, S b) { return a > b; },
    .prepare = rule<compare_exactly>,
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"i32[4], i32[]"}},
};
TN_OP(greater);

constexpr auto greater_equal_def = Elementwise<>{
    .doc = "Whether `x1 >= x2`; false where either is NaN. Integers of any types compare exactly.",
    .aliases = {"ge"},
    .symbol = ">=",
    .types = ordered,
    .result = ResultType::boolean,
    .scalar = [](S a, S b) { return a >= b; },
    .prepare = rule<compare_exactly>,
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"i32[4], i32[]"}},
};
TN_OP(greater_equal);

// Numbers count as true where they are not 0.
static void to_truth(NoAttrs&, Tensors& in) {
  for (Tensor& x : in) x = cast_to(x, DType::b1);
}

constexpr auto logical_and_def = Elementwise<>{
    .doc = "Whether both operands are true; numbers are true where they are not 0, NaN included.",
    .types = booleans,
    .scalar = [](S a, S b) { return a & b; },
    .prepare = rule<to_truth>,
    .samples = {{"bool[2,3], bool[2,3]"}, {"bool[2,1], bool[3]"}, {"f32[4], f32[4]"}},
};
TN_OP(logical_and);

constexpr auto logical_or_def = Elementwise<>{
    .doc = "Whether either operand is true; numbers are true where they are not 0, NaN included.",
    .types = booleans,
    .scalar = [](S a, S b) { return a | b; },
    .prepare = rule<to_truth>,
    .samples = {{"bool[2,3], bool[2,3]"}, {"bool[2,1], bool[3]"}, {"f32[4], f32[4]"}},
};
TN_OP(logical_or);

constexpr auto logical_xor_def = Elementwise<>{
    .doc =
        "Whether exactly one operand is true; numbers are true where they are not 0, NaN included.",
    .types = booleans,
    .scalar = [](S a, S b) { return a ^ b; },
    .prepare = rule<to_truth>,
    .samples = {{"bool[2,3], bool[2,3]"}, {"bool[2,1], bool[3]"}, {"f32[4], f32[4]"}},
};
TN_OP(logical_xor);

constexpr auto logical_not_def = Elementwise<>{
    .doc = "Whether the operand is false; numbers are false where they are 0.",
    .types = booleans,
    .scalar = [](S x) { return !x; },
    .prepare = rule<to_truth>,
    .samples = {{"bool[2,3]"}, {"f32[4]"}, {"bool[]"}},
};
TN_OP(logical_not);

struct IsCloseAttrs {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("rtol", a.rtol), f("atol", a.atol), f("equal_nan", a.equal_nan);
  }
};

static S within(const IsCloseAttrs& a, S distance, S size) {
  S finite = size < std::numeric_limits<double>::infinity();
  return finite & (distance <= size * a.rtol + a.atol);
}

constexpr auto isclose_def = Elementwise<IsCloseAttrs>{
    .doc =
        "Whether `abs(x1 - x2) <= atol + rtol * abs(x2)`, or both are the same infinity. "
        "With `equal_nan` two NaN are close.",
    .args = {"x1", "x2"},
    .types = inexact,
    .operands = Operands::inexact,
    .result = ResultType::boolean,
    .scalar =
        [](const IsCloseAttrs& a, S x, S y) {
          S close = within(a, sc::abs(x - y), sc::abs(y)) | (x == y);
          return a.equal_nan ? close | (sc::is_nan(x) & sc::is_nan(y)) : close;
        },
    .complex =
        [](const IsCloseAttrs& a, Z x, Z y) {
          S close = within(a, sc::hypot(x.re - y.re, x.im - y.im), sc::hypot(y.re, y.im));
          close = close | ((x.re == y.re) & (x.im == y.im));
          if (!a.equal_nan) return Z{close, {}};
          S nan = (sc::is_nan(x.re) | sc::is_nan(x.im)) & (sc::is_nan(y.re) | sc::is_nan(y.im));
          return Z{close | nan, {}};
        },
    .samples = {{"f32[2,3], f32[2,3]", "rtol=0.5"},
                {"f32[2,1], f32[3]", "atol=1.0, equal_nan=true"},
                {"f32[4], f32[]"}},
};
TN_OP(isclose);

constexpr auto allclose_def = Composite<IsCloseAttrs>{
    .doc = "Whether all elements are close, as `isclose` says; true when there are none.",
    .args = {"x1", "x2"},
    .body = [](const IsCloseAttrs& a, const Tensors& in) -> Tensors {
      return {tn::all(tn::isclose(in[0], in[1], a.rtol, a.atol, a.equal_nan))};
    },
    .samples = {{"f32[2,3], f32[2,3]", "rtol=0.5"}, {"f32[2,1], f32[3]", "atol=10.0"}},
};
TN_OP(allclose);

struct ArrayEqualAttrs {
  bool equal_nan = false;
  static constexpr void fields(auto& a, auto&& f) { f("equal_nan", a.equal_nan); }
};

static Tensor array_equal_body(const ArrayEqualAttrs& a, const Tensors& in) {
  if (!decide_equal(in[0].shape(), in[1].shape())) return make_scalar(false, DType::b1, false);
  Tensor same = tn::equal(in[0], in[1]);
  if (a.equal_nan) same = tn::logical_or(same, tn::logical_and(tn::isnan(in[0]), tn::isnan(in[1])));
  return tn::all(same);
}

constexpr auto array_equal_def = Composite<ArrayEqualAttrs>{
    .doc =
        "Whether the operands have the same shape and equal elements; with `equal_nan`, NaN equals "
        "NaN.",
    .args = {"x1", "x2"},
    .body = [](const ArrayEqualAttrs& a, const Tensors& in) -> Tensors {
      return {array_equal_body(a, in)};
    },
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,3], f32[3]"}, {"f32[4], f32[4]", "equal_nan=true"}},
};
TN_OP(array_equal);

}  // namespace tn::ops
