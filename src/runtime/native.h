#pragma once
// Native kernels: generated machine code and how it is called.
#include <memory>
#include <span>
#include <vector>

#include "tenon/dtype.h"
#include "tenon/shape.h"

namespace tn {

/// What generated code is called with. Its layout is part of saved executables.
struct KernelFrame {
  void* const* buffers;       // in the order of the kernel's
  const uint64_t* arguments;  // run-time scalars: the bits of their element types
  std::byte* scratch;         // NativeKernel::scratch_bytes for this call alone, 64-byte aligned
  std::byte* partials;        // results of the chunks of a cut reduction
  const int64_t* tile;        // tile kernels: batch, row begin and end, column begin and end
  uint64_t bypass_cache;      // not 0: the pages of the results exist, so stores may bypass caches
  const int64_t* sizes;       // NativeKernel::sizes
};

/// Work units [begin, end).
using KernelFn = void (*)(const KernelFrame* frame, int64_t begin, int64_t end);

/// The machine code of one kernel and its sizes. Immutable; any number of threads may run it at
/// once.
///
/// A kernel runs in one phase, or in two when reductions over few long rows are cut: then `body`
/// leaves one record per unit in `partials` and `finish` combines them, in order.
struct NativeKernel {
  KernelFn body = nullptr, finish = nullptr;
  int64_t units = 1, finish_units = 0;  // of work; fixed by shapes
  int64_t chunks = 1;                   // that threads claim; fixed by shapes
  int64_t chunk_nanoseconds = 0;        // about
  int64_t scratch_bytes = 0;            // of one call
  int64_t partial_bytes = 0;            // of one unit's record; 0 without `finish`
  int64_t bypassing_bytes = 0;          // written past the caches when `bypass_cache` is set
  std::vector<DType> argument_types;
  std::vector<int64_t> sizes;        // of the symbols in the kernel, in the order of their names
  std::shared_ptr<const void> code;  // keeps the mapped pages
};

/// `bypass_cache`: see KernelFrame.
void run(const NativeKernel& kernel, void* const* buffers, const Scalar* arguments,
         bool bypass_cache);

/// A kernel and what it is called with.
struct NativeCall {
  const NativeKernel* kernel;
  void* const* buffers;
  const Scalar* arguments;
};

/// Kernels of one phase that do not depend on each other, at once: threads claim the chunks of all.
void run_together(std::span<const NativeCall> calls, bool bypass_cache);

/// One tile of a kernel made for tiles, on the calling thread.
struct KernelTile {
  int64_t batch = 0, row0 = 0, row1 = 0, column0 = 0, column1 = 0;
};
void run_tile(const NativeKernel& kernel, void* const* buffers, const Scalar* arguments,
              const KernelTile& tile);

}  // namespace tn
