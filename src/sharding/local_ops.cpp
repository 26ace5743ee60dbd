#include "sharding/local_ops.h"

#include <algorithm>

#include "base/error.h"
#include "ir/rewrite.h"
#include "ops/op_decls.h"
#include "sharding/local_region.h"

namespace tn::sharding {

std::vector<TypeRef> LocalOps::types(int i, const Division& division, const Mesh& mesh) const {
  std::vector<TypeRef> made;
  uint32_t folded = division.folded();
  Mesh taken = mesh;
  for (int t = 0; t < mesh.count(); ++t)
    if (folded >> t & 1) taken.axes[static_cast<size_t>(t)].size = mesh[t].parts;
  for (int slot = 0; slot < links_.slots(i); ++slot)
    made.push_back(local_type(taken, division.layout(mesh, slot),
                              from_.types[static_cast<size_t>(links_.value(i, slot))]));
  return made;
}

bool LocalOps::fits(int i, const Division& division) {
  const GraphOp& op = op_at(i);
  if (!has_room_inside(i, division)) return false;
  std::vector<TypeRef> held = types(i, division, finest_);
  Types all(held), in = all.first(static_cast<size_t>(op.ins));
  try {
    const Attrs* local = attrs(i, division, finest_, held);
    if (op.op->rules->body && op.op != &ops::call && !keeps_body(i, division)) return false;
    if (!divides_inside(i, division)) return false;
    return std::ranges::equal(infer_types(*op.op, local, in), all.subspan(in.size()));
  } catch (const Error&) {
    return false;
  }
}

const Attrs* LocalOps::attrs(int i, const Division& division, const Mesh& mesh, Types types) {
  const GraphOp& op = op_at(i);
  std::vector<GraphRef> graphs = bodies_of(op);
  size_t ins = static_cast<size_t>(op.ins);
  bool stay = std::ranges::none_of(graphs, [](GraphRef g) { return has_borders(*g); });
  if (graphs.empty() || (division.is_whole() && stay))
    return local_attrs(op, from_.in_types(op), from_.out_types(op), types.first(ins),
                       types.subspan(ins));
  return with_bodies(op.attrs, [&, k = size_t{0}](GraphRef graph) mutable {
    return intern(divided_inside(i, division, mesh, *graph, k++).graph);
  });
}

/// Layouts of the values inside the op.
std::vector<Layout> LocalOps::layouts_inside(int i, const Division& division) const {
  const InnerGraph& inner = *links_.inner(i);
  std::vector<Layout> layouts(inner.graph.types.size(), Layout(mesh_));
  for (int t = 0; t < mesh_.count(); ++t)
    if (const auto& reach = division.reaches[static_cast<size_t>(t)])
      for (size_t v = 0; v < layouts.size(); ++v) layouts[v][t] = reach->inside[v];
  return layouts;
}

/// Whether several axes have room inside the op.
bool LocalOps::has_room_inside(int i, const Division& division) const {
  const InnerGraph* inner = links_.inner(i);
  if (!inner) return true;
  std::vector<Layout> layouts = layouts_inside(i, division);
  for (size_t v = 0; v < layouts.size(); ++v)
    for (int t = 0; t < mesh_.count(); ++t)
      if (Digit digit = layouts[v][t];
          digit && !has_room(mesh_, layouts[v], inner->graph.types[v]->shape, t, digit))
        return false;
  return true;
}

/// A graph among the op's attributes, as a worker runs it.
Partitioned LocalOps::divided_inside(int i, const Division& division, const Mesh& mesh,
                                     const Graph& graph, size_t k) {
  Links links(graph);
  if (division.is_whole()) return whole_outside(graph, mesh, links);
  std::vector<Layout> all = layouts_inside(i, division);
  Layouts layouts{{}, std::vector<uint32_t>(graph.ops.size())};
  for (Val v : links_.inner(i)->values_of[k]) layouts.values.push_back(all[static_cast<size_t>(v)]);
  return partition(graph, mesh, layouts, links, nullptr);
}

/// A graph with functions of one worker. What it takes and gives is whole, so all workers go the
/// same way and meet in its collectives.
Partitioned LocalOps::whole_outside(const Graph& graph, const Mesh& mesh, Links& links) {
  Layouts layouts = propagate(graph, mesh, constraints_in(graph, mesh), links, decisions_);
  for (Val v = 0; v < graph.inputs(); ++v) layouts.values[static_cast<size_t>(v)] = Layout(mesh);
  for (Val v : graph.outputs) layouts.values[static_cast<size_t>(v)] = Layout(mesh);
  return partition(graph, mesh, layouts, links, decisions_);
}

/// Whether no graph among the attributes communicates or folds.
bool LocalOps::divides_inside(int i, const Division& division) {
  std::vector<GraphRef> graphs = bodies_of(op_at(i));
  for (size_t k = 0; k < graphs.size(); ++k) {
    Partitioned inside = divided_inside(i, division, finest_, *graphs[k], k);
    if (inside.transitions > 0 || inside.folds > 0) return false;
  }
  return true;
}

/// Whether the composite on local operands is its body, divided.
bool LocalOps::keeps_body(int i, const Division& division) {
  const GraphOp& op = op_at(i);
  const Graph& body = links_.inner(i)->graph;
  Links links(body);
  Layouts layouts{layouts_inside(i, division), std::vector<uint32_t>(body.ops.size())};
  Partitioned inside = partition(body, finest_, layouts, links, nullptr);
  std::vector<TypeRef> held = types(i, division, finest_);
  held.resize(static_cast<size_t>(op.ins));
  return inside.transitions == 0 && same(inside.graph, body_graph(*op.op, op.attr_data(), held));
}

}  // namespace tn::sharding
