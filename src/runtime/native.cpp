#include "runtime/native.h"

#include "base/error.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"

namespace tn {

void run(const NativeKernel& kernel, void* const* buffers, const Scalar*, bool stream) {
  invariant(kernel.argument_types.empty() && !kernel.finish, "not yet");
  int64_t chunks = kernel.chunks;
  BufferRef scratch = allocate(static_cast<size_t>(chunks * kernel.scratch_bytes));
  parallel_for(chunks, [&](int64_t chunk) {
    KernelFrame frame{buffers, nullptr, scratch.data<std::byte>() + chunk * kernel.scratch_bytes,
                      nullptr, nullptr, stream};
    ChunkRange range = chunk_range(kernel.units, chunks, chunk);
    kernel.body(&frame, range.begin, range.end);
  });
}

void run_tile(const NativeKernel& kernel, void* const* buffers, const Scalar*,
              const KernelTile& tile) {
  const int64_t range[] = {tile.batch, tile.row0, tile.row1, tile.column0, tile.column1};
  KernelFrame frame{buffers, nullptr, nullptr, nullptr, range, 0};
  kernel.body(&frame, 0, 1);
}

}  // namespace tn
