// Index polynomials: affine ones become strides, others are computed as i64 values.
#include <algorithm>

#include "base/error.h"
#include "loop/interpreter_lowering.h"

namespace tn::loop::machine {
namespace {

// A divisor below 1 counts as 1, as in PolyTable::evaluate.
void floor_div(void* dst, const void* a, const void* b, const void*, int64_t n) {
  const int64_t *x = static_cast<const int64_t*>(a), *d = static_cast<const int64_t*>(b);
  int64_t* out = static_cast<int64_t*>(dst);
  for (int64_t i = 0; i < n; ++i) out[i] = floor_quotient(x[i], std::max<int64_t>(d[i], 1));
}

void floor_mod(void* dst, const void* a, const void* b, const void*, int64_t n) {
  const int64_t *x = static_cast<const int64_t*>(a), *d = static_cast<const int64_t*>(b);
  int64_t* out = static_cast<int64_t*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    int64_t divisor = std::max<int64_t>(d[i], 1);
    out[i] = x[i] - divisor * floor_quotient(x[i], divisor);
  }
}

}  // namespace

Linear ProgramLowering::linear(PolyId poly) {
  const Poly& p = kernel_.polys[poly];
  Linear result = zero();
  result.base = p.c0;
  for (const Term& term : p.terms) add_term(result, term.coef, kernel_.polys.atoms_of(term.mono));
  return result;
}

bool ProgramLowering::has_value(const Term& term) const {
  bool found = false;
  kernel_.polys.for_each_atom(term,
                              [&](const Atom& atom) { found |= atom.kind == AtomKind::value; });
  return found;
}

// The terms with values, or the others; in pairs of elements.
Linear ProgramLowering::sum_of_terms(PolyId poly, bool with_values, bool wide) {
  const Poly& p = kernel_.polys[poly];
  Linear result = zero();
  if (!with_values) result.base = p.c0;
  for (const Term& term : p.terms)
    if (has_value(term) == with_values)
      add_term(result, term.coef, kernel_.polys.atoms_of(term.mono));
  return wide ? halved(std::move(result)) : result;
}

// Where all values of an index have been computed, if each is only multiplied by numbers and they
// vary by row at most.
std::optional<Domain> ProgramLowering::domain_of_offset(PolyId index) const {
  std::optional<Domain> domain;
  for (const Term& term : kernel_.polys[index].terms) {
    if (!has_value(term)) continue;
    for (AtomId id : kernel_.polys.atoms_of(term.mono)) {
      const Atom& atom = kernel_.polys.atom(id);
      if (atom.kind == AtomKind::symbol) continue;
      if (atom.kind != AtomKind::value) return std::nullopt;
      domain = std::max(domain.value_or(Domain::uniform), domain_[atom.a]);
      bool there = computed_[atom.a] != kNone || kernel_.values[atom.a].op == Op::constant;
      if (!there || facts_.known(static_cast<ValueId>(atom.a))) return std::nullopt;
    }
  }
  bool by_row = program_.mode == Mode::rows || by_index_ == Mode::columns;
  bool can = domain == Domain::uniform || (domain == Domain::row && by_row);
  return can ? domain : std::nullopt;
}

// A product is affine when all factors but one are constant.
void ProgramLowering::add_term(Linear& into, int64_t coef, const std::vector<AtomId>& atoms) {
  Linear product = zero();
  product.base = coef;
  for (AtomId id : atoms) {
    Linear factor = linear_atom(id);
    if (product.is_constant()) std::swap(product, factor);
    if (factor.is_constant()) {
      product.base *= factor.base;
      for (int64_t& stride : product.strides) stride *= factor.base;
      for (auto& term : product.terms) term.first *= factor.base;
      continue;
    }
    int32_t a = number_slot(product), b = number_slot(factor);
    product = zero();
    product.terms = {{1, compute(function(Op::mul, DType::i64), DType::i64, a, b)}};
  }
  into.base += product.base;
  for (size_t k = 0; k < extents_.size(); ++k) into.strides[k] += product.strides[k];
  into.terms.insert(into.terms.end(), product.terms.begin(), product.terms.end());
}

