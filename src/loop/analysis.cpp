#include "loop/analysis.h"

#include <algorithm>
#include <bit>

namespace tn::loop {

AxisSet axes_in(const Kernel& kernel, const Term& term) {
  AxisSet axes = 0;
  kernel.polys.for_each_atom(term, [&](const Atom& atom) {
    if (atom.kind == AtomKind::axis) axes |= axis_bit(atom.a);
    if (atom.kind == AtomKind::value) axes |= kernel.values[atom.a].axes;
  });
  return axes;
}

AxisSet axes_in(const Kernel& kernel, PolyId poly) {
  AxisSet axes = 0;
  for (const Term& term : kernel.polys[poly].terms) axes |= axes_in(kernel, term);
  return axes;
}

AxisSet axes_in_mask(const Kernel& kernel, MaskId mask) {
  AxisSet axes = 0;
  if (mask == kNone) return axes;
  for (PolyId poly : kernel.masks[static_cast<size_t>(mask)]) axes |= axes_in(kernel, poly);
  return axes;
}

std::optional<int64_t> stride_along(const Kernel& kernel, PolyId poly, int axis) {
  if (axis < 0) return 0;
  int64_t stride = 0;
  for (const Term& term : kernel.polys[poly].terms) {
    const std::vector<AtomId>& atoms = kernel.polys.atoms_of(term.mono);
    const Atom& first = kernel.polys.atom(atoms[0]);
    if (atoms.size() == 1 && first.kind == AtomKind::axis) {
      if (first.a == static_cast<uint32_t>(axis)) stride += term.coef;
      continue;
    }
    if (axes_in(kernel, term) >> axis & 1) return std::nullopt;
  }
  return stride;
}

bool is_linear_along(const Kernel& kernel, PolyId poly, int axis) {
  for (const Term& term : kernel.polys[poly].terms) {
    if (!(axes_in(kernel, term) >> axis & 1)) continue;
    int found = 0;
    for (AtomId id : kernel.polys.atoms_of(term.mono)) {
      const Atom& atom = kernel.polys.atom(id);
      bool itself = atom.kind == AtomKind::axis && atom.a == static_cast<uint32_t>(axis);
      if (!itself && atom.kind != AtomKind::symbol) return false;
      found += itself;
    }
    if (found != 1) return false;
  }
  return true;
}

std::vector<Dim> symbols_in(const Kernel& kernel) {
  std::vector<Dim> found;
  auto add_poly = [&](PolyId poly) {
    kernel.polys.for_each_atom(poly, [&](const Atom& atom) {
      if (atom.kind == AtomKind::symbol)
        found.push_back(Dim::symbol(kernel.polys.name_of(atom), atom.range.lo, atom.range.hi));
    });
  };
  auto add_size = [&](Dim size) {
    for (Dim symbol : symbols_of(size)) found.push_back(symbol);
  };
  for (const KernelAxis& axis : kernel.axes) add_size(axis.extent);
  for (const BufferParam& buffer : kernel.buffers) add_size(buffer.size);
  for (const Value& v : kernel.values)
    if (v.op == Op::load || v.op == Op::index) add_poly(v.index);
  for (const Store& store : kernel.stores) add_poly(store.index);
  for (const Mask& mask : kernel.masks)
    for (PolyId poly : mask) add_poly(poly);
  std::sort(found.begin(), found.end(),
            [](Dim a, Dim b) { return symbol_name(a) < symbol_name(b); });
  found.erase(std::unique(found.begin(), found.end(), [](Dim a, Dim b) { return identical(a, b); }),
              found.end());
  return found;
}

static void find_axes(const Kernel& kernel, Analysis& a) {
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    AxisKind kind = kernel.axes[k].kind;
    (kind == AxisKind::par ? a.par : kind == AxisKind::red ? a.red : a.scan) |= axis_bit(k);
    (kind == AxisKind::par ? a.par_axes : a.inner_axes).push_back(static_cast<int>(k));
  }
}

static void find_levels(const Kernel& kernel, Analysis& a) {
  auto highest = [&](const auto& reader) {
    int level = 0;
    for_each_operand(kernel, reader, [&](ValueId id) {
      level = std::max(level, a.level[static_cast<size_t>(id)]);
    });
    return level;
  };
  a.level.reserve(kernel.values.size());
  for (const Value& v : kernel.values) a.level.push_back(highest(v) + (v.op == Op::reduce));
  for (const Store& store : kernel.stores)
    a.stores.push_back({kernel.values[static_cast<size_t>(store.value)].axes |
                            axes_in(kernel, store.index) | axes_in_mask(kernel, store.mask),
                        highest(store)});
}

static void find_needed(const Kernel& kernel, Analysis& a) {
  a.needed.assign(kernel.values.size(), false);
  auto need = [&](ValueId id) { a.needed[static_cast<size_t>(id)] = true; };
  for (const Store& store : kernel.stores) for_each_operand(kernel, store, need);
  for (size_t i = kernel.values.size(); i-- > 0;) {
    if (!a.needed[i]) continue;
    for_each_operand(kernel, kernel.values[i], need);
    a.levels = std::max(a.levels, a.level[i]);
  }
}

static bool is_plain(const Kernel& kernel, const Analysis& a) {
  if ((a.red && a.scan) || std::popcount(a.scan) > 1) return false;
  bool directions[2] = {};
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    const Value& v = kernel.values[i];
    if (!a.needed[i]) continue;
    if (v.op == Op::reduce && v.over != a.red) return false;
    if (v.op == Op::scan) directions[v.reverse] = true;
  }
  return !(directions[0] && directions[1]);
}

Analysis analyse(const Kernel& kernel) {
  Analysis a;
  find_axes(kernel, a);
  find_levels(kernel, a);
  find_needed(kernel, a);
  a.plain = is_plain(kernel, a);
  return a;
}

}  // namespace tn::loop
