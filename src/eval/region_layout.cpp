#include "eval/region_layout.h"

#include <set>

#include "base/debug_log.h"
#include "base/environment_number.h"
#include "ir/mesh_layout.h"
#include "ir/rewrite.h"
#include "ir/watch.h"
#include "ops/op_decls.h"
#include "ops/shard_attrs.h"

namespace tn {
namespace {

const std::optional<signal::Shard>& automatic() {
  static const std::optional<signal::Shard> shard = environment_number("TENON_AUTO_SHARD", 0, 0)
                                                        ? std::optional(signal::Shard{0, {}, false})
                                                        : std::nullopt;
  return shard;
}

/// The attributes of `shard` that a setting comes to; none where there is no room, or no mesh.
std::optional<ops::ShardAttrs> attrs_for(const Type& type, const signal::Shard& shard,
                                         std::string& names) {
  if (!is_mesh(type.device)) return {};
  ops::ShardAttrs attrs;
  if (shard.replicated || !shard.axis) return attrs;
  int64_t axis = *shard.axis < 0 ? *shard.axis + type.rank() : *shard.axis;
  Mesh mesh = mesh_of(type.device);
  int64_t parts = 1;
  for (const MeshAxis& of : mesh.axes) {
    parts *= of.parts;
    names += (names.empty() ? "" : ",") + of.name;
    attrs.axes.push_back(Axis(static_cast<int>(axis)));
  }
  bool has_room =
      axis >= 0 && axis < type.rank() && has_digit(type.shape[static_cast<int>(axis)], 1, parts);
  if (has_room) return attrs;
  debug_compile("shard: axis {} of {} is not divided into {} parts: it stays whole", *shard.axis,
                type, parts);
  return {};
}

/// Whether an op makes its results from numbers, or from the key of random numbers.
bool is_made(const Graph& graph, const GraphOp& op, const std::vector<bool>& is_number) {
  bool has_key = op.op->args.size() > 0 && op.op->args[0].name == "key";
  for (int k = has_key; k < op.ins; ++k)
    if (!is_number[static_cast<size_t>(graph.in(op)[static_cast<size_t>(k)])]) return false;
  return op.outs == 1;
}

bool is_parameter(const Node& node) { return watch_bits(node) & (kLeaf | kReplaced); }

/// By node: whether it belongs to the region. Nodes of others may be pending when it is computed.
std::vector<bool> nodes_inside(const Walk& walk, const SignalRegion* region) {
  std::vector<bool> inside(walk.nodes.size(), true);
  if (!region || !region->shard) return inside;
  std::vector<RegionRef> regions = regions_of(walk.nodes);
  for (size_t i = 0; i < inside.size(); ++i)
    inside[i] = regions[i] && as_signal(regions[i])->plan == region->plan;
  return inside;
}

/// By input of the graph of a walk, then by op: whether the layout says something of it.
std::vector<bool> concerned(const Walk& walk, const SignalRegion* region) {
  std::vector<bool> list, inside = nodes_inside(walk, region);
  std::set<const Node*> read;  // by the region
  for (size_t i = 0; i < inside.size(); ++i)
    for (int k = 0; inside[i] && k < walk.nodes[i]->ins; ++k)
      read.insert(walk.nodes[i]->inputs()[k].node);
  for (const Node* leaf : walk.leaves) {
    bool enters = region && region->shard && read.contains(leaf) && !is_parameter(*leaf);
    if (!is_scalar(*leaf)) list.insert(list.end(), leaf->outs, enters);
  }
  for (size_t i = 0; i < inside.size(); ++i)
    list.push_back(inside[i] && !is_parameter(*walk.nodes[i]));
  return list;
}

}  // namespace

const signal::Shard* shard_of(const SignalRegion* region) {
  if (region && region->shard) return &*region->shard;
  return automatic() ? &*automatic() : nullptr;
}

void add_layouts(FlushKey& key, const Walk& walk, const SignalRegion* region) {
  const signal::Shard* shard = shard_of(region);
  if (!shard) return;
  // The settings of a region are not in its own number where those of an outer one hold.
  bool is_divided = shard->axis && !shard->replicated;
  add_word(key, is_divided ? static_cast<uint64_t>(*shard->axis) : ~uint64_t{0} >> 1);
  uint64_t word = 1;
  for (bool is_concerned : concerned(walk, region)) {
    word = word << 1 | uint64_t{is_concerned};
    if (word >> 63) add_word(key, std::exchange(word, 1));
  }
  add_word(key, word);
}

Graph with_layouts(Graph graph, const Walk& walk, const SignalRegion* region) {
  const signal::Shard* shard = shard_of(region);
  if (!shard) return graph;
  Graph made;
  GraphCopy copy{graph, made};
  copy.inputs();
  auto divide = [&](Val v, Loc loc) {
    std::string names;
    TypeRef type = graph.types[static_cast<size_t>(v)];
    std::optional<ops::ShardAttrs> attrs = attrs_for(*type, *shard, names);
    if (!attrs) return;
    attrs->mesh_axes = intern(names);
    const Attrs* interned = intern(*ops::shard.attrs, &*attrs);
    copy[v] = made.add(ops::shard, interned, std::array{copy[v]}, std::array{type}, loc);
  };
  std::vector<bool> wanted = concerned(walk, region), is_number(graph.types.size());
  bool begun = false;  // numbers come first
  auto next = wanted.begin() + graph.inputs();
  for (const GraphOp& op : graph.ops) {
    if (op.op == &scalar_leaf) {
      copy.op(op);
      is_number[static_cast<size_t>(op.out)] = true;
      continue;
    }
    if (!std::exchange(begun, true))
      for (Val v = 0; v < graph.inputs(); ++v)
        if (wanted[static_cast<size_t>(v)]) divide(v, op.loc);
    copy.op(op);
    bool is_new = op.op == &ops::to_device || is_made(graph, op, is_number);
    if (*next++ && is_new) divide(op.out, op.loc);
    // The one element of a tensor that is repeated.
    if (is_new && op.outs == 1 && graph.types[static_cast<size_t>(op.out)]->elements == 1)
      is_number[static_cast<size_t>(op.out)] = true;
  }
  made.outputs = copy.all(graph.outputs);
  return made;
}

Tensor as_said(const Tensor& x, const signal::Shard& shard) {
  std::string names;
  std::optional<ops::ShardAttrs> attrs = attrs_for(*type_of(x), shard, names);
  if (!attrs) return x;
  attrs->mesh_axes = intern(names);
  return emit(ops::shard, {x}, *attrs);
}

}  // namespace tn
