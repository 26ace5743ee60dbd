// Elementwise ops. Numbers that change no bit:
//
//     x - 0 = x + -0 = x·1 = x/1 = x                  x + 0 = x where x is never -0
//     x / 2ⁿ = x · 2⁻ⁿ, both rounded once              -(-x) = x
//     where(true, a, b) = a                            where(c, a, a) = a
//     where(not c, a, b) = where(c, b, a)              where(c, where(c, a, b), d) = where(c, a, d)
//     cast(cast(x)) = cast(x) where the first is exact
//
// And views behind them, so that a chain has one shape and nothing is computed twice that is only
// repeated:
//
//     f(broadcast(x), y) = f(x, y), repeated where y does not reach the shape
//     f(reshape(x), reshape(y)) = reshape(f(x, y))     f(permute(x)) = permute(f(x))
#include <cmath>

#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "passes/canon.h"

namespace tn {

namespace {

/// `x` as the whole result, if it has its element type.
Val as_result(Canon& canon, const Candidate& op, Val x) {
  return canon.type(x)->dtype == op.type->dtype ? canon.repeat(x, op.type->shape) : kNoVal;
}

bool is_number(Canon& canon, Val v, double wanted) {
  std::optional<Scalar> s = canon.number(v);
  return s && s->kind != Kind::complex && s->real == wanted &&
         std::signbit(s->real) == std::signbit(wanted);
}

/// Whether no element can be -0; false where that is not known.
bool is_never_negative_zero(Canon& canon, Val v) {
  GraphOp made = canon.maker(v);
  if (std::optional<Scalar> s = canon.number(v)) return s->real != 0 || !std::signbit(s->real);
  if (made.op == &ops::add)  // both would have to be
    for (Val x : {canon.in(made)[0], canon.in(made)[1]})
      if (canon.number(x) && is_never_negative_zero(canon, x)) return true;
  if (made.op == &ops::exp || made.op == &ops::abs || made.op == &ops::square) return true;
  return made.op == &ops::astype && !is_inexact(canon.type(canon.in(made)[0])->dtype);
}

/// Whether adding `zero` to `x` gives `x`.
bool adds_nothing(Canon& canon, Val x, Val zero) {
  if (is_number(canon, zero, -0.0)) return true;
  return is_number(canon, zero, 0.0) &&
         (!is_inexact(canon.type(x)->dtype) || is_never_negative_zero(canon, x));
}

Val drop_neutral(Canon& canon, const Candidate& op) {
  if (op.in.size() != 2 || is_complex(op.type->dtype)) return kNoVal;
  Val a = op.in[0], b = op.in[1];
  if (op.op == &ops::add && adds_nothing(canon, a, b)) return as_result(canon, op, a);
  if (op.op == &ops::add && adds_nothing(canon, b, a)) return as_result(canon, op, b);
  if (op.op == &ops::subtract && is_number(canon, b, 0.0)) return as_result(canon, op, a);
  if (op.op == &ops::divide && is_number(canon, b, 1.0)) return as_result(canon, op, a);
  if (op.op == &ops::multiply && is_number(canon, b, 1.0)) return as_result(canon, op, a);
  if (op.op == &ops::multiply && is_number(canon, a, 1.0)) return as_result(canon, op, b);
  return kNoVal;
}

Val multiply_by_reciprocal(Canon& canon, const Candidate& op) {
  if (op.op != &ops::divide || is_complex(op.type->dtype)) return kNoVal;
  std::optional<Scalar> s = canon.number(op.in[1]);
  int exponent = 0;
  if (!s || std::abs(std::frexp(s->real, &exponent)) != 0.5) return kNoVal;
  int most = op.type->dtype == DType::f16 ? 14 : 100;  // so that the reciprocal is normal
  if (std::abs(exponent - 1) > most) return kNoVal;
  Val by = canon.add_number(Scalar(1 / s->real), canon.type(op.in[1])->dtype);
  return canon.repeat(canon.add(ops::multiply, nullptr, {op.in[0], by}), op.type->shape);
}

/// Ops that are their operand, or undo themselves.
Val drop_identity(Canon& canon, const Candidate& op) {
  static const OpDef* const kIdentities[] = {&ops::stop_gradient, &ops::positive};
  static const OpDef* const kInvolutions[] = {&ops::negative, &ops::logical_not,
                                              &ops::bitwise_invert};
  static const OpDef* const kIdempotent[] = {&ops::maximum, &ops::minimum, &ops::logical_and,
                                             &ops::logical_or};
  if (std::ranges::count(kIdentities, op.op)) return op.in[0];
  if (std::ranges::count(kInvolutions, op.op)) return canon.operand_of(op.in[0], *op.op);
  if (std::ranges::count(kIdempotent, op.op) && op.in[0] == op.in[1])
    return as_result(canon, op, op.in[0]);
  return kNoVal;
}

Val simplify_where(Canon& canon, const Candidate& op) {
  if (op.op != &ops::where) return kNoVal;
  Val c = op.in[0], a = op.in[1], b = op.in[2];
  if (std::optional<Scalar> s = canon.number(c)) return as_result(canon, op, s->real != 0 ? a : b);
  if (a == b) return as_result(canon, op, a);
  auto choose = [&](Val cond, Val x, Val y) {
    return canon.repeat(canon.add(*op.op, op.attrs, {cond, x, y}), op.type->shape);
  };
  if (Val x = canon.operand_of(c, ops::logical_not); x != kNoVal) return choose(x, b, a);
  GraphOp then = canon.maker(a), otherwise = canon.maker(b);
  if (then.op == &ops::where && canon.in(then)[0] == c) return choose(c, canon.in(then)[1], b);
  if (otherwise.op == &ops::where && canon.in(otherwise)[0] == c)
    return choose(c, a, canon.in(otherwise)[2]);
  return kNoVal;
}

/// Bits of magnitude that the integers of a type need, or that a float holds exactly.
int exact_bits(DType type) {
  switch (type) {
    case DType::f64:
      return 53;
    case DType::f32:
      return 24;
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    case DType::b1:
      return 1;
    default:
      return static_cast<int>(size_of(type)) * 8 - (kind_of(type) == Kind::integer);
  }
}

/// Whether every value of `from` is one of `to`.
bool holds(DType to, DType from) {
  if (to == from) return true;
  if (is_complex(from) || is_complex(to) || is_storage_only(from) || is_storage_only(to) ||
      to == DType::b1)
    return false;
  if (is_float(from))
    return is_float(to) && exact_bits(to) >= exact_bits(from) && size_of(to) > size_of(from);
  if (kind_of(from) == Kind::integer && kind_of(to) == Kind::natural) return false;
  return exact_bits(to) >= exact_bits(from);
}

Val merge_casts(Canon& canon, const Candidate& op) {
  if (op.op != &ops::astype) return kNoVal;
  if (canon.type(op.in[0]) == op.type) return op.in[0];
  Val x = canon.operand_of(op.in[0], ops::astype);
  if (x == kNoVal) return kNoVal;
  DType first = canon.type(x)->dtype, middle = canon.type(op.in[0])->dtype, last = op.type->dtype;
  if (!holds(middle, first) || is_complex(last)) return kNoVal;
  // Integers wrap, floats saturate: the way through a float must not be the one that clips.
  bool clips = is_float(middle) && !is_float(first) && !is_float(last) && !holds(last, first);
  return clips && last != DType::b1 ? kNoVal : canon.add(*op.op, op.attrs, {x});
}

Val compute_before_repeating(Canon& canon, const Candidate& op) {
  std::vector<Val> in = op.in;
  for (Val& v : in) {
    if (Val x = canon.operand_of(v, ops::broadcast_to); x != kNoVal) v = x;
    Val x = canon.operand_of(v, ops::reshape);
    if (x != kNoVal && canon.shape(x).rank() < op.type->rank() &&
        identical(canon.shape(v), ops::with_leading_ones(canon.shape(x), op.type->rank())))
      v = x;
  }
  if (in == op.in) return kNoVal;
  return canon.repeat(canon.add(*op.op, op.attrs, in), op.type->shape);
}

/// How many axes at the end two shapes have in common.
int common_tail(const Shape& a, const Shape& b) {
  int n = 0;
  while (n < std::min(a.rank(), b.rank()) && identical(a[a.rank() - 1 - n], b[b.rank() - 1 - n]))
    ++n;
  return n;
}

/// Operands of full shape are all reshapes of one shape; others meet the axes both have at the end.
Val compute_before_reshape(Canon& canon, const Candidate& op) {
  std::vector<Val> in = op.in;
  std::optional<Shape> before;
  for (Val& v : in) {
    Val x = canon.operand_of(v, ops::reshape);
    if (x == kNoVal || !identical(canon.type(v)->shape, op.type->shape)) continue;
    if (before && !identical(*before, canon.shape(x))) return kNoVal;
    before = canon.shape(x), v = x;
  }
  if (!before) return kNoVal;
  int tail = common_tail(*before, op.type->shape);
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] == op.in[i] && canon.shape(in[i]).rank() > tail) return kNoVal;
  return canon.reshape(canon.add(*op.op, op.attrs, in), op.type->shape);
}

Val compute_before_permute(Canon& canon, const Candidate& op) {
  std::vector<Val> in = op.in;
  const Attrs* perm = nullptr;
  for (Val& v : in) {
    if (canon.shape(v).rank() == 0) continue;
    GraphOp made = canon.maker(v);
    if (made.op != &ops::permute_dims || (perm && made.attrs != perm)) return kNoVal;
    if (!identical(canon.type(v)->shape, op.type->shape)) return kNoVal;
    perm = made.attrs, v = canon.in(made)[0];
  }
  if (!perm) return kNoVal;
  return canon.add(ops::permute_dims, perm, {canon.add(*op.op, op.attrs, in)});
}

}  // namespace

std::span<const CanonRule> elementwise_rules() {
  static constexpr CanonRule kRules[] = {
      drop_identity,
      drop_neutral,
      multiply_by_reciprocal,
      simplify_where,
      merge_casts,
      join_parts,
      compute_before_repeating,
      compute_before_reshape,
      compute_before_permute,
  };
  return kRules;
}

}  // namespace tn
