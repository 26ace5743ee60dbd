#include "compiler/group.h"

namespace tn {

namespace {

constexpr int kMaxGroup = 200;  // ops in one kernel

TypeRef type_at(const Graph& graph, Val v) { return graph.types[static_cast<size_t>(v)]; }

/// The points a kernel rooted at `op` visits: of the result, or of what a reduction reads.
const Shape& domain(const Graph& graph, const GraphOp& op) {
  Val v = op.op->family == Family::reduction ? graph.in(op)[0] : op.out;
  return type_at(graph, v)->shape;
}

}  // namespace

bool has_loop_form(const Graph& graph, const GraphOp& op) {
  bool complex = false;
  for (Val v : graph.in(op)) complex |= is_complex(type_at(graph, v)->dtype);
  if (op.op->is_elementwise())
    return complex ? op.op->complex != nullptr : op.op->scalar != nullptr;
  return op.op->family == Family::reduction && !(complex && op.op->run);
}

/// From the last op to the first: an elementwise op joins the kernel of its readers when they all
/// are in one kernel and visit the same points. All readers inside means no path leaves the kernel
/// and comes back.
std::vector<int> group_elementwise(const Graph& graph) {
  int count = static_cast<int>(graph.ops.size());
  constexpr int kUnread = -1, kMixed = -2;
  std::vector<int> reader(graph.types.size(), kUnread);  // by value: the one kernel that reads it
  std::vector<int> group(graph.ops.size(), -1), size(graph.ops.size(), 0);
  std::vector<bool> returned(graph.types.size());
  for (Val v : graph.outputs) returned[static_cast<size_t>(v)] = true;
  for (int i = count - 1; i >= 0; --i) {
    const GraphOp& op = graph.ops[static_cast<size_t>(i)];
    int mine = -1;
    if (op.op != &scalar_leaf && has_loop_form(graph, op)) {
      mine = i;
      int root = reader[static_cast<size_t>(op.out)];
      if (op.op->is_elementwise() && root >= 0 && size[static_cast<size_t>(root)] < kMaxGroup) {
        const GraphOp& end = graph.ops[static_cast<size_t>(root)];
        bool stored = returned[static_cast<size_t>(op.out)] && end.op->family == Family::reduction;
        if (!stored && type_at(graph, op.out)->shape == domain(graph, end)) mine = root;
      }
      group[static_cast<size_t>(i)] = mine;
      ++size[static_cast<size_t>(mine)];
    }
    for (Val v : graph.in(op)) {
      int& seen = reader[static_cast<size_t>(v)];
      seen = mine < 0 || (seen != kUnread && seen != mine) ? kMixed : mine;
    }
  }
  return group;
}

}  // namespace tn
