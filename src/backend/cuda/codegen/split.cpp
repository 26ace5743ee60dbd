// Kernels whose reductions run over different axes, or whose scans run in both directions, become
// several: each reduction and each scan leaves its results in the room, where those after it read
// them.
#include <algorithm>
#include <bit>
#include <functional>

#include "backend/cuda/codegen/gpu_schedule.h"
#include "base/text.h"

namespace tn::cuda {
namespace {

using loop::AxisKind;
using loop::AxisSet;
using loop::Kernel;
using loop::Op;
using loop::ValueId;

/// Whether one part can hold all of it.
bool is_whole(const Kernel& kernel, const loop::Analysis& a) {
  if (!a.plain) return false;
  bool scattered = std::ranges::any_of(kernel.stores, [](auto& s) { return s.scattered; });
  bool combines =
      std::ranges::any_of(kernel.stores, [](auto& s) { return s.combine != loop::Combine::set; });
  if (a.red && (scattered || combines)) return false;
  if (a.scan && scattered) return false;
  for (const loop::StoreFacts& store : a.stores)
    if (AxisSet inner = store.axes & a.inner(); inner && inner != a.inner()) return false;
  return true;
}

/// Keeps the axes in `used` and makes those in `inner` of the kind `kind`, the others par; the rest
/// has one point.
void set_axes(Kernel& kernel, AxisSet used, AxisSet inner, AxisKind kind) {
  for (size_t k = 0; k < kernel.axes.size(); ++k) {
    bool in = used >> k & 1;
    kernel.axes[k].kind = inner >> k & 1 ? kind : AxisKind::par;
    if (!in) kernel.axes[k].extent = 1;
  }
}

/// Where the value of each point of `axes` lies, row-major.
PolyId flat_index(Kernel& kernel, const std::vector<loop::KernelAxis>& axes, AxisSet varies,
                  Dim& size) {
  PolyTable& t = kernel.polys;
  PolyId index = t.constant(0), stride = t.constant(1);
  size = 1;
  for (size_t k = axes.size(); k-- > 0;) {
    if (!(varies >> k & 1)) continue;
    PolyId extent = t.from_dim(axes[k].extent);
    index = t.add(index, t.mul(t.axis(static_cast<uint32_t>(k), extent), stride));
    stride = t.mul(stride, extent);
    size = size * axes[k].extent;
  }
  return index;
}

/// A store runs once at each point of the axes it varies along: combined twice, it would be wrong.
/// Where an inner axis is empty, those that vary along any inner axis do not run. Those along more
/// axes come first: they may load what a result along fewer axes takes the place of.
template <class Add>
void add_stores(const Kernel& kernel, const loop::Analysis& a, const Add& add) {
  std::vector<AxisSet> sets;
  for (const loop::StoreFacts& store : a.stores)
    if (std::ranges::count(sets, a.par | store.axes) == 0) sets.push_back(a.par | store.axes);
  std::ranges::stable_sort(sets, std::greater(), [](AxisSet set) { return std::popcount(set); });
  for (AxisSet used : sets) {
    Kernel part = kernel;
    part.stores.clear();
    for (size_t i = 0; i < kernel.stores.size(); ++i)
      if ((a.par | a.stores[i].axes) == used) part.stores.push_back(kernel.stores[i]);
    set_axes(part, used, 0, AxisKind::par);
    for (size_t k = 0; used & a.inner() && k < part.axes.size(); ++k)
      if (!(used >> k & 1)) part.axes[k].extent = min(kernel.axes[k].extent, 1);
    add(std::move(part));
  }
}

}  // namespace

std::vector<Part> split(Kernel kernel, int first_room) {
  std::vector<Part> parts;
  auto add = [&](Kernel made) {
    Part part;
    part.kernel = std::move(made);
    part.first_room = first_room;
    parts.push_back(std::move(part));
  };
  loop::Analysis a = loop::analyse(kernel);
  if (is_whole(kernel, a)) {
    add(std::move(kernel));
    return parts;
  }
  const std::vector<loop::KernelAxis> axes = kernel.axes;
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    loop::Value v = kernel.values[i];
    if (!a.needed[i] || (v.op != Op::reduce && v.op != Op::scan)) continue;
    Dim size = 1;
    PolyId index = flat_index(kernel, axes, v.axes, size);
    int buffer = static_cast<int>(kernel.buffers.size());
    kernel.buffers.push_back({format("room{}", buffer - first_room), v.type, size, true});
    Kernel part = kernel;
    part.stores = {{buffer, index, static_cast<ValueId>(i)}};
    AxisKind kind = v.op == Op::reduce ? AxisKind::red : AxisKind::scan;
    set_axes(part, v.axes | v.over, v.over, kind);
    add(std::move(part));
    kernel.values[i] = {};
    kernel.values[i].op = Op::load;
    kernel.values[i].type = v.type;
    kernel.values[i].axes = v.axes;
    kernel.values[i].buffer = buffer;
    kernel.values[i].index = index;
  }
  set_axes(kernel, ~AxisSet{0}, 0, AxisKind::par);
  add_stores(kernel, a, add);
  for (Part& part : parts) part.kernel.buffers = parts.back().kernel.buffers;
  return parts;
}

}  // namespace tn::cuda
