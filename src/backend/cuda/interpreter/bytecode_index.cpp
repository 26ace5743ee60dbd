// Indices and masks as instructions of the interpreter, in 32 bits.
#include <bit>
#include <limits>

#include "backend/cuda/interpreter/bytecode_lowering.h"

namespace tn::cuda {

using bytecode::Code;

/// Sums and products wrap around to the right result, whatever their terms are.
bool BytecodeLowering::fits_index(PolyId poly) const {
  Bounds range = kernel_.polys.range(poly);
  return range.lo >= std::numeric_limits<int32_t>::min() &&
         range.hi <= std::numeric_limits<int32_t>::max();
}

VirtualRegister BytecodeLowering::number(uint32_t bits) {
  auto [at, added] = outer_known_.numbers.try_emplace(bits, kNoRegister);
  if (added) at->second = emit(false, Code::constant32, false, {.words = {bits}});
  return at->second;
}

/// By multiplication: exact for numbers below 2^31.
VirtualRegister BytecodeLowering::divide(bool inner, Register x, int64_t divisor, bool rest) {
  if (divisor == 1) return rest ? number(0) : x;
  int shift = std::bit_width(static_cast<uint64_t>(divisor - 1));
  auto by = static_cast<uint64_t>(divisor);
  auto factor = static_cast<uint32_t>(((uint64_t{1} << (31 + shift)) + by - 1) / by);
  auto word = std::bit_cast<uint64_t>(bytecode::Divisor{factor, static_cast<uint32_t>(divisor)});
  return emit(inner, rest ? Code::modulo : Code::divide, false,
              {.a = x, .immediate = static_cast<uint8_t>(shift), .words = {word}});
}

VirtualRegister BytecodeLowering::divided(PolyId dividend, PolyId divisor, bool rest) {
  const PolyTable& t = kernel_.polys;
  bool inner = is_inner(axes_in(kernel_, dividend));
  Bounds range = t.range(dividend);
  if (!t.is_constant(divisor) || !fits_index(dividend)) return fits = false, number(0);
  int64_t by = t.constant_of(divisor);
  Register x = poly(dividend);
  if (range.lo >= 0 && by <= std::numeric_limits<int32_t>::max()) return divide(inner, x, by, rest);
  int64_t added = range.lo < 0 ? (-range.lo + by - 1) / by : 0;  // multiples of the divisor
  if (by > std::numeric_limits<int32_t>::max() ||
      range.hi + added * by > std::numeric_limits<int32_t>::max())
    return fits = false, x;
  auto moved = [&](Register from, int64_t by_number) {
    return emit(inner, Code::affine, false,
                {.words = {static_cast<uint32_t>(by_number)}, .factors = {{from, 1}}});
  };
  Register result = divide(inner, moved(x, added * by), by, rest);
  return rest ? result : moved(result, -added);
}

VirtualRegister BytecodeLowering::atom(AtomId id) {
  const Atom& a = kernel_.polys.atom(id);
  switch (a.kind) {
    case AtomKind::value: {
      auto id_of_value = static_cast<loop::ValueId>(a.a);
      const loop::Value& v = value_at(id_of_value);
      if (a.range.lo < std::numeric_limits<int32_t>::min() ||
          a.range.hi > std::numeric_limits<int32_t>::max())
        fits = false;
      return cast(is_inner(v.axes), value(id_of_value), v.type, DType::i32);
    }
    case AtomKind::div:
    case AtomKind::mod:
      return divided(a.a, a.b, a.kind == AtomKind::mod);
    case AtomKind::min:
    case AtomKind::max: {
      if (!fits_index(a.a) || !fits_index(a.b)) fits = false;
      bool inner = is_inner(axes_in(kernel_, a.a) | axes_in(kernel_, a.b));
      Register x = poly(a.a), y = poly(a.b);
      return emit(inner, a.kind == AtomKind::min ? Code::min_i32 : Code::max_i32, false,
                  {.a = x, .b = y});
    }
    case AtomKind::axis:
      for (const std::vector<int>* axes : {&analysis_.par_axes, &analysis_.inner_axes})
        for (size_t k = 0; k < axes->size(); ++k)
          if ((*axes)[k] == static_cast<int>(a.a)) return coordinate(*axes, k, k);
      [[fallthrough]];
    default:
      fits = false;
      return number(0);
  }
}

VirtualRegister BytecodeLowering::product(const Term& term) {
  Register made = kNoRegister;
  bool inner = false;
  for (AtomId id : kernel_.polys.atoms_of(term.mono)) {
    loop::AxisSet axes = 0;
    const Atom& a = kernel_.polys.atom(id);
    if (a.kind == AtomKind::axis) axes = loop::axis_bit(a.a);
    if (a.kind == AtomKind::value) axes = value_at(static_cast<loop::ValueId>(a.a)).axes;
    if (!is_leaf(a.kind)) axes = axes_in(kernel_, a.a) | axes_in(kernel_, a.b);
    inner = inner || is_inner(axes);
    Register x = atom(id);
    made = made == kNoRegister ? x : emit(inner, Code::mul_32, false, {.a = made, .b = x});
  }
  return made;
}

VirtualRegister BytecodeLowering::coordinate(const std::vector<int>& axes, size_t first,
                                             size_t last) {
  bool inner = &axes == &analysis_.inner_axes;
  auto [at, added] = known(inner).coordinates.try_emplace({axes[first], axes[last]}, kNoRegister);
  if (!added) return at->second;
  auto whole = [&]() {
    auto [all, is_new] = known(inner).coordinates.try_emplace({-1, -1}, kNoRegister);
    if (is_new) all->second = emit(inner, inner ? Code::elements : Code::points, false);
    return all->second;
  };
  int64_t within = 1, own = 1, around = 1;
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t extent = extents_[static_cast<size_t>(axes[k])];
    (k < first ? around : k <= last ? own : within) *= extent;
  }
  Register made = own == 1 ? number(0) : whole();
  if (own > 1) made = divide(inner, made, within, false);
  if (own > 1 && around > 1) made = divide(inner, made, own, true);
  return known(inner).coordinates[{axes[first], axes[last]}] = made;
}

