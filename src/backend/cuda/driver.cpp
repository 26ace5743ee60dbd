#include "backend/cuda/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

#include "base/at_fork.h"
#include "base/error.h"

namespace tn::cuda {
namespace {

struct SharedDriver {
  std::mutex mutex;
  std::atomic<const LoadedDriver*> made = nullptr;
  std::vector<const LoadedDriver*> former = {};  // GPUs refer to them
  const Driver* replaced = nullptr;
  bool is_replaced = false;
  Driver own;
};
SharedDriver& shared_driver() {
  static SharedDriver& only = guarded_for_process<SharedDriver>(kInnermost);
  return only;
}
[[maybe_unused]] SharedDriver& driver_at_load = shared_driver();

/// The name of the first function that the library lacks; null: it has all.
const char* find_functions(void* library, Driver& table) {
#define TN_FIND(name, params)                                                 \
  table.name = reinterpret_cast<decltype(table.name)>(dlsym(library, #name)); \
  if (!table.name) return #name;
  TN_DRIVER_FUNCTIONS(TN_FIND)
#undef TN_FIND
  return nullptr;
}

/// "12.4".
std::string version_text(int version) {
  return format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Says what is wrong with the driver; "" when it is initialised and has devices.
std::string start(const Driver& driver, LoadedDriver& made) {
  if (driver.cuDriverGetVersion(&made.version) != kSuccess) made.version = 0;
  if (made.version < Driver::kOldestVersion)
    return format("the driver is too old: it is for CUDA {}, and CUDA {} (driver {}) is needed",
                  version_text(made.version), version_text(Driver::kOldestVersion),
                  Driver::kOldestRelease);
  if (Result result = driver.cuInit(0); result != kSuccess)
    return format("the driver finds no usable GPU ({})", text_of(driver, result));
  if (driver.cuDeviceGetCount(&made.devices) != kSuccess || made.devices == 0)
    return "the driver finds no GPU";
  return "";
}

std::string load_driver(SharedDriver& all, LoadedDriver& made) {
  if (!all.is_replaced) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "no NVIDIA driver was found (libcuda.so.1 is missing)";
    const char* missing = find_functions(library, all.own);
    if (missing && !all.own.cuDriverGetVersion)
      return format("libcuda.so.1 is not a driver: it lacks {}", missing);
    if (missing) {
      all.own.cuDriverGetVersion(&made.version);
      return format("the driver is too old: it lacks {} (CUDA {}); driver {} is needed", missing,
                    version_text(made.version), Driver::kOldestRelease);
    }
    made.table = &all.own;
  } else {
    made.table = all.replaced;
    if (!made.table) return "no NVIDIA driver was found (libcuda.so.1 is missing)";
  }
  return start(*made.table, made);
}

/// Folders of Python packages, where the wheels of NVIDIA have their libraries.
std::vector<std::filesystem::path> package_folders() {
  std::vector<std::filesystem::path> found;
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&replace_driver), &self) && self.dli_fname) {
    std::filesystem::path module(self.dli_fname);  // site-packages/tenon/_core.so
    if (module.has_parent_path()) found.push_back(module.parent_path().parent_path());
  }
  if (const char* home = std::getenv("VIRTUAL_ENV")) {
    std::error_code none;
    for (auto& entry : std::filesystem::directory_iterator(std::string(home) + "/lib", none))
      found.push_back(entry.path() / "site-packages");
  }
  return found;
}

}  // namespace

const LoadedDriver& driver_of_machine() {
  SharedDriver& all = shared_driver();
  if (const LoadedDriver* made = all.made.load(std::memory_order_acquire)) return *made;
  std::lock_guard lock(all.mutex);
  if (const LoadedDriver* made = all.made) return *made;
  auto* made = new LoadedDriver;
  made->fault = load_driver(all, *made);
  if (!made->fault.empty()) made->table = nullptr, made->devices = 0;
  all.made.store(made, std::memory_order_release);
  return *made;
}

void replace_driver(const Driver* table) {
  SharedDriver& all = shared_driver();
  std::lock_guard lock(all.mutex);
  all.is_replaced = true, all.replaced = table;
  if (const LoadedDriver* made = all.made.exchange(nullptr)) all.former.push_back(made);
}

std::string text_of(const Driver& driver, Result result) {
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  return format("{}: {}", name ? name : format("error {}", result), text ? text : "unknown");
}

void check(const Driver& driver, Result result, std::string_view what) {
  if (result != kSuccess) [[unlikely]]
    throw_internal(format("cuda: {} failed: {}", what, text_of(driver, result)));
}

void* find_library(const char* const* names, size_t count, std::string_view folder,
                   std::string* path) {
  auto found = [&](void* library, std::string from) {
    if (library && path) *path = std::move(from);
    return library;
  };
  for (size_t i = 0; i < count; ++i)
    if (void* library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD))
      return found(library, format("{}, which the process has", names[i]));
  for (const std::filesystem::path& packages : package_folders())
    for (size_t i = 0; i < count; ++i)
      for (std::string_view place : {folder, std::string_view("cu13"), std::string_view("cu12")}) {
        std::filesystem::path file = packages / "nvidia" / place / "lib" / names[i];
        if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
          return found(library, file.string());
      }
  for (const char* place : {"", "/usr/local/cuda/lib64/"})
    for (size_t i = 0; i < count; ++i) {
      std::string file = std::string(place) + names[i];
      if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return found(library, file);
    }
  return nullptr;
}

}  // namespace tn::cuda
