#include "loop/interpreter_box.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "runtime/scalar_bits.h"

namespace tn::loop::machine {
namespace {

int64_t ceil_quotient(int64_t a, int64_t b) { return -floor_quotient(-a, b); }

Linear scaled(Linear value, int64_t factor) {
  value.base *= factor;
  for (int64_t& stride : value.strides) stride *= factor;
  return value;
}

Linear sum(Linear a, const Linear& b) {
  a.base += b.base;
  for (size_t k = 0; k < a.strides.size(); ++k) a.strides[k] += b.strides[k];
  return a;
}

Linear difference(const Linear& a, const Linear& b) { return sum(a, scaled(b, -1)); }

/// 0 or 1, or -1 for "it depends".
int8_t sign_known(Bounds excess) { return excess.lo >= 0 ? 1 : excess.hi < 0 ? 0 : -1; }

}  // namespace

Box whole_domain(const Kernel& kernel, std::span<const Binding> symbols) {
  Box box{std::vector<int64_t>(kernel.axes.size(), 0), {}};
  for (const KernelAxis& axis : kernel.axes) box.extents.push_back(evaluate(axis.extent, symbols));
  return box;
}

bool Linear::is_constant() const {
  return terms.empty() && std::ranges::all_of(strides, [](int64_t s) { return s == 0; });
}

Linear halved(Linear value) {
  value.base /= 2;
  for (int64_t& stride : value.strides) stride /= 2;
  for (auto& term : value.terms) term.first /= 2;
  return value;
}

BoxFacts::BoxFacts(const Kernel& kernel, std::span<const Binding> symbols, Box box)
    : kernel_(kernel), symbols_(symbols), box_(std::move(box)) {
  fates_.assign(kernel.values.size(), -1);
  for (size_t i = 0; i < kernel.values.size(); ++i) fates_[i] = fate_of(kernel.values[i]);
}

Linear BoxFacts::leaf(const Atom& atom) const {
  Linear result;
  result.strides.assign(box_.extents.size(), 0);
  if (atom.kind == AtomKind::axis) {
    result.base = box_.first[atom.a];
    result.strides[atom.a] = box_.extents[atom.a] != 1;
    return result;
  }
  for (const Binding& binding : symbols_)
    if (symbol_name(binding.symbol) == kernel_.polys.name_of(atom)) {
      result.base = binding.value;
      return result;
    }
  throw_internal(
      format("kernel {}: the symbol {} has no value", kernel_.name, kernel_.polys.name_of(atom)));
}

Bounds BoxFacts::range(const Linear& value) const {
  Bounds range{value.base, value.base};
  for (size_t k = 0; k < value.strides.size(); ++k) {
    int64_t across = value.strides[k] * (box_.extents[k] - 1);
    (across < 0 ? range.lo : range.hi) += across;
  }
  return range;
}

// A divisor below 1 counts as 1, as in PolyTable::evaluate.
std::optional<Linear> BoxFacts::decided(AtomKind kind, const Linear& a, const Linear& b) const {
  if (kind == AtomKind::min || kind == AtomKind::max) {
    Bounds above = range(difference(a, b));
    if (above.lo < 0 && above.hi > 0) return std::nullopt;
    return (kind == AtomKind::max) == (above.lo >= 0) ? a : b;
  }
  if (!b.is_constant()) return std::nullopt;
  int64_t divisor = std::max<int64_t>(b.base, 1);
  Linear quotient;
  quotient.strides.assign(a.strides.size(), 0);
  Bounds all = range(a);
  if (std::ranges::all_of(a.strides, [&](int64_t s) { return s % divisor == 0; })) {
    quotient.base = floor_quotient(a.base, divisor);
    for (size_t k = 0; k < a.strides.size(); ++k) quotient.strides[k] = a.strides[k] / divisor;
  } else if (floor_quotient(all.lo, divisor) == floor_quotient(all.hi, divisor)) {
    quotient.base = floor_quotient(all.lo, divisor);
  } else {
    return std::nullopt;
  }
  return kind == AtomKind::div ? quotient : difference(a, scaled(quotient, divisor));
}

std::optional<Linear> BoxFacts::affine(const Atom& atom) const {
  if (atom.kind == AtomKind::value) return std::nullopt;
  if (is_leaf(atom.kind)) return leaf(atom);
  std::optional<Linear> a = affine(atom.a), b = affine(atom.b);
  return a && b ? decided(atom.kind, *a, *b) : std::nullopt;
}

std::optional<Linear> BoxFacts::affine(PolyId poly) const {
  const Poly& p = kernel_.polys[poly];
  Linear result{p.c0, std::vector<int64_t>(box_.extents.size(), 0), {}};
  for (const Term& term : p.terms) {
    Linear product{term.coef, std::vector<int64_t>(box_.extents.size(), 0), {}};
    for (AtomId id : kernel_.polys.atoms_of(term.mono)) {
      std::optional<Linear> factor = affine(kernel_.polys.atom(id));
      if (!factor) return std::nullopt;
      if (product.is_constant()) std::swap(product, *factor);
      if (!factor->is_constant()) return std::nullopt;
      product = scaled(std::move(product), factor->base);
    }
    result = sum(std::move(result), product);
  }
  return result;
}

std::optional<Linear> BoxFacts::number(ValueId id) const {
  const Value& v = kernel_.values[static_cast<size_t>(id)];
  if (v.op == Op::index) return affine(v.index);
  if (v.op != Op::constant || v.type != DType::i64) return std::nullopt;
  Linear result;
  std::memcpy(&result.base, element_bits(v.literal, v.type).data(), 8);
  constexpr int64_t kMost = int64_t{1} << 62;  // differences must not overflow
  if (result.base > kMost || result.base < -kMost) return std::nullopt;
  result.strides.assign(box_.extents.size(), 0);
  return result;
}

/// What is >= 0 where the comparison of two indices holds.
std::optional<Linear> BoxFacts::excess(const Value& v) const {
  if (v.op != Op::lt && v.op != Op::le) return std::nullopt;
  if (kernel_.values[static_cast<size_t>(v.a)].type != DType::i64) return std::nullopt;
  std::optional<Linear> a = number(v.a), b = number(v.b);
  if (!a || !b) return std::nullopt;
  Linear excess = difference(*b, *a);
  excess.base -= v.op == Op::lt;
  return excess;
}

int8_t BoxFacts::fate_of(const Value& v) const {
  auto fate = [&](ValueId id) { return fates_[static_cast<size_t>(id)]; };
  if (v.op == Op::load && v.mask != kNone) {
    for (PolyId poly : kernel_.masks[static_cast<size_t>(v.mask)]) {
      std::optional<Linear> excess = affine(poly);
      if (excess && range(*excess).hi < 0) return 0;
    }
    return -1;
  }
  if (v.type != DType::b1) return -1;
  if (v.op == Op::not_) return fate(v.a) < 0 ? -1 : !fate(v.a);
  if (v.op == Op::and_ || v.op == Op::or_) {
    int8_t decides = v.op == Op::or_;
    if (fate(v.a) == decides || fate(v.b) == decides) return decides;
    return fate(v.a) < 0 || fate(v.b) < 0 ? -1 : !decides;
  }
  std::optional<Linear> excess = this->excess(v);
  return excess ? sign_known(range(*excess)) : -1;
}

/// The one axis that it varies along.
std::optional<size_t> BoxFacts::only_axis(const Linear& value) const {
  std::optional<size_t> found;
  for (size_t k = 0; k < value.strides.size(); ++k) {
    if (value.strides[k] == 0) continue;
    if (found) return std::nullopt;
    found = k;
  }
  return found;
}

std::optional<BoxFacts::Cut> BoxFacts::cut_at_zero(const std::optional<Linear>& value) const {
  std::optional<size_t> axis = value ? only_axis(*value) : std::nullopt;
  if (!axis || sign_known(range(*value)) >= 0) return std::nullopt;
  int64_t stride = value->strides[*axis];
  return Cut{*axis, stride > 0 ? ceil_quotient(-value->base, stride)
                               : floor_quotient(value->base, -stride) + 1};
}

/// Where a min or max takes its other operand, or the first quotient of a div or mod ends, unless
/// there are many.
std::optional<BoxFacts::Cut> BoxFacts::cut_in(PolyId poly) const {
  constexpr int64_t kMostQuotients = 8;
  for (const Term& term : kernel_.polys[poly].terms)
    for (AtomId id : kernel_.polys.atoms_of(term.mono)) {
      const Atom& atom = kernel_.polys.atom(id);
      if (is_leaf(atom.kind)) continue;
      if (std::optional<Cut> inside = cut_in(atom.a)) return inside;
      if (std::optional<Cut> inside = cut_in(atom.b)) return inside;
      std::optional<Linear> a = affine(atom.a), b = affine(atom.b);
      if (!a || !b || decided(atom.kind, *a, *b)) continue;
      Linear change = difference(*a, *b);
      if (atom.kind == AtomKind::div || atom.kind == AtomKind::mod) {
        if (!b->is_constant()) continue;
        int64_t divisor = std::max<int64_t>(b->base, 1);
        Bounds all = range(*a);
        int64_t quotient = floor_quotient(a->base, divisor);
        if ((all.hi - all.lo) / divisor >= kMostQuotients) continue;
        bool rises = all.lo == a->base;
        change = *a;
        change.base -= (quotient + rises) * divisor;
      }
      if (std::optional<Cut> found = cut_at_zero(change)) return found;
    }
  return std::nullopt;
}

std::optional<BoxFacts::Cut> BoxFacts::cut_in(PolyId index, MaskId mask) const {
  if (mask != kNone)
    for (PolyId poly : kernel_.masks[static_cast<size_t>(mask)]) {
      if (std::optional<Cut> found = cut_in(poly)) return found;
      if (std::optional<Cut> found = cut_at_zero(affine(poly))) return found;
    }
  return cut_in(index);
}

std::optional<BoxFacts::Cut> BoxFacts::cut_of(const Value& v) const {
  if (v.op == Op::load || v.op == Op::index) return cut_in(v.index, v.mask);
  return v.type == DType::b1 ? cut_at_zero(excess(v)) : std::nullopt;
}

std::optional<BoxFacts::Cut> BoxFacts::cut() const {
  std::vector<bool> wanted(kernel_.values.size(), false);
  auto want = [&](ValueId id) { wanted[static_cast<size_t>(id)] = true; };
  for (const Store& store : kernel_.stores) {
    if (std::optional<Cut> found = cut_in(store.index, store.mask)) return found;
    for_each_operand(kernel_, store, want);
  }
  for (size_t i = kernel_.values.size(); i-- > 0;) {
    if (!wanted[i] || fates_[i] >= 0) continue;
    const Value& v = kernel_.values[i];
    if (std::optional<Cut> found = cut_of(v)) return found;
    for_each_wanted(v, want);
  }
  return std::nullopt;
}

std::vector<Box> boxes_of(const Kernel& kernel, std::span<const Binding> symbols) {
  // A box has work to do before its first point. Fewer points are computed masks and all.
  constexpr int64_t kPointsPerBox = 6, kMostBoxes = 64;
  std::vector<Box> open = {whole_domain(kernel, symbols)}, boxes;
  int64_t points = 1;
  for (int64_t extent : open[0].extents)
    if (extent == 0 || __builtin_mul_overflow(points, extent, &points)) return open;
  bool plain = std::ranges::all_of(
      kernel.axes, [](const KernelAxis& axis) { return axis.kind == AxisKind::par; });
  if (!plain || std::ranges::any_of(kernel.stores, &Store::scattered)) return open;
  auto most = static_cast<size_t>(std::min(kMostBoxes, points / kPointsPerBox));
  while (!open.empty()) {
    Box box = std::move(open.back());
    open.pop_back();
    std::optional<BoxFacts::Cut> cut;
    if (boxes.size() + open.size() + 1 < kMostBoxes) cut = BoxFacts(kernel, symbols, box).cut();
    if (!cut) {
      boxes.push_back(std::move(box));
      continue;
    }
    if (boxes.size() + open.size() + 2 > most) return {whole_domain(kernel, symbols)};
    Box later = box;
    later.first[cut->axis] += cut->at, later.extents[cut->axis] -= cut->at;
    box.extents[cut->axis] = cut->at;
    open.push_back(std::move(later)), open.push_back(std::move(box));
  }
  return boxes;
}

}  // namespace tn::loop::machine
