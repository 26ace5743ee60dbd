#pragma once
// KernelSet: a graph after its passes, how it is fused, and the kernels of it, which serve all
// sizes for which what was taken for granted about them holds.
#include <map>

#include "backend/cpu/codegen.h"
#include "compiler/fusion.h"
#include "compiler/plan_builder.h"
#include "ir/sizes.h"

namespace tn {

/// A kernel, and what a step that runs it takes.
struct SharedKernel {
  loop::Kernel kernel;
  cpu::Form form = cpu::Form::whole;
  std::vector<Val> values = {};       // by buffer of the kernel: whose memory it is
  std::vector<int32_t> scalars = {};  // as in Step
  KernelAccess access = {};
  bool compiled = false;
  std::shared_ptr<const cpu::KernelCode> code = {};  // null: it is interpreted
};

class KernelSet {
 public:
  /// Runs the passes and fuses. `sizes` are those at hand: they steer, and answer what has no
  /// answer for all sizes, which `guards` then keep.
  KernelSet(const Graph& graph, const CompileOptions& options, std::span<const Binding> sizes,
            CompileReport* report, CompileCounts& counts, std::vector<SizeGuard> guards = {});

  /// Whether all that was taken for granted holds for these sizes.
  bool serves(std::span<const Binding> sizes) const;
  const Graph& graph() const { return graph_; }
  const Fusion& fusion() const { return fusion_; }
  const CompileOptions& options() const { return options_; }

  /// What a kernel is for; the number is that of a cluster, a value or an op.
  enum class Use : uint8_t {
    cluster,
    tile,  // a cluster that works on the blocks of its hero's result
    copy,  // a value brought in row-major order
    nest,  // an op's own loop nest
  };
  /// Built when it is first asked for; null where the index of a tile is not linear.
  SharedKernel* kernel(Use use, int number, std::span<const Binding> sizes);
  /// Machine code for those that were never compiled, at once.
  void compile(std::span<SharedKernel* const> kernels, std::span<const Binding> sizes,
               CompileReport* report);

  /// Plans of the graphs among the attributes of an op.
  std::vector<std::shared_ptr<const Plan>> body_plans(int op, std::span<const Binding> sizes);
  /// The second operand of an op as its kernel reads it, packed for the first plan.
  BufferRef& packed(int op) { return packed_[op]; }
  /// The order of the steps, found for the first plan.
  std::vector<int32_t>& step_order() { return step_order_; }
  CompileCounts& counts() { return counts_; }

 private:
  std::unique_ptr<SharedKernel> made(Use use, int number) const;
  void take(std::vector<SizeGuard> guards);
  void require_elements();

  CompileOptions options_;  // with the constants that passes found
  CompileCounts& counts_;
  std::vector<SizeGuard> guards_;
  Graph graph_;
  Fusion fusion_;
  std::vector<Home> numbers_;  // by value
  std::map<std::pair<Use, int>, std::unique_ptr<SharedKernel>> kernels_;
  std::map<int, std::vector<std::unique_ptr<const CompiledGraph>>> bodies_;  // by op
  std::map<int, BufferRef> packed_;                                          // by op
  std::vector<int32_t> step_order_;
};

}  // namespace tn
