#pragma once
// Propagation: from the layouts that a user gave for some values to layouts for all.
#include "ir/decision.h"
#include "sharding/links.h"

namespace tn::sharding {

/// Whose constraints come first. Stored layouts spread through elementwise ops of one shape only.
enum class Priority : uint8_t { data, parameter, stored };

/// A layout that a user gave.
struct Constraint {
  Val value;
  Layout layout;
  Priority priority = Priority::data;
};

struct Layouts {
  std::vector<Layout> values;   // of every value, without partial ones
  std::vector<uint32_t> folds;  // of every op: mesh axes that reached it along a fold
};

/// A layout for every value. A mesh axis is given to a tensor once, and to
/// an op once: what comes first stays. Depends on the parts of the mesh, not on its sizes.
Layouts propagate(const Graph& graph, const Mesh& mesh, std::span<const Constraint> constraints,
                  Links& links, Decisions* decisions);

}  // namespace tn::sharding
