// Indices: the polynomials of loads, stores and masks, of a point and of the lanes of a vector.
#include <algorithm>

#include "backend/cpu/codegen/emitter.h"
#include "ir/dim_program.h"
#include "loop/reduction_tree.h"

namespace tn::cpu {

using loop::AxisSet;

Emitter::Scope Emitter::scope_of(const Term& term) const {
  Scope scope = scope_of(axes_in(s_.kernel, term));
  if (scope != kCall) return scope;
  s_.kernel.polys.for_each_atom(term, [&](const Atom& atom) {
    if (atom.kind == AtomKind::value && s_.depth[atom.a] > 0) scope = kUnit;
  });
  return scope;
}

// A partial sum in each scope: what does not change in a loop is added before it.
llvm::Value* Emitter::position(PolyId poly) {
  Value* sum = number(s_.kernel.polys.constant_of(poly));
  for (int scope = kCall; scope < kScopes; ++scope) {
    bool here = false;
    for (const Term& term : s_.kernel.polys[poly].terms) here |= scope_of(term) == scope;
    if (!here) continue;
    sum = once(static_cast<Scope>(scope), Made::sum, poly, 0, [&] {
      Value* total = sum;
      for (const Term& term : s_.kernel.polys[poly].terms)
        if (scope_of(term) == scope) total = b_.CreateAdd(total, term_value(term));
      return total;
    });
  }
  return sum;
}

llvm::Value* Emitter::term_value(const Term& term) {
  Value* product = number(term.coef);
  for (AtomId id : s_.kernel.polys.atoms_of(term.mono))
    product = b_.CreateMul(product, atom_value(id));
  return product;
}

llvm::Value* Emitter::atom_value(AtomId id) {
  const Atom& atom = s_.kernel.polys.atom(id);
  switch (atom.kind) {
    case AtomKind::axis:
      return axis_[atom.a];
    case AtomKind::value: {
      ValueId v = static_cast<ValueId>(atom.a);
      return ops_.cast(value(v, 0), s_.value(v).type, DType::i64);
    }
    case AtomKind::symbol:
      return symbol(s_.kernel.polys.name_of(atom));
    default:
      return apply(atom.kind, atom, position(atom.a), position(atom.b));
  }
}

// Division rounds down; a divisor of 0 stands under a false mask.
llvm::Value* Emitter::apply(AtomKind kind, const Atom& atom, Value* x, Value* y) {
  if (kind == AtomKind::min) return smaller(x, y);
  if (kind == AtomKind::max) return larger(x, y);
  const PolyTable& polys = s_.kernel.polys;
  Bounds of = polys.range(atom.a);
  bool known = polys.is_constant(atom.b) && polys.constant_of(atom.b) > 0;
  bool div = kind == AtomKind::div;
  if (known && of.lo >= 0 && of.hi < INT32_MAX && polys.constant_of(atom.b) < INT32_MAX) {
    // Short numbers have a vector multiplication to divide by.
    llvm::Type* wide = x->getType();
    llvm::Type* narrow = wide->getWithNewType(b_.getInt32Ty());
    Value *a = b_.CreateTrunc(x, narrow), *d = b_.CreateTrunc(y, narrow);
    return b_.CreateZExt(div ? b_.CreateUDiv(a, d) : b_.CreateURem(a, d), wide);
  }
  if (!known) y = larger(y, llvm::ConstantInt::get(x->getType(), 1));
  return divided(div, x, y);
}

llvm::Value* Emitter::divided(bool quotient, Value* x, Value* y) {
  return codegen::divided(b_, quotient, x, y);
}

llvm::Value* Emitter::smaller(Value* a, Value* b) { return codegen::smaller(b_, a, b); }

llvm::Value* Emitter::larger(Value* a, Value* b) { return codegen::larger(b_, a, b); }

/// The value of a symbol in this call.
llvm::Value* Emitter::symbol(std::string_view name) {
  auto at = std::find(s_.symbols.begin(), s_.symbols.end(), name);
  uint64_t place = static_cast<uint64_t>(at - s_.symbols.begin());
  return once(kCall, Made::symbol, place, 0, [&] {
    Value* from = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), frame_field(6, "sizes"), place);
    return b_.CreateLoad(b_.getInt64Ty(), from, name);
  });
}

/// A size in this call: a constant, or computed once from the symbols.
llvm::Value* Emitter::size(Dim size) {
  if (size.is_const()) return number(size.value());
  return once(kCall, Made::size, ~static_cast<uint64_t>(size.raw), 0, [&] {
    auto value_of = [&](int64_t place) { return symbol(s_.symbols[static_cast<size_t>(place)]); };
    return codegen::evaluated(b_, size_program(size, s_.symbols), value_of);
  });
}

/// The factor of an axis where the polynomial is linear in it, symbols or not; else null.
llvm::Value* Emitter::stride_value(PolyId poly, int axis) {
  if (!is_linear_along(s_.kernel, poly, axis)) return nullptr;
  const PolyTable& polys = s_.kernel.polys;
  Value* stride = number(0);
  for (const Term& term : polys[poly].terms) {
    if (!(axes_in(s_.kernel, term) >> axis & 1)) continue;
    Value* factor = number(term.coef);
    for (AtomId id : polys.atoms_of(term.mono))
      if (polys.atom(id).kind == AtomKind::symbol) factor = b_.CreateMul(factor, atom_value(id));
    stride = b_.CreateAdd(stride, factor);
  }
  return stride;
}

