#pragma once
// PlanBuilder: steps over buffers, and where the values of a graph lie while a plan is being made.
#include "compiler/compile.h"
#include "loop/kernel.h"
#include "loop/lowering.h"

namespace tn {

/// Where a value of the graph is.
struct Home {
  enum class Kind : uint8_t { none, buffer, constant, argument };
  Kind kind = Kind::none;
  int32_t buffer = -1;  // in the plan's table
  int64_t size = 0;     // of the whole buffer, in elements
  Strided at;           // in elements
  Scalar value;         // constant
  int32_t argument = -1;
};

/// The real or imaginary part of a number, as `type` holds it, in the kernel under construction.
/// One that is given at run time joins `scalars`. Narrow floats are rounded once, from double.
loop::S number_part(loop::Builder& b, std::vector<int32_t>& scalars, const Home& home, DType type,
                    bool imaginary);

class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, const CompileOptions& options, CompileReport* report);
  virtual ~PlanBuilder() = default;

 protected:
  void lower_leaf(const GraphOp& op);
  void lower_view(const GraphOp& op);
  void lower_nest(const GraphOp& op);
  void lower_library(const GraphOp& op);
  void return_outputs();

  virtual Home& home(Val v) { return homes_[static_cast<size_t>(v)]; }
  virtual void add_kernel(loop::Kernel kernel, std::vector<int32_t> buffers,
                          std::vector<int32_t> scalars) = 0;
  /// A step for `kernel`; what runs it is filled in by the caller.
  Step& add_step(const loop::Kernel& kernel, std::vector<int32_t> buffers,
                 std::vector<int32_t> scalars);
  TypeRef type(Val v) const { return graph_.types[static_cast<size_t>(v)]; }
  int32_t add_buffer(TypeRef type);
  /// A fresh row-major buffer as the home of `v`.
  int32_t give_buffer(Val v);
  /// The buffer of `v` when its elements lie row-major from the start; copies them otherwise.
  int32_t contiguous(Val v);
  Home copy_of(const Home& from, TypeRef type);

  const Graph& graph_;
  const CompileOptions& options_;
  CompileReport* report_;  // null: nobody asks
  int32_t next_scalar_ = 0;
  Loc loc_;  // of the op being lowered
  std::vector<Home> homes_;
  std::shared_ptr<Plan> plan_;
};

}  // namespace tn
