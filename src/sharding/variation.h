#pragma once
// Along which axes of a mesh the values of a worker's graph may differ, and whether workers that
// take different ways through control flow still meet in their collectives.
#include <span>

#include "ir/graph.h"
#include "ir/mesh_layout.h"

namespace tn::sharding {

/// Of every value, the axes of the mesh along which it may differ by worker, as bits. `inputs` are
/// those of the graph's inputs. A sum or a gather along an axis makes a value equal along it.
std::vector<uint32_t> variation(const Graph& graph, const Mesh& mesh,
                                std::span<const uint32_t> inputs);
/// Of a tensor that is divided so.
uint32_t divided_axes(const Mesh& mesh, const Layout& layout);

/// Control flow whose predicate may differ along an axis, with other collectives along it by the
/// way that a worker takes: workers would wait for each other.
struct UnevenPath {
  std::string_view op;
  int axis;
  Loc loc;
};
std::vector<UnevenPath> uneven_paths(const Graph& graph, const Mesh& mesh,
                                     std::span<const uint32_t> inputs);

}  // namespace tn::sharding
