// The code generator of CUDA devices: kernels from the cache, from the disk, or compiled.
#include <llvm/Config/llvm-config.h>

#include "backend/cuda/assembler.h"
#include "backend/cuda/codegen/cuda_codegen.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/interpreter/interpreted_code.h"
#include "backend/cuda/own_kernels.h"
#include "backend/llvm/kernel_cache.h"
#include "backend/llvm/llvm_session.h"
#include "backend/llvm/requests.h"
#include "backend/llvm/source_hash.h"
#include "plan/first_code.h"
#include "storage/disk_cache.h"

namespace tn::cuda {

using codegen::KernelCache;

namespace {

/// Of a target that is named.
int16_t arch_of(const Target& target) { return static_cast<int16_t>(architecture_of(target)); }

/// What a kernel computes and for which GPUs.
std::string key_of(const KernelRequest& request, const Target& target) {
  return format("{}_{} {}", is_portable(target) ? "ptx" : "sm", arch_of(target),
                codegen::text_of(request));
}

std::string disk_key(std::string_view key, const KernelRequest& request) {
  return format("cuda {} {} {}\n{}{}", codegen::source_hash(), LLVM_VERSION_STRING,
                assembler_name(), key, codegen::orders_of_sizes(request));
}

struct MadeKernel {
  std::shared_ptr<const KernelCode> code;
  std::string bytes;
  bool from_disk = false;
};

/// From the disk, or compiled, assembled where an assembler is found, and left there.
MadeKernel make(const std::string& key, const KernelRequest& request, const Target& target) {
  int16_t arch = arch_of(target);
  if (arch < kLeastArch) return {};
  DiskCache& disk = DiskCache::shared();
  std::string entry = disk_key(key, request);
  if (std::optional<std::string> bytes = disk.get(entry)) {
    if (auto code = kernel_from_bytes(*bytes)) return {std::move(code), std::move(*bytes), true};
    disk.remove(entry);
  }
  if (!codegen::llvm_is_usable()) return {};
  Generated made = generate(make_schedule(request), arch);
  std::string image = is_portable(target) ? "" : assemble(made.ptx, arch);
  if (image.empty()) image = std::move(made.ptx);
  std::string bytes = kernel_to_bytes(made.numbers, image);
  disk.put(entry, bytes);
  auto code = std::make_shared<const KernelCode>(std::move(made.numbers), std::move(image));
  return {std::move(code), std::move(bytes)};
}

class CudaGenerator final : public CodeGenerator {
 public:
  std::vector<std::shared_ptr<const tn::KernelCode>> compile(
      std::span<const KernelRequest> requests, const Target& target,
      KernelCounts* counts) const override {
    std::vector<std::string> keys;
    for (const KernelRequest& request : requests) keys.push_back(key_of(request, target));
    auto make_one = [&](size_t i) -> KernelCache::Made {
      MadeKernel made = make(keys[i], requests[i], target);
      return {std::move(made.code), made.from_disk};
    };
    return KernelCache::shared().get(keys, make_one, counts);
  }
  std::vector<std::string> compile_to_bytes(std::span<const KernelRequest> requests,
                                            const Target& target) const override {
    return codegen::bytes_of_all(requests.size(), [&](size_t i) {
      return make(key_of(requests[i], target), requests[i], target).bytes;
    });
  }
  std::string why_interpreted(const KernelRequest&, const Target& target) const override {
    if (arch_of(target) < kLeastArch) return "code for GPUs begins with sm_80";
    return codegen::llvm_is_usable() ? "" : "the code generator ran out of memory when it started";
  }
  std::string ir(const KernelRequest& request, const Target& target) const override {
    return ir_text(make_schedule(request), arch_of(target));
  }
  std::string assembly(const KernelRequest& request, const Target& target) const override {
    return generate(make_schedule(request), arch_of(target)).ptx;
  }
  std::string_view version() const override { return codegen::source_hash(); }
  KernelCacheStats cache_stats() const override { return KernelCache::shared().stats(); }
  int64_t waiting() const override { return KernelCache::shared().waiting(); }
};

}  // namespace

static std::string prebuilt_key(std::string_view ptx, int architecture) {
  return format("prebuilt {} {} {}", architecture, assembler_name(), ptx);
}

static std::optional<std::string> found_on_disk(std::string_view ptx, int architecture) {
  return DiskCache::shared().get(prebuilt_key(ptx, architecture));
}

/// Machine code of what the build has compiled, from the disk if it is there; PTX where nothing but
/// the driver assembles.
static std::string assembled(std::string_view ptx, int architecture) {
  if (std::optional<std::string> kept = found_on_disk(ptx, architecture)) return std::move(*kept);
  std::string made = assemble(ptx, architecture);
  if (made.empty()) return std::string(ptx);
  DiskCache::shared().put(prebuilt_key(ptx, architecture), made);
  return made;
}

/// The backend registers itself when it is linked, which this sees to.
[[maybe_unused]] static const bool kLinked = (assemble_own = assembled, find_own = found_on_disk,
                                              first_code = interpreted_code, backend(), true);

const CodeGenerator& generator() {
  static constexpr CudaGenerator made;
  return made;
}

}  // namespace tn::cuda
