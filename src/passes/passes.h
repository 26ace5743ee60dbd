#pragma once
// The passes. Each is one file, with its equation on top and cases in tests/golden/passes.
#include <array>
#include <bit>

#include "passes/pass.h"

namespace tn {

Graph inline_calls(const Graph& graph, PassContext& context);
Graph claim_composites(const Graph& graph, PassContext& context);
Graph fold_constants(const Graph& graph, PassContext& context);
Graph canonicalise(const Graph& graph, PassContext& context);
Graph merge_equal_ops(const Graph& graph, PassContext& context);
Graph drop_dead_ops(const Graph& graph, PassContext& context);
Graph absorb_factors(const Graph& graph, PassContext& context);
Graph repeat_rematerialised(const Graph& graph, PassContext& context);

/// Whether running the op does something besides giving values: it prints or checks, or a graph
/// among its attributes does. It is neither merged with its like nor run ahead of time.
bool has_effects(const GraphOp& op);

/// A number by its bits: 0 and -0 are two.
inline std::array<uint64_t, 4> bits_of(const Scalar& s) {
  return {static_cast<uint64_t>(s.kind), static_cast<uint64_t>(s.integer),
          std::bit_cast<uint64_t>(s.real), std::bit_cast<uint64_t>(s.imag)};
}

}  // namespace tn
