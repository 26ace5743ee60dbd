#include "ir/number.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/element.h"
#include "ir/emit.h"
#include "ir/trace.h"

namespace tn {

namespace ops {
extern const OpDef astype, copy, size_value;
}

Kind kind_of_number(const Tensor& number) {
  return is_scalar(*number.node()) ? scalar_value(*number.node()).kind : kind_of(number.dtype());
}

DType wide_dtype(Kind kind) { return kind < Kind::floating ? DType::i64 : DType::f64; }

Tensor as_number(Tensor x) {
  if (x.node()->outs > 1) x = emit(ops::copy, {x});  // the mark is the node's
  x.node()->weak = true;
  return x;
}

Tensor size_as(Dim size, DType type, bool number) {
  Tensor value = emit(ops::size_value, {}, SizeAttrs{size});
  return number ? as_number(std::move(value)) : cast_to(value, type);
}

Tensor number_as(const Tensor& number, DType type) {
  if (is_scalar(*number.node())) return make_scalar(scalar_value(*number.node()), type, false);
  return number.dtype() == type ? emit(ops::copy, {number}) : emit(ops::astype, {number}, type);
}

Tensor settled(const Tensor& number) {
  return number_as(number, default_dtype(kind_of_number(number)));
}

void check_fits(std::string_view op, const Tensor& number, DType type) {
  if (!is_integer(type)) return;
  if (!is_scalar(*number.node())) {
    if (type != DType::i64 && kind_of_number(number) != Kind::boolean) fail_unknown_value();
    return;
  }
  check_fits(op, scalar_value(*number.node()), type);
}

namespace {

const Scalar* known(const Tensor& number) {
  return is_scalar(*number.node()) ? &scalar_value(*number.node()) : nullptr;
}

/// Whether a product stays far inside of i64: given integers have at most 53 bits.
bool is_small_factor(const Tensor& number) {
  constexpr int64_t kMost = 512;
  const Scalar* s = known(number);
  return s && s->kind <= Kind::integer && s->integer >= -kMost && s->integer <= kMost;
}

bool is_whole(const Tensor& number) {
  const Scalar* s = known(number);
  return kind_of_number(number) < Kind::floating || (s && std::trunc(s->real) == s->real);
}

/// Whether the op gives what Python's operator does, whatever the numbers are. Python's integers do
/// not overflow, its `//` and `%` of floats round in ways of their own, an integer to the power of
/// another may be a fraction, and a root complex.
bool is_pythons(std::string_view symbol, const Tensors& in, Kind widest) {
  constexpr std::string_view kBoth[] = {"+", "-", "/", "<", "<=", "==", "!=", ">", ">="};
  if (symbol.empty() || std::ranges::count(kBoth, symbol)) return true;  // abs has none
  bool integers = widest < Kind::floating;
  if (symbol == "*") return !integers || is_small_factor(in[0]) || is_small_factor(in[1]);
  if (integers) return symbol == "//" || symbol == "%";
  const Scalar* base = known(in[0]);
  bool positive = base ? base->real > 0 : in[0].node()->op == &ops::size_value;
  return symbol == "**" && (is_whole(in[1]) || positive);
}

}  // namespace

Tensor number_op(const OpDef& op, Tensors in) {
  Kind widest = Kind::integer;
  for (const Tensor& t : in) widest = std::max(widest, kind_of_number(t));
  if (widest == Kind::complex || !is_pythons(op.symbol, in, widest)) fail_unknown_value();
  DType type = op.operands == Operands::inexact ? DType::f64 : wide_dtype(widest);
  for (Tensor& t : in) t = number_as(t, type);
  return as_number(emit_all(op, in, nullptr)[0]);
}

}  // namespace tn
