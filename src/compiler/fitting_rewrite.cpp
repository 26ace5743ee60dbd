// v is made, v is read, …, v is read  ⇒  v is made, v is read, …, v' is made, v' is read
#include <algorithm>

#include "compiler/fitting.h"
#include "ir/rewrite.h"

namespace tn {
namespace {

class Rewriter {
 public:
  Rewriter(const Graph& graph, const StoredValues& values)
      : graph_(graph), values_(values), copied_(graph.ops.size(), -1) {
    copy_.inputs();
    for (size_t i = 0; i < graph.ops.size(); ++i)  // in the order in which runs give them
      if (graph.ops[i].op == &scalar_leaf) add(static_cast<int>(i), false);
  }

  Rewritten run(std::span<const Turn> turns) {
    for (const Turn& turn : turns) {
      if (turn.item < 0)
        for (int n : values_.all[index(turn.value)].ops) add(n, true);
      else
        for (int w : values_.items[index(turn.item)].writes)
          for (int n : values_.all[index(w)].ops) copy(n);
    }
    for (size_t i = 0; i < graph_.ops.size(); ++i)  // views of what is stored, among the outputs
      if (copied_[i] < 0) copy(static_cast<int>(i));
    out_.graph.outputs = copy_.all(graph_.outputs);
    drop_dead();
    return std::move(out_);
  }

 private:
  static size_t index(int i) { return static_cast<size_t>(i); }

  void add(int n, bool again) {
    copy_.op(graph_.ops[index(n)]);
    out_.origin.push_back(n);
    out_.again.push_back(again);
    if (!again) copied_[index(n)] = static_cast<int>(out_.graph.ops.size()) - 1;
  }

  /// Where its operands are what they were, the op is there already.
  void copy(int n) {
    const GraphOp& op = graph_.ops[index(n)];
    if (copied_[index(n)] < 0) return add(n, false);
    const GraphOp& known = out_.graph.ops[index(copied_[index(n)])];
    if (!std::ranges::equal(out_.graph.in(known), copy_.in(op))) return add(n, false);
    for (int i = 0; i < op.outs; ++i) copy_[op.out + i] = known.out + i;
  }

  /// What was dropped before it was read is never made.
  void drop_dead() {
    std::vector<bool> needed = needed_values(out_.graph);
    size_t kept = 0;
    for (size_t i = 0; i < out_.graph.ops.size(); ++i) {
      const GraphOp& op = out_.graph.ops[i];
      if (op.op != &scalar_leaf && !is_needed(op, needed)) continue;
      out_.origin[kept] = out_.origin[i], out_.again[kept] = out_.again[i];
      ++kept;
    }
    out_.origin.resize(kept), out_.again.resize(kept);
    out_.graph = prune(out_.graph);
  }

  const Graph& graph_;
  const StoredValues& values_;
  Rewritten out_;
  GraphCopy copy_{graph_, out_.graph};
  std::vector<int> copied_;  // by op: that which stands for it in the graph made, or -1
};

}  // namespace

Rewritten rewrite(const Graph& graph, const StoredValues& values, std::span<const Turn> turns) {
  return Rewriter(graph, values).run(turns);
}

}  // namespace tn
