#pragma once
// Memory of GPUs that other libraries use as well, in the order of streams (DLPack).
//
// Streams of others have the numbers of the Python array API: 1 is the legacy default stream, 2
// that of each thread, -1 asks for no order, and anything else is a handle.
#include "runtime/buffer.h"

namespace tn::cuda {

inline constexpr int64_t kLegacyStream = 1, kThreadStream = 2, kNoStream = -1;

/// The stream of a GPU. Work of another library that it is made to wait for comes before all work
/// that is submitted later.
int64_t stream_of(Device device);

/// Makes what is put on `stream` from now on wait for the work that writes a value. Its address.
void* lend(const Bound& value, int64_t stream);
/// The same for all work so far, which may use memory of others.
void lend(Device device, int64_t stream);

/// Makes work that is submitted from now on wait for what is on `stream`, which exists.
void follow(Device device, int64_t stream);

/// The same, before memory that was lent is used again. Waits for the whole GPU if it is not the
/// legacy stream: it may be gone.
void wait_for_stream(Device device, int64_t stream) noexcept;

/// Memory of another library, which this GPU's stream waits for already. `release(owner)` is called
/// when the last reference is gone and no work under way uses it.
BufferRef borrow(Device device, void* address, size_t bytes, void* owner, void (*release)(void*));

/// Memory of the caller, which follows its stream before and lends it the results after.
BufferRef view_of(Device device, void* address, size_t bytes);

/// A copy of so many bytes, within a GPU.
BufferRef copied(const Bound& from, size_t bytes);

}  // namespace tn::cuda
