#pragma once
// Lowering without code generation: interpreted kernels of elementwise groups, and library calls.
#include "compiler/group.h"
#include "compiler/plan_builder.h"

namespace tn {

class Lowerer : PlanBuilder {
 public:
  Lowerer(const Graph& graph, const CompileOptions& options, CompileReport* report);
  std::shared_ptr<const Plan> lower();

 private:
  void lower_group(int root);
  void lower_nest(const GraphOp& op);
  /// The op that makes `v` where every reader computes it again; null otherwise.
  const GraphOp* inlined(Val v) const;
  void add_kernel(loop::Kernel kernel, std::vector<int32_t> buffers, std::vector<int32_t> scalars);
  /// The last step computes these.
  void name_step(const std::vector<const GraphOp*>& ops);
  void copy(Val v) override;
  std::vector<std::shared_ptr<const Plan>> body_plans(const GraphOp& op) override;

  Grouping grouping_;
  std::vector<std::vector<int>> members_;  // by root
  std::vector<bool> returned_;
};

}  // namespace tn
