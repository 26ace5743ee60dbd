#pragma once
// PlanBuilder: steps over buffers, and where the values of a graph lie while a plan is being made.
#include "compiler/compile_graph.h"
#include "ir/body.h"
#include "loop/kernel.h"
#include "plan/library.h"

namespace tn {

/// Where a value of the graph is.
struct Home {
  enum class Kind : uint8_t { none, buffer, constant, argument };
  Kind kind = Kind::none;
  int32_t buffer = -1;  // in the plan's table
  Val owner = kNoVal;   // the value that fills the buffer, in row-major order
  int64_t size = 0;     // of the whole buffer, in elements
  Strided at;           // in elements
  Scalar value;         // constant
  int32_t argument = -1;
};

/// Where numbers lie: kernels hold them. By value; `none` for what is no number.
std::vector<Home> numbers_of(const Graph& graph, int runtime_scalars);

/// Whether an op by itself is a call of the library or control flow, and not its loop nest alone.
bool is_call(const Graph& graph, const GraphOp& op, const CompileOptions& options);

/// Which buffers a kernel writes, and which of these may lie where an input did: as in Step.
struct KernelAccess {
  std::vector<int32_t> writes;
  std::vector<Step::Pair> in_place;
};
KernelAccess access_of(const loop::Kernel& kernel);

class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, const CompileOptions& options);
  virtual ~PlanBuilder() = default;

 protected:
  void lower_view(const GraphOp& op);
  void lower_call(const GraphOp& op);
  void return_outputs();

  virtual Home& home(Val v) { return homes_[static_cast<size_t>(v)]; }
  /// Gives `v`, a view or a number, a row-major buffer with its elements.
  virtual void copy(Val v) = 0;
  virtual std::vector<std::shared_ptr<const Plan>> body_plans(const GraphOp& op) = 0;
  /// A step for `kernel` with these sizes; the caller fills in what runs it.
  Step& add_step(std::shared_ptr<const loop::Kernel> kernel, const KernelAccess& access,
                 std::vector<int32_t> buffers, std::vector<int32_t> scalars,
                 std::span<const Binding> sizes = {});
  /// Views need no memory, so the memory limit does not stop loops over huge ones: these refuse
  /// what no machine can finish.
  void check_work(const loop::Kernel& kernel, std::span<const Binding> sizes) const;
  void check_repeats(std::string_view name, int64_t count) const;
  void give_room(const GraphOp& op, const LibraryKernel& kernel, Step& step);
  /// Operands in row-major order, then fresh buffers for the results.
  std::vector<int32_t> buffers_of(const GraphOp& op);
  TypeRef type(Val v) const { return graph_.types[static_cast<size_t>(v)]; }
  int32_t add_buffer(int64_t bytes);
  /// `v` lies there, row-major.
  void set_home(Val v, int32_t buffer);
  /// A fresh row-major buffer as the home of `v`.
  int32_t give_buffer(Val v);
  /// The buffer of `v` when its elements lie row-major from the start; copies them otherwise.
  int32_t contiguous(Val v);

  const Graph& graph_;
  const CompileOptions& options_;
  Loc loc_;  // of the op being lowered
  std::vector<Home> homes_;
  std::shared_ptr<Plan> plan_;
};

}  // namespace tn
