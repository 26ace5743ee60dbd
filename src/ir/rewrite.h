#pragma once
// What graphs are rewritten with.
#include <optional>

#include "base/function_ref.h"
#include "ir/graph.h"

namespace tn {

/// A graph under way: which value of the one made stands for each of the one read.
struct GraphCopy {
  const Graph& from;
  Graph& to;
  std::vector<Val> value = std::vector<Val>(from.types.size(), kNoVal);

  Val& operator[](Val v) { return value[static_cast<size_t>(v)]; }
  std::vector<Val> in(const GraphOp& op) { return all(from.in(op)); }
  std::vector<Val> all(std::span<const Val> list) {
    std::vector<Val> mapped;
    mapped.reserve(list.size());
    for (Val v : list) mapped.push_back((*this)[v]);
    return mapped;
  }
  void inputs() {
    to.name = from.name, to.input_names = from.input_names;
    to.types.assign(from.types.begin(), from.types.begin() + from.inputs());
    for (Val v = 0; v < from.inputs(); ++v) (*this)[v] = v;
  }
  void op(const GraphOp& op, Loc loc) {
    Val first = to.add(*op.op, op.attrs, in(op), from.out_types(op), loc);
    to.ops.back().scalar = op.scalar;
    for (int i = 0; i < op.outs; ++i) (*this)[op.out + i] = first + i;
  }
  void op(const GraphOp& one) { op(one, one.loc); }
};

/// Which values some output needs.
std::vector<bool> needed_values(const Graph& graph);
bool is_needed(const GraphOp& op, const std::vector<bool>& needed);

/// Sizes put in for symbols.
std::vector<Replacement> replacements(std::span<const Binding> sizes);
/// The type and the graph with symbols replaced, in types and attributes.
TypeRef substitute(TypeRef type, std::span<const Replacement> replacements);
Graph substitute(const Graph& graph, std::span<const Replacement> replacements);

/// The body of a composite as a graph over its operand types.
Graph body_graph(const OpDef& op, const void* attrs, Types in);

/// Ops replaced by graphs of their operands: `body` gives one, or nothing where the op stays.
/// Ops of a body that have no place get that of the op they replace.
Graph replace_ops(const Graph& graph, FunctionRef<std::optional<Graph>(const GraphOp&)> body);

}  // namespace tn
