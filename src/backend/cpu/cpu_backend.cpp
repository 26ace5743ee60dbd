#include "backend/cpu/cpu_backend.h"

#include "backend/cpu/kernel_bytes.h"
#include "backend/cpu/library/cpu_library.h"

namespace tn::cpu {
namespace {

constexpr Target v2 = target_of(CpuLevel::v2), v3 = target_of(CpuLevel::v3),
                 v4 = target_of(CpuLevel::v4);

/// Processors as compilers call them. One stands for the level that all of its kind have.
constexpr TargetName kNames[] = {
    {"x86-64-v2", v2},
    {"x86-64-v3", v3},
    {"x86-64-v4", v4},
    {"nehalem", v2, true},
    {"westmere", v2, true},
    {"sandybridge", v2, true},
    {"ivybridge", v2, true},
    {"silvermont", v2, true},
    {"goldmont", v2, true},
    {"bdver1", v2, true},
    {"haswell", v3, true},
    {"broadwell", v3, true},
    {"skylake", v3, true},
    {"alderlake", v3, true},
    {"raptorlake", v3, true},
    {"zen", v3, true},
    {"zen2", v3, true},
    {"zen3", v3, true},
    {"skylake-avx512", v4, true},
    {"cascadelake", v4, true},
    {"cooperlake", v4, true},
    {"icelake-server", v4, true},
    {"sapphirerapids", v4, true},
    {"emeraldrapids", v4, true},
    {"graniterapids", v4, true},
    {"zen4", v4, true},
    {"zen5", v4, true},
};

constexpr TargetCosts kCosts = {
    .scalars_per_ns = 64,
    .multiply_adds_per_ns = 100,
    .memory_bytes_per_ns = 10,
    .library_bytes_per_ns = 1,
    .repeat_cost = 12,
    .nest_cost = 25,
    .few_evaluations = 4096,
    .longest_row = 1 << 17,
    .fewest_rows = 16,
    .small_domain = 1 << 15,
    .bypass_bytes = int64_t{4} << 20,
    .bypass_always_bytes = int64_t{16} << 20,
    .most_bundled = BundleStep::kMost,
    .channels_last = true,
    .waiting_elements = 0,
};

class CpuBackend final : public Backend {
 public:
  std::span<const TargetName> names() const override { return kNames; }
  Target here() const override { return target_of(cpu_level()); }
  bool runs(const Target& target) const override { return target <= here(); }
  const TargetCosts& costs(const Target&) const override { return kCosts; }
  std::shared_ptr<const tn::KernelCode> code_from_bytes(std::string_view bytes) const override {
    return kernel_from_bytes(bytes);
  }
  const LibraryKernel* library_kernel(const OpDef& op, Types in, const Target&) const override {
    return cpu::library_kernel(op, in);
  }
  bool has_exact_composites() const override { return true; }
};

}  // namespace

const Backend& backend() {
  static constexpr CpuBackend made;
  return made;
}

}  // namespace tn::cpu
