#pragma once
// Machine code for kernels of LoopIR, by LLVM.
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernel_code.h"
#include "loop/kernel.h"

namespace tn::cpu {

const CodeGenerator& generator();

// What the generator does, also for vectors that are narrower than those of a level.

struct CodeTarget {
  CpuLevel level = cpu_level();
  int vector_bits = 0;  // 0: the widest of the level
};

std::vector<std::shared_ptr<const tn::KernelCode>> compile_kernels(
    std::span<const KernelRequest> requests, const CodeTarget& target = {},
    KernelCounts* counts = nullptr);
std::vector<std::string> compile_to_bytes(std::span<const KernelRequest> requests,
                                          const CodeTarget& target);
std::string why_interpreted(const KernelRequest& request, const CodeTarget& target = {});
/// LLVM IR after its passes.
std::string ir_text(const KernelRequest& request, const CodeTarget& target = {});
std::string assembly_text(const KernelRequest& request, const CodeTarget& target = {});

KernelCacheStats kernel_cache_stats();
void clear_kernel_cache();

}  // namespace tn::cpu
