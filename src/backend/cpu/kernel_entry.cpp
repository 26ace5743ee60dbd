#include "backend/cpu/kernel_entry.h"

#include <llvm/Config/llvm-config.h>

#include "backend/cpu/source_hash.h"
#include "backend/kernel_bytes.h"
#include "runtime/disk_cache.h"

namespace tn::cpu {
namespace {

std::string disk_key(std::string_view key) {
  return format("kernel {} {}\n{}", source_hash(), LLVM_VERSION_STRING, key);
}

}  // namespace

std::shared_ptr<const KernelCode> load_kernel(std::string_view key) {
  DiskCache& disk = DiskCache::shared();
  std::string entry = disk_key(key);
  std::optional<std::string> bytes = disk.get(entry);
  if (!bytes) return nullptr;
  std::shared_ptr<const KernelCode> code = kernel_from_bytes(*bytes);
  if (!code) disk.remove(entry);
  return code;
}

void save_kernel(std::string_view key, const KernelNumbers& numbers, std::string_view object) {
  DiskCache::shared().put(disk_key(key), kernel_to_bytes(numbers, object));
}

}  // namespace tn::cpu
