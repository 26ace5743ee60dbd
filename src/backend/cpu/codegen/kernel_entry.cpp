#include "backend/cpu/codegen/kernel_entry.h"

#include <llvm/Config/llvm-config.h>

#include "backend/cpu/kernel_bytes.h"
#include "backend/llvm/source_hash.h"
#include "storage/disk_cache.h"

namespace tn::cpu {
namespace {

std::string disk_key(std::string_view key) {
  return format("kernel {} {}\n{}", codegen::source_hash(), LLVM_VERSION_STRING, key);
}

}  // namespace

SavedKernel load_kernel(std::string_view key) {
  DiskCache& disk = DiskCache::shared();
  std::string entry = disk_key(key);
  std::optional<std::string> bytes = disk.get(entry);
  if (!bytes) return {};
  std::shared_ptr<const KernelCode> code = kernel_from_bytes(*bytes);
  if (!code) disk.remove(entry);
  return {std::move(code), std::move(*bytes)};
}

void save_kernel(std::string_view key, std::string_view bytes) {
  DiskCache::shared().put(disk_key(key), bytes);
}

}  // namespace tn::cpu
