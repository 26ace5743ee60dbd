#pragma once
// Graph: what is compiled, printed, parsed and saved. Dense arrays in topological order.
#include <string>
#include <vector>

#include "ir/emit.h"

namespace tn {

using Val = int32_t;  // a value of a graph: inputs first, then results in order
inline constexpr Val kNoVal = -1;

struct GraphOp {
  const OpDef* op;
  const Attrs* attrs = nullptr;
  Scalar scalar;  // of a constant (op == &scalar_leaf)
  Loc loc;
  int32_t in = 0, ins = 0;  // operands[in, in + ins)
  Val out = 0;
  int32_t outs = 1;  // values [out, out + outs)

  const void* attr_data() const { return attrs ? attrs->data : nullptr; }
};

struct Graph {
  std::string name = "main";
  std::vector<TypeRef> types;            // of every value
  std::vector<std::string> input_names;  // values 0 … are the inputs
  std::vector<GraphOp> ops;
  std::vector<Val> operands;
  std::vector<Val> outputs;

  int inputs() const { return static_cast<int>(input_names.size()); }
  int values() const { return static_cast<int>(types.size()); }
  std::span<const Val> in(const GraphOp& op) const {
    return {operands.data() + op.in, static_cast<size_t>(op.ins)};
  }
  std::vector<TypeRef> in_types(const GraphOp& op) const;
  Types out_types(const GraphOp& op) const {
    return {types.data() + op.out, static_cast<size_t>(op.outs)};
  }

  Val add_input(std::string name, TypeRef type);  // before any op
  /// Appends an op and returns its first result.
  Val add(const OpDef& op, const Attrs* attrs, std::span<const Val> in, Types out, Loc loc = {});
  Val add_constant(const Scalar& value, TypeRef type, Loc loc = {});
};

/// A graph and the tensors that its inputs behind the parameters stand for.
struct Captured {
  Graph graph;
  Tensors leaves;
};

/// Recorded nodes that become a graph.
struct Recorded {
  std::span<const Tensor> params;  // the first inputs
  std::vector<Node*> leaves;       // from outside: all their results are further inputs
  std::vector<Node*> numbers;      // constants before all ops. Others are added before their use.
  std::vector<Node*> ops;          // operands before users
  std::vector<Edge> outputs;
};
/// The one function that makes graphs of recorded nodes, whether a walk or a tape found them.
Captured graph_of(const Recorded& recorded);

/// The recorded ops behind `outputs` as a graph: parameters become the first inputs, computed data
/// further ones (in `leaves`), numbers constants.
Captured capture(std::span<const Tensor> params, std::span<const Tensor> outputs);

struct Walk;
/// The nodes of a walk as a graph that returns `outputs`. Leaves are handed out in the graph's
/// input order.
Captured capture(const Walk& walk, std::span<const Tensor> params, std::span<const Edge> outputs);

/// Records the graph's ops again, on `args`.
Tensors replay(const Graph& graph, std::span<const Tensor> args);

/// The canonical text; what prints, parses.
///
///     func @main(%x: f32[4,6], %y: f32[6]) -> f32[4] {
///       %0 = add %x, %y : f32[4,6]
///       %1 = sum %0 {axis=[1]} : f32[4]
///       return %1
///     }
std::string to_text(const Graph& graph);
/// Parses one function; result types may be left out and are inferred. Errors name the line, and
/// count from `first_line`.
Graph parse_graph(std::string_view text, int first_line = 1);
/// Infers every type again and compares; an internal error names `stage` and the op.
void verify(const Graph& graph, std::string_view stage);

/// Composites replaced by their bodies, until none is left.
Graph expand_composites(const Graph& graph);
/// Without the ops that no output needs. Inputs stay.
Graph prune(const Graph& graph);

}  // namespace tn
