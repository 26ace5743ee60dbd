#pragma once
// How one op is divided, while a graph is partitioned.
#include <algorithm>
#include <bit>

#include "sharding/links.h"

namespace tn::sharding {

/// How an op is divided: what every mesh axis reaches, and the partial axes that pass through.
struct Division {
  std::vector<std::optional<Reach>> reaches;  // by mesh axis
  uint32_t kept = 0;

  bool is_whole() const {
    return kept == 0 && std::ranges::none_of(reaches, [](auto& r) { return r.has_value(); });
  }
  std::optional<loop::Monoid> fold() const {
    for (const auto& reach : reaches)
      if (reach && reach->fold) return reach->fold;
    return {};
  }
  uint32_t folded() const {
    uint32_t set = 0;
    for (size_t t = 0; t < reaches.size(); ++t)
      if (reaches[t] && reaches[t]->fold) set |= 1u << t;
    return set;
  }
  /// The layout of a slot, without what is partial.
  Layout layout(const Mesh& mesh, int slot) const {
    Layout made(mesh);
    for (int t = 0; t < mesh.count(); ++t)
      if (const auto& reach = reaches[static_cast<size_t>(t)])
        made[t] = reach->slots[static_cast<size_t>(slot)];
    return made;
  }
};

/// Walks over the parts that a worker holds along some axes, in row-major order.
struct PartCounter {
  std::vector<int> axes;
  std::vector<int64_t> counts, at;
  PartCounter(const Mesh& mesh, uint32_t set) {
    for (int t = 0; t < mesh.count(); ++t) {
      if (!(set >> t & 1)) continue;
      axes.push_back(t), at.push_back(0), counts.push_back(mesh[t].parts_per_worker());
    }
  }
  bool next() {
    for (size_t k = axes.size(); k-- > 0; at[k] = 0)
      if (++at[k] < counts[k]) return true;
    return false;
  }
};

/// A mesh of as many workers as there are parts. What is decided for it holds for all sizes.
inline Mesh finest(Mesh mesh) {
  for (MeshAxis& axis : mesh.axes) axis.size = axis.parts;
  return mesh;
}

/// Whether two graphs are written alike.
inline bool same(const Graph& a, const Graph& b) {
  auto same_op = [](const GraphOp& x, const GraphOp& y) {
    return x.op == y.op && x.attrs == y.attrs && x.ins == y.ins &&
           x.scalar.integer == y.scalar.integer && x.scalar.imag == y.scalar.imag &&
           std::bit_cast<uint64_t>(x.scalar.real) == std::bit_cast<uint64_t>(y.scalar.real);
  };
  return a.types == b.types && a.operands == b.operands && a.outputs == b.outputs &&
         std::ranges::equal(a.ops, b.ops, same_op);
}

}  // namespace tn::sharding
