#include "backend/source/kernel_facts.h"

#include <algorithm>

#include "base/error.h"

namespace tn::source {

KernelFacts::KernelFacts(const Kernel& kernel) : k_(kernel) {
  for (const loop::KernelAxis& axis : k_.axes) {
    if (!axis.extent.is_const())
      fail(Hint{"bind the sizes to numbers first"}, "c source: kernel {} has the size {}", k_.name,
           axis.extent);
    extents_.push_back(axis.extent.value());
  }
  find_levels();
  find_store_axes();
  for (size_t k = 0; k < extents_.size(); ++k)
    if (k_.axes[k].kind == loop::AxisKind::par) par_ |= bit(k);
}

void KernelFacts::find_levels() {
  for (const Value& v : k_.values) {
    int level = 0;
    for_each_operand(v,
                     [&](ValueId id) { level = std::max(level, level_[static_cast<size_t>(id)]); });
    level_.push_back(level + (v.op == loop::Op::reduce));
    levels_ = std::max(levels_, level_.back());
  }
}

void KernelFacts::find_store_axes() {
  for (const loop::Store& store : k_.stores) {
    AxisSet axes = value(store.value).axes;
    for_each_atom(store.index, store.mask, [&](const Atom& atom) {
      if (atom.kind == AtomKind::axis) axes |= bit(atom.a);
      if (atom.kind == AtomKind::value) axes |= k_.values[atom.a].axes;
    });
    store_axes_.push_back(axes);
  }
}

}  // namespace tn::source
