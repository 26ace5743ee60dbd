#pragma once
// Machine code for kernels of LoopIR, by LLVM.
#include <span>

#include "backend/kernel_code.h"
#include "loop/kernel.h"
#include "runtime/cpu_level.h"

namespace tn::cpu {

/// What code is generated for.
struct Target {
  CpuLevel level = cpu_level();
  int vector_bits = 0;  // 0: the widest of the level
};

struct KernelRequest {
  const loop::Kernel* kernel;
  Form form = Form::whole;
  /// Likely values of its symbols. They steer how the work is laid out, never the results; the
  /// code serves all values.
  std::span<const Binding> sizes = {};
};

/// Where the kernels of one request came from.
struct KernelCounts {
  int64_t compiled = 0, from_memory = 0, from_disk = 0;
  double seconds = 0;  // spent compiling, summed over threads
};

/// The machine code of every kernel, equal ones compiled once and misses in parallel. The bits of
/// the results are those of the interpreter. Null where the kernel has no native form: the
/// interpreter runs it. `counts` are added to.
std::vector<std::shared_ptr<const KernelCode>> compile_kernels(
    std::span<const KernelRequest> requests, const Target& target = {},
    KernelCounts* counts = nullptr);

/// The same as bytes (backend/kernel_bytes.h), for any machine: nothing is kept in memory, and what
/// other functions asked for does not matter. "" where the kernel has no native form.
std::vector<std::string> compile_to_bytes(std::span<const KernelRequest> requests,
                                          const Target& target);

/// Why a kernel has no native form; "" where it has one.
std::string why_interpreted(const KernelRequest& request, const Target& target = {});

/// LLVM IR after passes, and assembly, for readers.
std::string ir_text(const KernelRequest& request, const Target& target = {});
std::string assembly_text(const KernelRequest& request, const Target& target = {});

/// Counters of the kernel cache, since the start of the process.
struct KernelCacheStats {
  int64_t hits = 0, compiled = 0, from_disk = 0, kept = 0;
  double seconds = 0;  // spent compiling, summed over threads
};
KernelCacheStats kernel_cache_stats();
void clear_kernel_cache();

}  // namespace tn::cpu
