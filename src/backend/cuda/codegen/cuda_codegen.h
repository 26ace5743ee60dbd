#pragma once
// Code for NVIDIA GPUs, by LLVM.
#include "backend/cuda/codegen/gpu_schedule.h"
#include "backend/cuda/cuda_kernel.h"

namespace tn::cuda {

const CodeGenerator& generator();

/// The lowest compute capability that code is made for: sm_80.
inline constexpr int16_t kLeastArch = 80;

/// PTX of all parts, and how they are launched.
struct Generated {
  KernelNumbers numbers;
  std::string ptx;
};
Generated generate(const Schedule& schedule, int16_t arch);
/// LLVM IR after its passes.
std::string ir_text(const Schedule& schedule, int16_t arch);

/// The same schedule as code of this machine's CPU, where `simulate` runs it.
class SimulatedKernel {
 public:
  explicit SimulatedKernel(const Schedule& schedule);
  ~SimulatedKernel();

  /// How the threads of a block take turns: any order must give the same bits.
  enum class Order : uint8_t { forward, backward };
  /// Runs the kernel over memory of the host: `sizes` of buffers in bytes. Says what is wrong: "",
  /// or an access outside of the buffers, or a place that is written twice where `once` is set.
  std::string run(std::span<const Binding> sizes, void* const* buffers,
                  std::span<const int64_t> bytes, const Scalar* scalars, Order order,
                  bool once) const;

 private:
  struct Code;
  std::unique_ptr<const Code> code_;
};

}  // namespace tn::cuda