/// Neighbours that an index walks as one axis are one coordinate.
void BytecodeLowering::add_axes(const std::vector<int>& axes,
                                const std::vector<int64_t>& coefficients, VirtualInstruction& sum) {
  auto factor = [&](size_t k) { return coefficients[static_cast<size_t>(axes[k])]; };
  auto extent = [&](size_t k) { return extents_[static_cast<size_t>(axes[k])]; };
  for (size_t first = 0; first < axes.size();) {
    if (factor(first) == 0 || extent(first) == 1) {
      ++first;
      continue;
    }
    size_t last = first;
    for (size_t k = first + 1; k < axes.size(); ++k) {
      if (extent(k) == 1) continue;
      if (factor(last) != factor(k) * extent(k)) break;
      last = k;
    }
    Register x = coordinate(axes, first, last);
    sum.factors.emplace_back(x, static_cast<int32_t>(factor(last)));
    first = last + 1;
  }
}

VirtualRegister BytecodeLowering::poly(PolyId id) {
  bool inner = is_inner(axes_in(kernel_, id));
  if (auto at = known(inner).polys.find(id); at != known(inner).polys.end()) return at->second;
  const PolyTable& t = kernel_.polys;
  std::vector<int64_t> linear(extents_.size());
  VirtualInstruction sum;
  sum.words = {static_cast<uint32_t>(t[id].c0)};
  for (const Term& term : t[id].terms) {
    const std::vector<AtomId>& atoms = t.atoms_of(term.mono);
    if (atoms.size() == 1 && t.atom(atoms[0]).kind == AtomKind::axis) {
      linear[t.atom(atoms[0]).a] += term.coef;
    } else {
      Register x = product(term);
      sum.factors.emplace_back(x, static_cast<int32_t>(term.coef));
    }
  }
  add_axes(analysis_.par_axes, linear, sum);
  add_axes(analysis_.inner_axes, linear, sum);
  Register made;
  if (sum.factors.empty())
    made = number(static_cast<uint32_t>(t[id].c0));
  else if (sum.factors.size() == 1 && t[id].c0 == 0 && sum.factors[0].second == 1)
    made = sum.factors[0].first;
  else
    made = emit(inner, Code::affine, false, std::move(sum));
  known(inner).polys[id] = made;
  return made;
}

VirtualRegister BytecodeLowering::mask(loop::MaskId id) {
  if (id == loop::kNone) return kNoRegister;
  Register made = kNoRegister;
  bool inner = false;
  for (PolyId condition : kernel_.masks[static_cast<size_t>(id)]) {
    if (!fits_index(condition)) fits = false;
    bool own = is_inner(axes_in(kernel_, condition));
    Register x = poly(condition), zero = number(0);
    Register holds = emit(own, Code::le_i32, false, {.a = zero, .b = x});
    inner = inner || own;
    made = made == kNoRegister ? holds : emit(inner, Code::and_32, false, {.a = made, .b = holds});
  }
  return made;
}

}  // namespace tn::cuda
