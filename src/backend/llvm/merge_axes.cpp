#include "backend/llvm/merge_axes.h"

#include "loop/index.h"

namespace tn::codegen {
namespace {

using loop::AxisKind;
using loop::AxisSet;
using loop::Kernel;

/// Every polynomial of the kernel, by reference.
template <class F>
void for_each_poly(Kernel& kernel, F&& f) {
  for (loop::Value& v : kernel.values)
    if (v.op == loop::Op::load || v.op == loop::Op::index) f(v.index);
  for (loop::Store& store : kernel.stores) f(store.index);
  for (loop::Mask& mask : kernel.masks)
    for (PolyId& poly : mask) f(poly);
}

class Merge {
 public:
  Merge(Kernel& kernel, size_t outer, size_t inner) : k_(kernel), outer_(outer), inner_(inner) {}

  /// Whether it was done.
  bool run() {
    PolyTable& t = k_.polys;
    PolyId length = t.from_dim(k_.axes[inner_].extent);
    PolyId joined = t.axis(slot(inner_), t.mul(t.from_dim(k_.axes[outer_].extent), length));
    PolyTable::AtomMap map;
    for (size_t k = 0; k < k_.axes.size(); ++k) {
      PolyId extent = t.from_dim(k_.axes[k].extent);
      std::optional<AtomId> atom = t.as_atom(t.axis(static_cast<uint32_t>(k), extent));
      if (!atom) continue;  // of extent 1: always 0
      if (k == outer_)
        map[*atom] = t.div(joined, length);
      else if (k == inner_)
        map[*atom] = t.mod(joined, length);
      else
        map[*atom] = t.axis(slot(k), extent);
    }
    std::vector<PolyId> merged;
    bool simple = true;
    for (const loop::Value& v : k_.values)
      simple &= has_both_or_none(v.axes) && has_both_or_none(v.over);
    if (!simple) return false;
    for_each_poly(k_, [&](PolyId poly) {
      merged.push_back(t.substitute(poly, map));
      simple &= loop::count_divisions(t, merged.back()) <= loop::count_divisions(t, poly);
    });
    if (simple) commit(merged);
    return simple;
  }

 private:
  uint32_t slot(size_t axis) const {
    return static_cast<uint32_t>(axis > outer_ ? axis - 1 : axis);
  }

  bool has_both_or_none(AxisSet axes) const { return (axes >> outer_ & 1) == (axes >> inner_ & 1); }

  AxisSet moved(AxisSet axes) const {
    AxisSet result = 0;
    for (size_t k = 0; k < k_.axes.size(); ++k)
      if (axes >> k & 1) result |= AxisSet{1} << slot(k == outer_ ? inner_ : k);
    return result;
  }

  void commit(const std::vector<PolyId>& merged) {
    size_t next = 0;
    for_each_poly(k_, [&](PolyId& poly) { poly = merged[next++]; });
    for (loop::Value& v : k_.values) {
      v.axes = moved(v.axes);
      v.over = moved(v.over);
    }
    k_.axes[inner_].extent = k_.axes[outer_].extent * k_.axes[inner_].extent;
    k_.axes.erase(k_.axes.begin() + static_cast<ptrdiff_t>(outer_));
  }

  Kernel& k_;
  size_t outer_, inner_;
};

}  // namespace

void merge_axes(Kernel& kernel) {
  for (const loop::KernelAxis& axis : kernel.axes)
    if (bounds(axis.extent).lo < 1) return;
  for (size_t inner = kernel.axes.size(); inner-- > 1;) {
    AxisKind kind = kernel.axes[inner].kind;
    if (kind == AxisKind::scan) continue;
    for (size_t outer = inner; outer-- > 0;) {
      if (kernel.axes[outer].kind != kind) continue;
      if (!Merge(kernel, outer, inner).run()) break;
      --inner;
    }
  }
}

}  // namespace tn::codegen
