#pragma once
// Tape: the recorded ops between some inputs and the results computed from them. Every transform
// walks one: backwards for vjp, forwards for jvp and vmap, or copied into a Graph.
#include "ir/graph.h"

namespace tn {

struct Tape {
  struct Entry {
    Tensor holder;           // keeps the node
    int32_t operand, value;  // first of its operands (in `operands`) and of its results
    Node& node() const { return *holder.node(); }
  };
  std::vector<Entry> entries;     // operands before users; only what depends on the inputs
  std::vector<int32_t> operands;  // numbers of values; kNoVal: does not depend on the inputs
  std::vector<int32_t> outputs;
  Tensors held;                    // parallel to `operands` if nodes may release theirs; else empty
  int32_t inputs = 0, values = 0;  // values: inputs first, then results in order

  std::span<const int32_t> operands_of(const Entry& e) const {
    return {operands.data() + e.operand, e.node().ins};
  }
};

/// `inputs` are the first results of nodes made for the trace: parameters or copies. Nodes recorded
/// before them cannot depend on them, so the walk ends there. Those of the tape are the first
/// `distinct` ones; the others, lists of that length, stand for these.
Tape tape_of(std::span<const Tensor> inputs, std::span<const Tensor> outputs, size_t distinct);
Tape tape_of(std::span<const Tensor> inputs, std::span<const Tensor> outputs);
/// With everything recorded since `start`, whether it depends on the inputs or not.
Tape tape_since(uint64_t start, std::span<const Tensor> inputs, std::span<const Tensor> outputs);

/// The tape behind `loss`, and the leaves of backward() it leads to, which are its inputs.
struct WatchedTape {
  Tape tape;
  Tensors leaves;
  Tensor blocked;  // null, or a result with a leaf behind it to which no ops lead any more
};
WatchedTape tape_to_leaves(const Tensor& loss);

/// Operand k of a taped node, as a handle.
Tensor operand_of(const Node& node, int k);
Tensors operands_of(const Node& node);
Tensors operands_of(const Tape& tape, const Tape::Entry& entry);
Tensors results_of(Node& node);

/// Numbers that no simplification looks at: inputs of a graph, so that graphs which differ in them
/// are one, or a part of it.
enum class Numbers : uint8_t { are_inputs, are_constants };
/// A tape as a graph, and the tensors from outside that its further inputs stand for.
Captured capture(const Tape& tape, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                 Numbers numbers = Numbers::are_inputs);

/// Fails when one of `list` is null: "vjp: argument 0 is missing".
void check_given(const Tensors& list, std::string_view by, std::string_view what);

/// A fresh identity for `x`: derivatives with respect to the copy are not mixed up with others.
Tensor taped_copy(const Tensor& x);

}  // namespace tn
