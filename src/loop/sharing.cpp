#include "loop/sharing.h"

#include <algorithm>

#include "ir/dtype.h"
#include "loop/analysis.h"

namespace tn::loop {
namespace {

/// Whether it is loaded from, or masked by, a computed place.
bool gathers(const Kernel& kernel, const Value& v) {
  if (v.op != Op::load && v.op != Op::index) return false;
  auto computed = [&](PolyId poly) { return kernel.polys.has_values(poly); };
  return computed(v.index) ||
         (v.mask != kNone &&
          std::ranges::any_of(kernel.masks[static_cast<size_t>(v.mask)], computed));
}

/// Marks the values that `stored` may be, element by element, without any computation.
std::vector<bool> copied_by(const Kernel& kernel, ValueId stored) {
  std::vector<bool> copied(static_cast<size_t>(stored) + 1);
  copied.back() = true;
  for (size_t id = copied.size(); id-- > 0;) {
    const Value& v = kernel.values[id];
    bool is_same = v.op == Op::bitcast || v.op == Op::select ||
                   (v.op == Op::cast && kernel.values[static_cast<size_t>(v.a)].type == v.type);
    if (!copied[id] || !is_same) continue;
    bool selects = v.op == Op::select;
    copied[static_cast<size_t>(selects ? v.b : v.a)] = true;
    if (selects) copied[static_cast<size_t>(v.c)] = true;
  }
  return copied;
}

}  // namespace

Sharing::Sharing(const Kernel& kernel)
    : kernel_(kernel), loads_(kernel.buffers.size()), stores_(kernel.buffers.size()) {
  for (size_t k = 0; k < kernel.axes.size(); ++k)
    if (kernel.axes[k].kind == AxisKind::par && !kernel.axes[k].extent.is(1))
      par_ |= AxisSet{1} << k;
  // A value behind a reduction is computed in a later sweep over the points. That of a gathered
  // value is not looked for: it may be the last.
  std::vector<int> sweep;
  int reductions = static_cast<int>(
      std::ranges::count(kernel.values, Op::reduce, [](const Value& v) { return v.op; }));
  for (const Value& v : kernel.values) {
    int after = gathers(kernel, v) ? reductions : 0;
    ValueId operands[] = {v.a, v.b, v.c};
    for (int i = 0; i < facts(v.op).operands; ++i)
      after = std::max(after, sweep[static_cast<size_t>(operands[i])]);
    if (v.op == Op::reduce) last_reduction_ = std::max(last_reduction_, after++);
    sweep.push_back(after);
    if (v.op != Op::load) continue;
    Access& load = loads_[static_cast<size_t>(v.buffer)];
    load.plain &= load.count++ == 0 || load.index == v.index;
    load.index = v.index;
    load.axes |= v.axes;
  }
  for (const Store& s : kernel.stores) {
    Access& store = stores_[static_cast<size_t>(s.buffer)];
    store.plain &=
        store.count++ == 0 && !s.scattered && s.combine == Combine::set && s.mask == kNone;
    store.index = s.index;
    const Value& value = kernel.values[static_cast<size_t>(s.value)];
    store.axes |= value.axes;
    store.sweep = std::max(store.sweep, sweep[static_cast<size_t>(s.value)]);
    std::vector<bool> copied = copied_by(kernel, s.value);
    for (size_t id = 0; id < copied.size(); ++id) {
      const Value& v = kernel.values[id];
      if (!copied[id] || v.op != Op::load) continue;
      Access& load = loads_[static_cast<size_t>(v.buffer)];
      // Two outputs that are the same load have the same elements.
      bool is_alike = load.copied == s.value && &v == &value;
      bool is_only = load.copies_to == kNone || load.copies_to == s.buffer;
      load.copies_to = is_only || (is_alike && load.copies_to != kSeveral) ? s.buffer : kSeveral;
      load.copied = s.value;
    }
  }
}

bool Sharing::allows(int input, int output) const {
  const BufferParam& from = kernel_.buffers[static_cast<size_t>(input)];
  const BufferParam& to = kernel_.buffers[static_cast<size_t>(output)];
  const Access& load = loads_[static_cast<size_t>(input)];
  const Access& store = stores_[static_cast<size_t>(output)];
  if (from.written || size_of(from.type) != size_of(to.type) || !store.count || !store.plain)
    return false;
  if (load.count && (!load.plain || load.index != store.index)) return false;
  // Along an axis that the index leaves out, every point loads the same place again.
  if (load.count && (par_ & ~axes_in(kernel_, store.index)) != 0) return false;
  // What is stored as it was loaded may be moved from memory to memory, after other stores. So may
  // a selection: where its condition is known for a part of the domain, it is one of its operands.
  if (load.copies_to != kNone && load.copies_to != output) return false;
  // No sweep that may load the input again comes after the store's.
  return last_reduction_ <= store.sweep && std::ranges::all_of(stores_, [&](const Access& other) {
           return !other.count || (other.axes & load.axes) != load.axes ||
                  other.sweep <= store.sweep;
         });
}

}  // namespace tn::loop
