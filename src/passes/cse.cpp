// y = f(x…), z = f(x…)  ⇒  z = y
//
// f is the op with its attributes; a number is its type and its bits. Of exactly commutative ops
// f(a, b) = f(b, a). What prints or checks is never merged: it is run for what it does. Nor is a
// rematerialised op merged with the original, since that is still inside its call.
#include <unordered_set>

#include "base/hash.h"
#include "ir/rewrite.h"
#include "ops/op_decls.h"
#include "passes/passes.h"

namespace tn {

namespace {

/// max and min are not among them: they may tell 0 from -0 by position.
bool is_commutative(const GraphOp& op) {
  static const OpDef* const kOps[] = {
      &ops::add,        &ops::multiply,    &ops::equal,       &ops::not_equal,  &ops::bitwise_and,
      &ops::bitwise_or, &ops::bitwise_xor, &ops::logical_and, &ops::logical_or, &ops::logical_xor,
  };
  return std::ranges::count(kOps, op.op) > 0;
}

/// Ops of the graph that is being made, by their numbers.
struct OpTable {
  const Graph& graph;

  const GraphOp& op(int i) const { return graph.ops[static_cast<size_t>(i)]; }
  TypeRef type(const GraphOp& op) const { return graph.types[static_cast<size_t>(op.out)]; }

  size_t operator()(int i) const {
    const GraphOp& a = op(i);
    uint64_t hash = combine(reinterpret_cast<uint64_t>(a.op), reinterpret_cast<uint64_t>(a.attrs));
    if (a.op == &scalar_leaf) {
      hash = combine(hash, reinterpret_cast<uint64_t>(type(a)));
      for (uint64_t word : bits_of(a.scalar)) hash = combine(hash, word);
    }
    if (is_commutative(a)) {
      auto [low, high] = std::minmax(graph.in(a)[0], graph.in(a)[1]);
      return combine(combine(hash, static_cast<uint64_t>(low)), static_cast<uint64_t>(high));
    }
    for (Val v : graph.in(a)) hash = combine(hash, static_cast<uint64_t>(v));
    return hash;
  }
  bool operator()(int i, int k) const {
    const GraphOp &a = op(i), &b = op(k);
    if (a.op != b.op || a.attrs != b.attrs) return false;
    if (a.op == &scalar_leaf) return type(a) == type(b) && bits_of(a.scalar) == bits_of(b.scalar);
    std::span<const Val> x = graph.in(a), y = graph.in(b);
    if (std::ranges::equal(x, y)) return true;
    return is_commutative(a) && x[0] == y[1] && x[1] == y[0];
  }
};

void remove_last_op(Graph& graph) {
  graph.types.resize(static_cast<size_t>(graph.ops.back().out));
  graph.operands.resize(static_cast<size_t>(graph.ops.back().in));
  graph.ops.pop_back();
}

}  // namespace

Graph merge_equal_ops(const Graph& graph, PassContext&) {
  Graph out;
  GraphCopy copy{graph, out};
  copy.inputs();
  OpTable table{out};
  std::unordered_set<int, OpTable, OpTable> seen(graph.ops.size(), table, table);
  for (const GraphOp& op : graph.ops) {
    copy.op(op);
    if (has_effects(op)) continue;
    auto [first, is_new] = seen.insert(static_cast<int>(out.ops.size()) - 1);
    if (is_new) continue;
    remove_last_op(out);
    Val same = out.ops[static_cast<size_t>(*first)].out;
    for (int i = 0; i < op.outs; ++i) copy[op.out + i] = same + i;
  }
  out.outputs = copy.all(graph.outputs);
  return out;
}

}  // namespace tn
