#include "ir/number.h"

#include "base/error.h"
#include "ir/emit.h"
#include "ir/trace.h"

namespace tn {

namespace ops {
extern const OpDef astype, copy;
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
    if (type != DType::i64) fail_unknown_value();
    return;
  }
  const Scalar& s = scalar_value(*number.node());
  if (!s.is_integral()) return;
  int bits = static_cast<int>(size_of(type)) * 8;
  bool fits;
  if (s.kind == Kind::natural)
    fits = type == DType::u64;
  else if (kind_of(type) == Kind::natural)
    fits = s.integer >= 0 && (bits == 64 || s.integer < int64_t{1} << bits);
  else
    fits = bits == 64 ||
           (s.integer >= -(int64_t{1} << (bits - 1)) && s.integer < int64_t{1} << (bits - 1));
  if (!fits) fail("{}: the number {} does not fit {}", op, s.integer, type);
}

/// Integers have more operators in common with Python than floats, whose `//` and `%` round in ways
/// of their own; an integer to the power of another may be a fraction.
static bool is_pythons(std::string_view symbol, Kind widest) {
  constexpr std::string_view kBoth[] = {"+", "-", "*", "/", "<", "<=", "==", "!=", ">", ">="};
  if (symbol.empty() || std::ranges::count(kBoth, symbol)) return true;  // abs has none
  return widest < Kind::floating ? symbol == "//" || symbol == "%" : symbol == "**";
}

Tensor number_op(const OpDef& op, Tensors in) {
  Kind widest = Kind::integer;
  for (const Tensor& t : in) widest = std::max(widest, kind_of_number(t));
  if (widest == Kind::complex || !is_pythons(op.symbol, widest)) fail_unknown_value();
  DType type = op.operands == Operands::inexact ? DType::f64 : wide_dtype(widest);
  for (Tensor& t : in) t = number_as(t, type);
  Tensor result = emit_all(op, in, nullptr)[0];
  return result.dtype() == DType::b1 ? result : as_number(std::move(result));
}

}  // namespace tn
