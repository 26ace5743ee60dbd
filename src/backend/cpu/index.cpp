// Indices: the polynomials of loads, stores and masks, of a point and of the lanes of a vector.
#include "backend/cpu/emitter.h"
#include "base/error.h"

namespace tn::cpu {

using loop::AxisSet;

AxisSet Emitter::axes_of(const Term& term) const {
  const PolyTable& polys = s_.kernel.polys;
  AxisSet axes = 0;
  for (AtomId id : polys.atoms_of(term.mono)) {
    const Atom& atom = polys.atom(id);
    if (atom.kind == AtomKind::axis) axes |= AxisSet{1} << atom.a;
    if (atom.kind == AtomKind::value) axes |= s_.kernel.values[atom.a].axes;
    if (atom.kind == AtomKind::axis || atom.kind == AtomKind::value) continue;
    axes |= axes_in(s_.kernel, atom.a);
    if (atom.kind != AtomKind::let) axes |= axes_in(s_.kernel, atom.b);
  }
  return axes;
}

Emitter::Scope Emitter::scope_of(const Term& term) const {
  Scope scope = scope_of(axes_of(term));
  if (scope != kCall) return scope;
  std::vector<ValueId> found;
  for (AtomId id : s_.kernel.polys.atoms_of(term.mono)) {
    const Atom& atom = s_.kernel.polys.atom(id);
    if (atom.kind == AtomKind::axis) continue;
    if (atom.kind == AtomKind::value) found.push_back(static_cast<ValueId>(atom.a));
    if (atom.kind == AtomKind::value) continue;
    find_values(s_.kernel, atom.a, found);
    if (atom.kind != AtomKind::let) find_values(s_.kernel, atom.b, found);
  }
  for (ValueId id : found)
    if (s_.depth[static_cast<size_t>(id)] > 0) return kUnit;
  return kCall;
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
    case AtomKind::let:
      return position(atom.a);
    case AtomKind::symbol:
      invariant(false, "kernel {}: a symbol in an index", s_.kernel.name);
      return nullptr;
    default:
      return apply(atom.kind, atom, position(atom.a), position(atom.b));
  }
}

// Division rounds down; a divisor of 0 stands under a false mask.
llvm::Value* Emitter::apply(AtomKind kind, const Atom& atom, Value* x, Value* y) {
  if (kind == AtomKind::min || kind == AtomKind::max) {
    bool min = kind == AtomKind::min;
    return b_.CreateBinaryIntrinsic(min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax, x, y);
  }
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
  llvm::Constant* zero = llvm::Constant::getNullValue(x->getType());
  llvm::Constant* one = llvm::ConstantInt::get(x->getType(), 1);
  if (!known) y = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, y, one);
  Value* rest = b_.CreateSRem(x, y);
  Value* below = b_.CreateICmpSLT(rest, zero);
  if (!div) return b_.CreateSelect(below, b_.CreateAdd(rest, y), rest);
  Value* quotient = b_.CreateSDiv(x, y);
  return b_.CreateSelect(below, b_.CreateSub(quotient, one), quotient);
}

llvm::Value* Emitter::positions(PolyId poly, int copy) {
  Scope scope = kCall;
  for (const Term& term : s_.kernel.polys[poly].terms) scope = std::max(scope, scope_of(term));
  return once(scope, Made::offsets, poly, copy, [&] {
    Value* same = number(s_.kernel.polys.constant_of(poly));
    Value* sum = nullptr;
    for (const Term& term : s_.kernel.polys[poly].terms) {
      if (!is_vector(axes_of(term))) {
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
    case AtomKind::let:
      return positions(atom.a, copy);
    case AtomKind::symbol:
      return splat(atom_value(id));
    default:
      return apply(atom.kind, atom, positions(atom.a, copy), positions(atom.b, copy));
  }
}

// Along the vector axis a lane is the next place; where neighbours are spread over several axes,
// each is a digit of the flat position.
llvm::Value* Emitter::axis_values(int axis, int copy) {
  if (!is_vector(AxisSet{1} << axis)) return splat(axis_[static_cast<size_t>(axis)]);
  Value* lane = iota(b_.getInt64Ty(), copy * s_.lanes, 1);
  if (!s_.spread) return b_.CreateAdd(splat(axis_[static_cast<size_t>(axis)]), lane);
  llvm::Type* narrow = vector_of(b_.getInt32Ty());
  Value* flat = b_.CreateAdd(splat(inner_), lane);
  bool is_short = s_.extent < INT32_MAX - 64;
  if (is_short) flat = b_.CreateTrunc(flat, narrow);
  auto whole = [&](int64_t x) {
    return llvm::ConstantInt::get(flat->getType(), static_cast<uint64_t>(x));
  };
  int64_t after = 1;
  for (size_t k = s_.inner.size(); k-- > 0 && s_.inner[k] != axis;)
    after *= s_.extents[static_cast<size_t>(s_.inner[k])];
  Value* digit = b_.CreateUDiv(flat, whole(std::max<int64_t>(after, 1)));
  if (axis != s_.inner[0])
    digit =
        b_.CreateURem(digit, whole(std::max<int64_t>(s_.extents[static_cast<size_t>(axis)], 1)));
  return is_short ? b_.CreateZExt(digit, vector_of(b_.getInt64Ty())) : digit;
}

}  // namespace tn::cpu
