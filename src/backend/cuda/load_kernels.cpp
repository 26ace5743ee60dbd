// Code of kernels, loaded on a GPU.
#include <cstring>

#include "backend/cuda/plan_state.h"
#include "base/at_fork.h"
#include "base/error.h"

namespace tn::cuda {
namespace {

/// What is loaded stays: plans share it, and graphs under way refer to it.
struct Modules {
  struct Loaded {
    std::shared_ptr<const KernelImage> image;
    Module module = nullptr;
    std::map<std::string, Function, std::less<>> functions;
  };
  std::mutex mutex;
  std::map<std::pair<const Gpu*, const KernelImage*>, Loaded> loaded;
};
Modules& modules() {
  static Modules& only = guarded_for_process<Modules>(kInnermost - 1);
  return only;
}
[[maybe_unused]] Modules& modules_at_load = modules();

Module load_image(const Gpu& gpu, const KernelImage& image) {
  char log[4096] = "";
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  Module made = nullptr;
  Result result =
      gpu.driver.cuModuleLoadDataEx(&made, image.code.c_str(), std::size(options), options, values);
  if (result == kOutOfMemory) fail(Fault::memory, "cuda:{}: no memory for a kernel", gpu.index);
  if (result != kSuccess)
    throw_internal(format("cuda:{}: the driver refuses a kernel: {}\n{}", gpu.index,
                          text_of(gpu.driver, result), log));
  return made;
}

/// Shared memory for as many blocks as a multiprocessor has registers and threads for. The rest of
/// that memory is cache.
void ask_for_shared_memory(const Gpu& gpu, Function function, const Entry& entry) {
  constexpr int64_t kOwnBytes = 1024;  // of the driver, in each block
  int registers = 0;
  if (gpu.driver.cuFuncGetAttribute(&registers, kFunctionRegisters, function) != kSuccess) return;
  int64_t of_block = (registers + 7) / 8 * 8 * int64_t{entry.threads};
  int64_t blocks = std::min(gpu.threads_of_each / int64_t{entry.threads},
                            gpu.registers_of_each / std::max<int64_t>(of_block, 1));
  int64_t bytes = std::max<int64_t>(blocks, 1) * (entry.shared_bytes + kOwnBytes);
  int64_t percent = (bytes * 100 + gpu.shared_bytes_of_each - 1) / gpu.shared_bytes_of_each;
  gpu.driver.cuFuncSetAttribute(function, kFunctionSharedShare,  // a wish
                                static_cast<int>(std::min<int64_t>(percent, 100)));
}

Function find_entry(const Gpu& gpu, Module module, const Entry& entry) {
  Function made = nullptr;
  check(gpu.driver, gpu.driver.cuModuleGetFunction(&made, module, entry.name.c_str()),
        format("cuModuleGetFunction({})", entry.name));
  // More shared memory is to be asked for, once for all sizes: what is asked last holds for all.
  constexpr int64_t kAlwaysThere = 48 << 10;
  int asked = 0;
  gpu.driver.cuFuncGetAttribute(&asked, kFunctionSharedBytes, made);
  if (entry.shared_bytes > std::max<int64_t>(asked, kAlwaysThere))
    check(gpu.driver,
          gpu.driver.cuFuncSetAttribute(made, kFunctionSharedBytes,
                                        static_cast<int>(entry.shared_bytes)),
          "cuFuncSetAttribute");
  if (entry.shared_bytes > 0) ask_for_shared_memory(gpu, made, entry);
  return made;
}

}  // namespace

std::vector<Function> functions_of(Gpu& gpu, const CudaKernel& kernel) {
  gpu.enter();
  Modules& all = modules();
  std::lock_guard lock(all.mutex);
  Modules::Loaded& loaded = all.loaded[{&gpu, kernel.image.get()}];
  if (!loaded.module) {
    loaded.module = load_image(gpu, *kernel.image);
    loaded.image = kernel.image;
  }
  std::vector<Function> found;
  for (const Entry& entry : kernel.entries) {
    // An entry may want more shared memory at other sizes.
    std::string key = format("{} {}", entry.name, entry.shared_bytes);
    auto known = loaded.functions.find(key);
    if (known == loaded.functions.end())
      known = loaded.functions.emplace(key, find_entry(gpu, loaded.module, entry)).first;
    found.push_back(known->second);
  }
  return found;
}

}  // namespace tn::cuda
