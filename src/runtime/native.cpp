#include "runtime/native.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>

#include "runtime/scalar_bits.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr size_t kLine = 64;

/// Memory of one thread that grows to the most it was asked for.
class Scratch {
 public:
  ~Scratch() { release(); }

  std::byte* at_least(int64_t bytes) {
    if (static_cast<size_t>(bytes) <= bytes_) return data_;
    release();
    bytes_ = static_cast<size_t>(bytes);
    data_ = static_cast<std::byte*>(::operator new(bytes_, std::align_val_t{kLine}));
    return data_;
  }

 private:
  void release() {
    ::operator delete(data_, std::align_val_t{kLine});
    data_ = nullptr;
    bytes_ = 0;
  }
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

thread_local Scratch scratch, partials;

/// The bits of the run-time scalars, in place where they are few.
class Arguments {
 public:
  Arguments(const NativeKernel& kernel, const Scalar* values) {
    size_t count = kernel.argument_types.size();
    if (count > kFew) many_.resize(count);
    data = count > kFew ? many_.data() : few_;
    for (size_t k = 0; k < count; ++k) {
      std::array<std::byte, 8> bits = element_bits(values[k], kernel.argument_types[k]);
      std::memcpy(data + k, bits.data(), 8);
    }
  }
  Arguments(const Arguments&) = delete;
  uint64_t* data;

 private:
  static constexpr size_t kFew = 8;
  uint64_t few_[kFew];
  std::vector<uint64_t> many_;
};

}  // namespace

void run(const NativeKernel& kernel, void* const* buffers, const Scalar* values,
         bool bypass_cache) {
  Arguments arguments(kernel, values);
  KernelFrame frame{buffers,      arguments.data,     nullptr, nullptr, nullptr,
                    bypass_cache, kernel.sizes.data()};
  if (kernel.finish) frame.partials = partials.at_least(kernel.units * kernel.partial_bytes);
  auto run_units = [&](int64_t begin, int64_t end) {
    KernelFrame own = frame;
    own.scratch = scratch.at_least(kernel.scratch_bytes);
    kernel.body(&own, begin, end);
  };
  if (kernel.chunks <= 1) {
    run_units(0, kernel.units);
  } else {
    parallel_for(kernel.chunks, kernel.chunk_nanoseconds, [&](int64_t chunk) {
      ChunkRange range = chunk_range(kernel.units, kernel.chunks, chunk);
      run_units(range.begin, range.end);
    });
  }
  if (!kernel.finish) return;
  frame.scratch = scratch.at_least(kernel.scratch_bytes);
  kernel.finish(&frame, 0, kernel.finish_units);
}

void run_together(std::span<const NativeCall> calls, bool bypass_cache) {
  std::deque<Arguments> arguments;
  std::vector<int64_t> first{0};  // chunk of each call
  int64_t longest = 0;            // of the chunks, in nanoseconds
  for (const NativeCall& call : calls) {
    longest = std::max(longest, call.kernel->chunk_nanoseconds);
    arguments.emplace_back(*call.kernel, call.arguments);
    first.push_back(first.back() + call.kernel->chunks);
  }
  parallel_for(first.back(), longest, [&](int64_t chunk) {
    auto after = std::upper_bound(first.begin(), first.end(), chunk);
    size_t i = static_cast<size_t>(after - first.begin()) - 1;
    const NativeKernel& kernel = *calls[i].kernel;
    KernelFrame frame{calls[i].buffers, arguments[i].data,  nullptr, nullptr, nullptr,
                      bypass_cache,     kernel.sizes.data()};
    frame.scratch = scratch.at_least(kernel.scratch_bytes);
    ChunkRange range = chunk_range(kernel.units, kernel.chunks, chunk - first[i]);
    kernel.body(&frame, range.begin, range.end);
  });
}

void run_tile(const NativeKernel& kernel, void* const* buffers, const Scalar* values,
              const KernelTile& tile) {
  Arguments arguments(kernel, values);
  int64_t ranges[] = {tile.batch, tile.row0, tile.row1, tile.column0, tile.column1};
  KernelFrame frame{buffers, arguments.data, nullptr, nullptr, ranges, 0, kernel.sizes.data()};
  frame.scratch = scratch.at_least(kernel.scratch_bytes);
  kernel.body(&frame, 0, 1);
}

}  // namespace tn
