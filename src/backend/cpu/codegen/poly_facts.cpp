#include "backend/cpu/codegen/poly_facts.h"

#include <algorithm>

namespace tn::cpu {

using loop::AxisSet;
using loop::Kernel;
using loop::ValueId;

void find_values(const Kernel& kernel, PolyId poly, std::vector<ValueId>& found) {
  kernel.polys.for_each_atom(poly, [&](const Atom& atom) {
    if (atom.kind == AtomKind::value) found.push_back(static_cast<ValueId>(atom.a));
  });
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
  for (const loop::KernelAxis& axis : kernel.axes) add_size(axis.extent);
  for (const loop::BufferParam& buffer : kernel.buffers) add_size(buffer.size);
  for (const loop::Value& v : kernel.values)
    if (v.op == loop::Op::load || v.op == loop::Op::index) add_poly(v.index);
  for (const loop::Store& store : kernel.stores) add_poly(store.index);
  for (const loop::Mask& mask : kernel.masks)
    for (PolyId poly : mask) add_poly(poly);
  std::sort(found.begin(), found.end(),
            [](Dim a, Dim b) { return symbol_name(a) < symbol_name(b); });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace tn::cpu
