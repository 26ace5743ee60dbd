#pragma once
// Computes a graph op by op, to find the one that an error or a bad value comes from.
#include "observe/check.h"

namespace tn {

class OpByOp {
 public:
  /// The graph has no symbols. Called functions are taken apart: the places of their ops are where
  /// something was written.
  explicit OpByOp(const CheckedRun& run);

  const Graph& graph() const { return graph_; }
  /// Of a value that is computed and still needed by an op to come.
  const Bound& value(Val v) const { return values_[at(v)]; }
  const GraphOp* maker(Val v) const { return maker_[at(v)]; }
  bool is_number(Val v) const { return maker_[at(v)] && maker_[at(v)]->op == &scalar_leaf; }

  /// Computes op number n. The ops before it have been computed.
  void compute(size_t n);
  /// Lets go of the operands of op number n that nothing else needs.
  void release_operands(size_t n);

 private:
  static size_t at(Val v) { return static_cast<size_t>(v); }
  Graph part(const GraphOp& op, std::vector<Bound>& in) const;

  Graph graph_;
  std::vector<Bound> values_;
  std::vector<const GraphOp*> maker_;
  std::vector<int> uses_;
};

}  // namespace tn
