#pragma once
// Gathers and scatters of a tensor that is divided where it is indexed. A worker counts indices
// from the start of its block, reads or writes what is there, and drops the rest.
#include "sharding/local_graph.h"
#include "sharding/op_division.h"

namespace tn::sharding {

/// Whether the op has an indexed dimension that this division divides.
bool is_indexed_in_blocks(const GraphOp& op, const Division& division);
/// Whether a fold over it picks elements: one worker has each, the others have zeros.
bool picks_from_blocks(const GraphOp& op);

/// Makes the index operands count from the blocks of a worker. Returns the attributes of the op
/// that drops what is outside. `x` is the type of the whole tensor.
const Attrs* count_from_blocks(LocalGraph& graph, const Mesh& mesh, const GraphOp& op,
                               const InternedType& x, const Division& division,
                               std::span<Form> operands);

/// The elements that workers along `axes` have picked, from what one of them has: in `target` where
/// that divides them along such an axis. Bits are added as integers, so that every element keeps
/// its own, of -0 and of NaN too.
Form joined_picks(LocalGraph& graph, const Mesh& mesh, Form picked, uint32_t axes, TypeRef type,
                  const Layout& target);

}  // namespace tn::sharding
