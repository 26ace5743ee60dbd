#pragma once
// The ops of a graph on what a worker holds: types, attributes, and whether they are the same ops.
#include "sharding/op_division.h"
#include "sharding/partition.h"

namespace tn::sharding {

class LocalOps {
 public:
  LocalOps(const Graph& graph, const Mesh& mesh, Links& links, Decisions* decisions)
      : from_(graph), mesh_(mesh), finest_(finest(mesh)), links_(links), decisions_(decisions) {}

  /// The types of a worker's operands and results. Of folded digits it takes one part at a time.
  std::vector<TypeRef> types(int i, const Division& division, const Mesh& mesh) const;
  /// The attributes for these types, with the graphs that a worker runs inside the op.
  const Attrs* attrs(int i, const Division& division, const Mesh& mesh, Types types);
  /// Whether the op on what a worker of the finest mesh holds gives what it is to hold.
  bool fits(int i, const Division& division);

 private:
  const GraphOp& op_at(int i) const { return from_.ops[static_cast<size_t>(i)]; }
  std::vector<Layout> layouts_inside(int i, const Division& division) const;
  bool has_room_inside(int i, const Division& division) const;
  Partitioned divided_inside(int i, const Division& division, const Mesh& mesh, const Graph& graph,
                             size_t k);
  Partitioned whole_outside(const Graph& graph, const Mesh& mesh, Links& links);
  bool divides_inside(int i, const Division& division);
  bool keeps_body(int i, const Division& division);

  const Graph& from_;
  const Mesh& mesh_;
  const Mesh finest_;
  Links& links_;
  Decisions* decisions_;
};

}  // namespace tn::sharding
