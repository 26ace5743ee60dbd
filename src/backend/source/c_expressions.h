#pragma once
// Scalars of LoopIR as expressions of C.
#include <string>
#include <string_view>

#include "loop/kernel.h"

namespace tn::source {

/// The prelude's name: tn_f32. Narrow floats are the unsigned integers that hold their bits.
std::string c_type(DType type);

std::string c_literal(const Scalar& value, DType type);
/// Of the interpreter's bits; `x` is an operand without side effects, as everywhere here.
std::string c_cast(DType from, DType to, std::string_view x);
std::string c_bitcast(DType from, DType to, std::string_view x);
std::string c_unary(loop::Op op, DType type, std::string_view a);
std::string c_binary(loop::Op op, DType type, std::string_view a, std::string_view b);

/// The operation of a monoid, and the result over nothing: sums begin with -0, which changes no
/// operand, and are `shown` as 0.
loop::Op c_monoid(loop::Monoid monoid);
std::string c_identity(loop::Monoid monoid, DType type, bool shown);

/// Indices over variables named p0, r1, s2 (axes) and v3 (values); constants have no variables.
class IndexPrinter {
 public:
  explicit IndexPrinter(const loop::Kernel& kernel);
  std::string index(PolyId poly) const;
  /// A conjunction; empty without a mask.
  std::string condition(loop::MaskId mask) const;
  const std::string& axis(size_t k) const { return names_[k]; }
  std::string value(loop::ValueId id) const;

 private:
  std::string atom(AtomId id) const;
  std::string term(const Term& term) const;

  const loop::Kernel& kernel_;
  std::vector<std::string> names_;
};

}  // namespace tn::source
