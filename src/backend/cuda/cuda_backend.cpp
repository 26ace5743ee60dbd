#include "backend/cuda/cuda_backend.h"

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/cuda_runtime.h"
#include "base/error.h"

namespace tn::cuda {
namespace {

constexpr Target sm_70 = target_of(70), sm_75 = target_of(75), sm_80 = target_of(80),
                 sm_86 = target_of(86), sm_89 = target_of(89), sm_90 = target_of(90),
                 sm_100 = target_of(100), sm_120 = target_of(120);

constexpr TargetName kNames[] = {
    {"ptx_80", target_of(-80)},
    {"sm_70", sm_70},
    {"sm_75", sm_75},
    {"sm_80", sm_80},
    {"sm_86", sm_86},
    {"sm_89", sm_89},
    {"sm_90", sm_90},
    {"sm_100", sm_100},
    {"sm_120", sm_120},
    {"nvidia_v100", sm_70, true},
    {"nvidia_t4", sm_75, true},
    {"nvidia_a100", sm_80, true},
    {"nvidia_a10", sm_86, true},
    {"nvidia_a40", sm_86, true},
    {"nvidia_l4", sm_89, true},
    {"nvidia_l40s", sm_89, true},
    {"nvidia_h100", sm_90, true},
    {"nvidia_h200", sm_90, true},
    {"nvidia_b200", sm_100, true},
};

/// Measured on an H200 (docs/design/038-cuda.md).
constexpr TargetCosts kCosts = {
    .scalars_per_ns = 30000,
    .multiply_adds_per_ns = 25000,
    .memory_bytes_per_ns = 4000,
    .library_bytes_per_ns = 2000,
    .repeat_cost = 60,  // instructions that cost as much as reading and writing an f32
    .nest_cost = 60,
    .few_evaluations = 1 << 16,
    .longest_row = 1 << 14,  // 64 KiB of f32 in shared memory
    .fewest_rows = 132 * 8,  // blocks that keep all multiprocessors busy
    .small_domain = 1 << 18,
    .bypass_bytes = INT64_MAX,  // its caches are not passed by
    .bypass_always_bytes = INT64_MAX,
    .most_bundled = 1,  // kernels are nodes of a graph
    .channels_last = true,
    .waiting_elements = 1 << 19,
};

class CudaBackend final : public Backend {
 public:
  std::span<const TargetName> names() const override { return kNames; }
  Target here() const override {
    const LoadedDriver& machine = driver_of_machine();
    Target best = target_of(0);
    for (int i = 0; i < machine.devices; ++i)
      best = std::max(best, target_of_device(*machine.table, i));
    return best;
  }
  bool runs(const Target& target) const override {
    return driver_of_machine().devices > 0 && target <= here();
  }
  /// Machine code runs on later GPUs of the same generation.
  bool serves(const Target& code, const Target& device) const override {
    int its = architecture_of(code), there = architecture_of(device);
    return its <= there && (is_portable(code) || its / 10 == there / 10);
  }
  std::string why_not_in_files(const Target& target) const override {
    return architecture_of(target) < kPrebuiltArch ? "code for GPUs begins with sm_80" : "";
  }
  const TargetCosts& costs(const Target&) const override { return kCosts; }
  std::shared_ptr<const tn::KernelCode> code_from_bytes(std::string_view bytes) const override {
    return kernel_from_bytes(bytes);
  }
  const LibraryKernel* library_kernel(const OpDef& op, Types in,
                                      const Target& target) const override {
    return cuda::library_kernel(op, in, target);
  }
  std::string library_code(std::span<const LibraryKernel* const> used) const override {
    return cuda::library_code(used);
  }
  bool take_library_code(std::string_view bytes) const override {
    return cuda::take_library_code(bytes);
  }
};

}  // namespace

const Backend& backend() {
  static constexpr CudaBackend made;
  return made;
}

/// Here, where the code generator and libtenon_rt have it linked.
[[maybe_unused]] static const bool kRegistered =
    (register_devices(runtime()), register_backend(DeviceKind::cuda, backend), true);

Target target_of_device(const Driver& driver, int index) {
  DeviceNumber device = 0;
  int major = 0, minor = 0;
  check(driver, driver.cuDeviceGet(&device, index), "cuDeviceGet");
  check(driver, driver.cuDeviceGetAttribute(&major, kMajor, device), "cuDeviceGetAttribute");
  check(driver, driver.cuDeviceGetAttribute(&minor, kMinor, device), "cuDeviceGetAttribute");
  Target best = target_of(0);
  for (const TargetName& known : kNames)
    if (known.target.arch <= major * 10 + minor) best = std::max(best, known.target);
  return best;
}

}  // namespace tn::cuda
