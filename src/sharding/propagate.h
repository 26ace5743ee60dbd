#pragma once
// Propagation: from the layouts that a user gave for some values to layouts for all.
#include "ir/decision.h"
#include "ops/shard_attrs.h"
#include "sharding/links.h"

namespace tn::sharding {

/// Whose constraints come first. Stored layouts spread through elementwise ops of one shape only.
using Priority = ops::ShardRole;

/// A layout that a user gave.
struct Constraint {
  Val value;
  Layout layout;
  Priority priority = Priority::data;
  Loc loc = {};  // the user's line
};

/// Whether a result has its elements where the operands have theirs: stored layouts go through.
bool keeps_places(const OpDef& op);

/// The layouts that the ops `shard` of a graph say. Fails where the mesh has no such axes, or the
/// extents no room for them.
std::vector<Constraint> constraints_in(const Graph& graph, const Mesh& mesh);

struct Layouts {
  std::vector<Layout> values;             // of every value, without partial ones
  std::vector<uint32_t> folds;            // of every op: mesh axes that reached it along a fold
  std::vector<uint32_t> parameters = {};  // of every value: axes that parameters brought
};

/// A layout for every value. A mesh axis is given to a tensor once, and to
/// an op once: what comes first stays. Results of `shard` have the layout that it says, no other.
/// Depends on the parts of the mesh, not on its sizes.
Layouts propagate(const Graph& graph, const Mesh& mesh, std::span<const Constraint> constraints,
                  Links& links, Decisions* decisions);

}  // namespace tn::sharding
