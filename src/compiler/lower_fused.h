#pragma once
// Lowering with code generation: clusters of fused ops, and library calls that finish their results
// block by block.
#include "backend/cpu/codegen.h"
#include "compiler/fused_kernel.h"
#include "compiler/plan_builder.h"
#include "ops/tiled.h"

namespace tn {

class FusedLowerer : PlanBuilder {
 public:
  FusedLowerer(const Graph& graph, const CompileOptions& options, CompileReport* report);
  std::shared_ptr<const Plan> lower();
  struct Tiled;

 private:
  /// A kernel to be compiled, and the step that runs it.
  struct Pending {
    loop::Kernel kernel;
    cpu::Form form;
    size_t step;
  };
  void lower_cluster(const Cluster& cluster);
  void lower_alone(const GraphOp& op);
  void lower_empty(const GraphOp& op);
  /// Library calls with operands in place; `cluster` works on the blocks, if given and possible.
  bool lower_tiled(const GraphOp& op, const Cluster* cluster);
  void give_result(const GraphOp& op, const Cluster* cluster);
  void pack_ahead(Tiled& tiled, const std::vector<int32_t>& buffers);
  void compile_pending();

  Home& home(Val v) override;
  void add_kernel(loop::Kernel kernel, std::vector<int32_t> buffers,
                  std::vector<int32_t> scalars) override;

  Fusion fusion_;
  std::vector<Pending> pending_;
};

}  // namespace tn
