#pragma once
// Ops whose elements depend on where they are in the whole tensor: coordinates and random numbers.
#include <optional>

#include "sharding/local_graph.h"

namespace tn::sharding {

/// Whether the op is one of them.
bool has_positions(const OpDef& op);
/// Whether the op makes its result from positions that this layout divides.
bool depends_on_position(const GraphOp& op, const Layout& layout, int rank);
/// Adds what a worker holds of the result, from whole operands; nothing if the op has no such form.
std::optional<Val> add_by_position(LocalGraph& graph, const Mesh& mesh, const GraphOp& op,
                                   TypeRef type, const Layout& layout, std::span<const Val> in);

}  // namespace tn::sharding