llvm::Value* Emitter::positions(PolyId poly, int copy) {
  Scope scope = kCall;
  for (const Term& term : s_.kernel.polys[poly].terms) scope = std::max(scope, scope_of(term));
  return once(scope, Made::offsets, poly, copy, [&] {
    Value* same = number(s_.kernel.polys.constant_of(poly));
    Value* sum = nullptr;
    for (const Term& term : s_.kernel.polys[poly].terms) {
      if (!is_vector(axes_in(s_.kernel, term))) {
        same = b_.CreateAdd(same, term_value(term));
        continue;
      }
      Value* next = term_values(term, copy);
      sum = sum ? b_.CreateAdd(sum, next) : next;
    }
    return sum ? b_.CreateAdd(sum, splat(same)) : splat(same);
  });
}

llvm::Value* Emitter::term_values(const Term& term, int copy) {
  Value* product = splat(number(term.coef));
  for (AtomId id : s_.kernel.polys.atoms_of(term.mono))
    product = b_.CreateMul(product, atom_values(id, copy));
  return product;
}

llvm::Value* Emitter::atom_values(AtomId id, int copy) {
  const Atom& atom = s_.kernel.polys.atom(id);
  switch (atom.kind) {
    case AtomKind::axis:
      return axis_values(static_cast<int>(atom.a), copy);
    case AtomKind::value: {
      ValueId v = static_cast<ValueId>(atom.a);
      return ops_.cast(vector(v, copy), s_.value(v).type, DType::i64);
    }
    case AtomKind::symbol:
      return splat(atom_value(id));
    default:
      if (Value* near = near_division(atom, copy)) return near;
      return apply(atom.kind, atom, positions(atom.a, copy), positions(atom.b, copy));
  }
}

/// Whether lanes `step` apart and a divisor stay short.
static bool is_near(int64_t divisor, int64_t step) {
  return divisor > 0 && divisor < INT32_MAX / 2 && step >= 0 && step < INT32_MAX / 4 / loop::kLanes;
}

// Numbers of any size that lie close together: the first is divided alone, and the others by short
// numbers from there on.
llvm::Value* Emitter::near_quotients(bool quotient, Value* first, int64_t divisor, int64_t step,
                                     int copy) {
  Value* rest = b_.CreateTrunc(divided(false, first, number(divisor)), b_.getInt32Ty());
  Value* near = b_.CreateAdd(splat(rest), iota(b_.getInt32Ty(), copy * s_.lanes * step, step));
  Value* by = splat(b_.CreateTrunc(number(divisor), b_.getInt32Ty()));
  llvm::Type* wide = vector_of(b_.getInt64Ty());
  if (!quotient) return b_.CreateZExt(b_.CreateURem(near, by), wide);
  return b_.CreateAdd(splat(divided(true, first, number(divisor))),
                      b_.CreateZExt(b_.CreateUDiv(near, by), wide));
}

/// A quotient or a rest of numbers that may be long, where they are linear; null where they are
/// not, or short anyway.
llvm::Value* Emitter::near_division(const Atom& atom, int copy) {
  const PolyTable& polys = s_.kernel.polys;
  bool divides = atom.kind == AtomKind::div || atom.kind == AtomKind::mod;
  if (!divides || !polys.is_constant(atom.b) || polys.range(atom.a).hi < INT32_MAX) return nullptr;
  std::optional<int64_t> step = stride(atom.a);
  int64_t divisor = polys.constant_of(atom.b);
  if (!step || s_.tile_axis >= 0 || !is_near(divisor, *step)) return nullptr;
  return near_quotients(atom.kind == AtomKind::div, position(atom.a), divisor, *step, copy);
}

// Along the vector axis a lane is the next place; where neighbours are spread over several axes,
// each is a digit of the flat position.
llvm::Value* Emitter::axis_values(int axis, int copy) {
  if (!is_vector(AxisSet{1} << axis)) return splat(axis_[static_cast<size_t>(axis)]);
  Value* lane = iota(b_.getInt64Ty(), copy * s_.lanes, 1);
  if (!s_.spread) return b_.CreateAdd(splat(axis_[static_cast<size_t>(axis)]), lane);
  Dim extent = s_.extents[static_cast<size_t>(axis)], after = 1;
  for (size_t k = s_.inner.size(); k > 0 && s_.inner[k - 1] != axis; --k)
    after *= s_.extents[static_cast<size_t>(s_.inner[k - 1])];
  bool outermost = axis == s_.inner[0], is_short = bounds(s_.extent).hi < INT32_MAX - 64;
  Dim period = outermost ? after : after * extent;
  llvm::Type *narrow = vector_of(b_.getInt32Ty()), *wide = vector_of(b_.getInt64Ty());
  bool near = !is_short && period.is_const() && is_near(period.value(), 1);
  if (near && outermost) return near_quotients(true, inner_, period.value(), 1, copy);
  Value* flat = near ? near_quotients(false, inner_, period.value(), 1, copy)
                     : b_.CreateAdd(splat(inner_), lane);
  is_short |= near;
  auto fitting = [&](Value* x) { return is_short ? b_.CreateTrunc(x, narrow) : x; };
  Value* digit = b_.CreateUDiv(fitting(flat), fitting(splat(size(max(after, 1)))));
  if (!outermost) digit = b_.CreateURem(digit, fitting(splat(size(max(extent, 1)))));
  return is_short ? b_.CreateZExt(digit, wide) : digit;
}

}  // namespace tn::cpu
