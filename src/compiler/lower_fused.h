#pragma once
// Lowering: clusters of fused ops become kernels, other ops library calls, which may finish their
// results block by block. It happens for each sizes, and asks for kernels that serve all of them.
#include "compiler/kernel_set.h"
#include "plan/library.h"

namespace tn {

/// The plan of a set for these sizes.
std::shared_ptr<const Plan> plan_of(KernelSet& set, std::span<const Binding> sizes,
                                    CompileCounts& counts);
/// The bytes that it needs, without making code: which kernels run together is guessed.
int64_t memory_of(KernelSet& set, std::span<const Binding> sizes);

class FusedLowerer : PlanBuilder {
 public:
  /// `graph` is that of `set` with `sizes` for its symbols.
  FusedLowerer(KernelSet& set, const Graph& graph, std::span<const Binding> sizes,
               CompileCounts& counts);
  std::shared_ptr<const Plan> lower();
  int64_t memory();

 private:
  /// A step whose kernel may have to be compiled first.
  struct Pending {
    SharedKernel* kernel;
    size_t step;
  };
  void add_steps();
  void lower(int item);  // of KernelSet::order
  void add_ops(int item);
  void lower_cluster(int number);
  void lower_alone(const GraphOp& op);
  void add_nest(const GraphOp& op, LibraryStep& call);
  /// Library calls with operands in place; a cluster works on the blocks, if given and possible.
  bool lower_tiled(const GraphOp& op, int cluster);
  void give_result(const GraphOp& op, int cluster);
  void unpack(const GraphOp& op, int32_t constant);
  void pack_ahead(LibraryStep& tiled, const GraphOp& op, const std::vector<int32_t>& buffers);
  void add_tiled(const GraphOp& op, LibraryStep tiled, std::vector<int32_t> buffers,
                 SharedKernel* work);
  void add_room(const GraphOp& op, LibraryStep& tiled, Step& step);
  void add_kernel(SharedKernel& kernel);
  std::vector<int32_t> buffers_of(const SharedKernel& kernel);
  void bind_kernels();
  void arrange_steps();

  Home& home(Val v) override;
  void copy(Val v) override;
  void add_copy(Val v, const Home& from);
  std::vector<std::shared_ptr<const Plan>> body_plans(const GraphOp& op) override;
  SharedKernel& needed(KernelUse use, int number);
  SharedKernel* kernel(KernelUse use, int number) {
    return set_.kernel(use, number, sizes_, homes_);
  }
  double* timed(double& ms) const { return options_.effort == Effort::e0 ? nullptr : &ms; }
  int number_of(const GraphOp& op) const { return static_cast<int>(&op - graph_.ops.data()); }

  KernelSet& set_;
  std::span<const Binding> sizes_;
  CompileCounts& counts_;
  std::vector<Pending> pending_;
};

}  // namespace tn
