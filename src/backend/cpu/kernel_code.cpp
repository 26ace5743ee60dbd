#include "backend/cpu/kernel_code.h"

#include <algorithm>

#include "backend/kernel_sizes.h"
#include "base/error.h"
#include "runtime/object.h"

namespace tn::cpu {

// Nanoseconds of estimated work: less than the first runs on the calling thread, and threads claim
// about as much as the second at a time.
static constexpr double kInlineWork = 10000, kChunkWork = 10000;
static constexpr int64_t kMostChunks = 64;

KernelCode::KernelCode(std::span<const std::byte> object, KernelNumbers numbers)
    : numbers_(std::move(numbers)) {
  for (const std::string& name : numbers_.symbols) symbols_.push_back(Dim::symbol(name));
  auto code = std::make_shared<const Object>(object);
  body_ = reinterpret_cast<KernelFn>(code->find("body"));
  if (numbers_.partial_bytes > 0) finish_ = reinterpret_cast<KernelFn>(code->find("finish"));
  code_ = code;
  if (numbers_.symbols.empty()) fixed_ = std::make_shared<const CpuKernel>(made_for({}));
}

std::shared_ptr<const BoundKernel> KernelCode::bind(std::span<const Binding> sizes) const {
  if (fixed_) return fixed_;
  std::vector<int64_t> values = values_of(symbols_, numbers_.symbols, sizes);
  return std::make_shared<const CpuKernel>(made_for(std::move(values)));
}

NativeKernel KernelCode::made_for(std::vector<int64_t> sizes) const {
  NativeKernel kernel;
  kernel.body = body_;
  kernel.finish = finish_;
  kernel.units = numbers_.units.at(sizes);
  kernel.finish_units = numbers_.finish_units.at(sizes);
  double work = static_cast<double>(numbers_.points.at(sizes)) * numbers_.point_nanoseconds;
  if (numbers_.divided && work >= kInlineWork && kernel.units >= 2) {
    int64_t chunks = static_cast<int64_t>(std::min(work / kChunkWork, 1e6)) + 2;
    kernel.chunks = std::min({chunks, kMostChunks, kernel.units});
  }
  kernel.chunk_nanoseconds =
      static_cast<int64_t>(std::min(work / static_cast<double>(kernel.chunks), 1e15));
  kernel.scratch_bytes = numbers_.scratch_bytes.at(sizes);
  kernel.partial_bytes = numbers_.partial_bytes;
  kernel.bypassing_bytes = numbers_.bypassing_bytes.at(sizes);
  kernel.argument_types = numbers_.argument_types;
  kernel.sizes = std::move(sizes);
  kernel.code = code_;
  return kernel;
}

}  // namespace tn::cpu
