// Choosing between values: by a condition, by size, by bounds.
#include <algorithm>

#include "base/error.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {

constexpr auto where_def = Elementwise<>{
    .doc =
        "`x1` where `condition` holds, `x2` elsewhere. The other one is not looked at: "
        "its NaN does not spread.",
    .args = {"condition", "x1", "x2"},
    .types = any_type,
    .operands = Operands::select,
    .scalar = [](S c, S a, S b) { return sc::select(c, a, b); },
    .complex = [](Z c, Z a,
                  Z b) { return Z{sc::select(c.re, a.re, b.re), sc::select(c.re, a.im, b.im)}; },
    .linear = Linear::jointly,
    .adjoint = [](const NoAttrs&, T ct, const Tensors& in,
                  int k) { return k == 1 ? tn::where(in[0], ct, 0) : tn::where(in[0], 0, ct); },
    .samples = {{"bool[2,3], f32[2,3], f32[2,3]"},
                {"bool[2,1], f32[3], f32[]"},
                {"bool[], f32[], f32[4]"}},
};
TN_OP(where);

// Operands that tie share alike.
static Tensor where_wins(T t, T wins, T ties) {
  return tn::where(wins, t, tn::where(ties, t * 0.5, 0));
}

constexpr auto maximum_def = Elementwise<>{
    .doc =
        "The larger operand; NaN where either is NaN. Where they are equal each gets half of the "
        "derivative.",
    .types = ordered,
    .scalar = [](S a, S b) { return sc::max(a, b); },
    .partials = {[](T t, T x, T y) { return where_wins(t, x > y, x == y); },
                 [](T t, T x, T y) { return where_wins(t, y > x, x == y); }},
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"f32[4], f32[]"}},
};
TN_OP(maximum);

constexpr auto minimum_def = Elementwise<>{
    .doc =
        "The smaller operand; NaN where either is NaN. Where they are equal each gets half of the "
        "derivative.",
    .types = ordered,
    .scalar = [](S a, S b) { return sc::min(a, b); },
    .partials = {[](T t, T x, T y) { return where_wins(t, x < y, x == y); },
                 [](T t, T x, T y) { return where_wins(t, y < x, x == y); }},
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"f32[4], f32[]"}},
};
TN_OP(minimum);

// A plain integer bound beyond the range of the type bounds nothing on one side and everything on
// the other: both are said by the end of the range.
static Tensor within_range(const Tensor& bound, DType type) {
  const Node& node = *bound.node();
  if (!is_scalar(node) || !node.weak || !is_integer(type)) return bound;
  const Scalar& value = scalar_value(node);
  if (value.kind != Kind::integer && value.kind != Kind::natural) return bound;
  int64_t bits = size_of(type) * 8;
  if (kind_of(type) == Kind::natural) {
    if (value.kind == Kind::natural)
      return bits == 64 ? bound : make_scalar((int64_t{1} << bits) - 1, type, false);
    int64_t most = bits == 64 ? INT64_MAX : (int64_t{1} << bits) - 1;
    return make_scalar(std::clamp<int64_t>(value.integer, 0, most), type, false);
  }
  int64_t most = INT64_MAX >> (64 - bits);
  int64_t number = value.kind == Kind::natural ? INT64_MAX : value.integer;
  return make_scalar(std::clamp<int64_t>(number, -most - 1, most), type, false);
}

static Tensor clip_body(const Tensors& in) {
  Tensor x = in[0];
  check_kind("clip", ordered, x.dtype());
  if (in.size() > 1 && in[1].defined()) x = tn::maximum(x, within_range(in[1], x.dtype()));
  if (in.size() > 2 && in[2].defined()) x = tn::minimum(x, within_range(in[2], x.dtype()));
  return x;
}

/// From the nearer end, so that weights of 0 and 1 give the ends exactly. Ends without a finite
/// difference are weighed, unless the result is one of them.
static Tensor lerp_body(const Tensors& in) {
  Tensors all = in;
  promote_all(all, "lerp", inexact, true);
  const Tensor &start = all[0], &end = all[1], &weight = all[2];
  Tensor whole = end - start, rest = 1 - weight;
  Tensor near = tn::where(tn::abs(weight) < 0.5, start + weight * whole, end - whole * rest);
  Tensor far = tn::where(weight == 1, end, start * rest + end * weight);
  far = tn::where((weight == 0) | (start == end), start, far);
  return tn::where(tn::isfinite(whole), near, far);
}

constexpr auto lerp_def = Composite<>{
    .doc = "`x + weight * (end - x)`: `x` for a weight of 0, `end` for 1.",
    .args = {"x", "end", "weight"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors { return {lerp_body(in)}; },
    .samples = {{"f32[2,3], f32[2,3], f32[]"}, {"f32[2,3], f32[3], f32[2,1]"}},
};
TN_OP(lerp);

constexpr auto clip_def = Composite<>{
    .doc =
        "`x` limited to [`min`, `max`]; a bound that is left out does not limit. NaN stays NaN. "
        "Where `min` exceeds `max` the result is `max`. Integer bounds beyond the type are its "
        "ends. The derivative in `x` is 1 between the bounds and 1/2 at them.",
    .aliases = {"clamp"},
    .args = {"x", "?min", "?max"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors { return {clip_body(in)}; },
    .samples = {{"f32[2,3], f32[2,3], f32[3]"}, {"f32[2,3], f32[]"}, {"f32[], f32[], f32[]"}},
};
TN_OP(clip);

}  // namespace tn::ops