Linear ProgramLowering::linear_atom(AtomId id) {
  const Atom& atom = kernel_.polys.atom(id);
  Linear result = zero();
  if (atom.kind == AtomKind::value) {
    int32_t at = slot(static_cast<ValueId>(atom.a));
    DType type = kernel_.values[atom.a].type;
    if (type != DType::i64)
      at = compute(ops_.cast[static_cast<int>(type)][static_cast<int>(DType::i64)], DType::i64, at);
    result.terms = {{1, at}};
    return result;
  }
  if (is_leaf(atom.kind)) return facts_.leaf(atom);
  Linear a = linear(atom.a), b = linear(atom.b);
  if (a.terms.empty() && b.terms.empty())
    if (std::optional<Linear> decided = facts_.decided(atom.kind, a, b)) return *decided;
  BlockFn fn = atom.kind == AtomKind::div   ? floor_div
               : atom.kind == AtomKind::mod ? floor_mod
               : atom.kind == AtomKind::min ? function(Op::min, DType::i64)
                                            : function(Op::max, DType::i64);
  int32_t left = number_slot(a), right = number_slot(b);
  result.terms = {{1, compute(fn, DType::i64, left, right)}};
  return result;
}

int32_t ProgramLowering::number_slot(const Linear& value) {
  if (value.is_constant()) return constant_slot(value.base, DType::i64);
  Linear affine = value;
  affine.terms.clear();
  int32_t sum = kNone;
  if (!affine.is_constant()) {
    int32_t access = add_access(kNone, 8, affine);
    sum = new_slot(8, current_);
    push(InstructionKind::iota, sum, DType::i64).access = access;
  } else if (affine.base != 0) {
    sum = constant_slot(affine.base, DType::i64);
  }
  for (auto [coef, at] : value.terms) {
    int32_t term = at;
    if (coef != 1)
      term =
          compute(function(Op::mul, DType::i64), DType::i64, at, constant_slot(coef, DType::i64));
    sum = sum == kNone ? term : compute(function(Op::add, DType::i64), DType::i64, sum, term);
  }
  return sum;
}

int32_t ProgramLowering::poly_slot(PolyId poly) {
  auto found = poly_slots_.find(poly);
  if (found != poly_slots_.end()) return found->second;
  int32_t at = number_slot(linear(poly));
  poly_slots_[poly] = at;
  return at;
}

// The conjunction as bytes; kNone where it always holds.
int32_t ProgramLowering::mask_slot(MaskId mask) {
  if (mask == kNone) return kNone;
  auto found = mask_slots_.find(mask);
  if (found != mask_slots_.end()) return found->second;
  int32_t all = kNone;
  for (PolyId poly : kernel_.masks[static_cast<size_t>(mask)]) {
    Linear value = linear(poly);
    int32_t one;
    Bounds range = facts_.range(value);
    if (value.terms.empty() && range.lo >= 0) continue;
    if (value.terms.empty() && range.hi < 0) {
      one = constant_slot(false, DType::b1);
    } else {
      one = compute(function(Op::le, DType::i64), DType::b1, constant_slot(0, DType::i64),
                    number_slot(value));
    }
    all = all == kNone ? one : compute(function(Op::and_, DType::b1), DType::b1, all, one);
  }
  mask_slots_[mask] = all;
  return all;
}

int32_t ProgramLowering::add_access(int32_t buffer, int64_t size, const Linear& index) {
  Access access{.buffer = buffer, .size = static_cast<int32_t>(size), .base = index.base};
  if (current_ == Domain::row) access.inner = add_walk(index, a_.par_axes);
  if (current_ == Domain::full) {
    bool columns = program_.mode == Mode::columns, flat = program_.mode == Mode::flat;
    access.inner = add_walk(index, columns || flat ? a_.par_axes : a_.inner_axes);
    if (!flat) access.outer = add_walk(index, columns ? a_.inner_axes : a_.par_axes);
  }
  access.unit = access.inner.count == 1 &&
                program_.loops[static_cast<size_t>(access.inner.first)].stride == 1;
  program_.accesses.push_back(access);
  return static_cast<int32_t>(program_.accesses.size()) - 1;
}

// Neighbouring axes become one loop where the outer stride continues the inner one.
Walk ProgramLowering::add_walk(const Linear& index, const std::vector<int>& axes) {
  Walk walk{static_cast<int32_t>(program_.loops.size()), 0};
  for (int axis : axes) {
    int64_t extent = extents_[static_cast<size_t>(axis)];
    int64_t stride = index.strides[static_cast<size_t>(axis)];
    if (extent == 1) continue;
    if (walk.count > 0 && program_.loops.back().stride == stride * extent) {
      program_.loops.back() = {program_.loops.back().extent * extent, stride};
    } else {
      program_.loops.push_back({extent, stride});
      ++walk.count;
    }
  }
  if (walk.count == 1 && program_.loops.back().stride == 0) {
    program_.loops.pop_back();
    walk.count = 0;
  }
  return walk;
}

}  // namespace tn::loop::machine
