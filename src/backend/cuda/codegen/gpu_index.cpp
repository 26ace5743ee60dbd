// Indices: the polynomials of loads, stores and masks, in 32 bits wherever they fit.
#include <algorithm>

#include "backend/cuda/codegen/gpu_emitter.h"
#include "ir/dim_program.h"

namespace tn::cuda {

static bool is_short(Bounds range) { return range.lo >= INT32_MIN && range.hi <= INT32_MAX; }

llvm::Type* Emitter::index_type(Dim count) const {
  constexpr int64_t kFurther = 1 << 20;
  bool fits = bounds(count).hi <= INT32_MAX - kFurther;
  return fits ? Type::getInt32Ty(b_.getContext()) : Type::getInt64Ty(b_.getContext());
}

// Sums and products are right in 32 bits where the result is, whatever their terms are.
llvm::Value* Emitter::position(PolyId poly, size_t e) {
  e = canonical(loop::axes_in(p_.kernel, poly), e);
  const PolyTable& polys = p_.kernel.polys;
  return once(1, poly, e, [&] {
    Type* type = is_short(polys.range(poly)) ? b_.getInt32Ty() : b_.getInt64Ty();
    Value* sum = number(type, polys.constant_of(poly));
    for (const Term& term : polys[poly].terms) sum = b_.CreateAdd(sum, term_value(term, e, type));
    return sum;
  });
}

llvm::Value* Emitter::term_value(const Term& term, size_t e, Type* type) {
  Value* product = number(type, term.coef);
  for (AtomId id : p_.kernel.polys.atoms_of(term.mono))
    product = b_.CreateMul(product, atom_value(id, e, type));
  return product;
}

llvm::Value* Emitter::atom_value(AtomId id, size_t e, Type* type) {
  const Atom& atom = p_.kernel.polys.atom(id);
  switch (atom.kind) {
    case AtomKind::axis: {
      Value* at = at_[canonical(loop::axis_bit(atom.a), e)][atom.a];
      return at ? as(at, type) : number(type, 0);
    }
    case AtomKind::value: {
      auto v = static_cast<ValueId>(atom.a);
      return as(ops_.cast(value(v, e), p_.value(v).type, DType::i64), type);
    }
    case AtomKind::symbol:
      return as(symbol(p_.kernel.polys.name_of(atom)), type);
    default:
      return as(divided(atom, e), type);
  }
}

// Division rounds down; a divisor of 0 stands under a false mask.
llvm::Value* Emitter::divided(const Atom& atom, size_t e) {
  const PolyTable& polys = p_.kernel.polys;
  Bounds of = polys.range(atom.a);
  bool fits = is_short(of) && is_short(polys.range(atom.b));
  Type* type = fits ? b_.getInt32Ty() : b_.getInt64Ty();
  Value *x = as(position(atom.a, e), type), *y = as(position(atom.b, e), type);
  if (atom.kind == AtomKind::min) return codegen::smaller(b_, x, y);
  if (atom.kind == AtomKind::max) return codegen::larger(b_, x, y);
  bool quotient = atom.kind == AtomKind::div;
  if (!polys.is_constant(atom.b) || polys.constant_of(atom.b) < 1)
    y = codegen::larger(b_, y, number(type, 1));
  if (of.lo >= 0) return quotient ? b_.CreateUDiv(x, y) : b_.CreateURem(x, y);
  return codegen::divided(b_, quotient, x, y);
}

llvm::Value* Emitter::symbol(std::string_view name) {
  auto at = std::find(s_.symbols.begin(), s_.symbols.end(), name);
  return threads_.param(size_t(symbol_param_[size_t(at - s_.symbols.begin())]));
}

llvm::Value* Emitter::size(Dim size, Type* type) {
  if (size.is_const()) return number(type, size.value());
  auto value_of = [&](int64_t place) { return symbol(s_.symbols[size_t(place)]); };
  return as(codegen::evaluated(b_, size_program(size, s_.symbols), value_of), type);
}

}  // namespace tn::cuda
