#pragma once
// The memory that the library holds, and how much it may hold.
//
//     tn::set_memory_limit(size_t{8} << 30);
//     std::cout << tn::active_memory() << " of " << tn::memory_limit() << " bytes\n";
#include <cstddef>

#include "tenon/device.h"

namespace tn {

/// Requested bytes of all live buffers. Foreign memory does not count.
size_t active_memory();

/// The highest active_memory() since the start or the last reset_peak_memory().
size_t peak_memory();
void reset_peak_memory();

/// Bytes of freed blocks kept for reuse.
size_t cache_memory();

/// Gives the kept blocks back to the system, except the few small ones other threads hold for
/// themselves.
void clear_cache();

/// Requests that would raise active_memory() above this fail. 0 restores the default: the memory of
/// the machine, swap included. Returns the former limit.
size_t set_memory_limit(size_t bytes);
size_t memory_limit();

/// Large freed blocks beyond this go back to the system, the least recently used first. The default
/// is 256 MiB or a quarter of the machine's memory, whichever is more. Returns the former limit.
size_t set_cache_limit(size_t bytes);

/// The same of a device. The default limit of a GPU is what is free there at first use, less 512
/// MiB.
struct MemoryUse {
  size_t active = 0, peak = 0, cache = 0, limit = 0;
};
MemoryUse memory_use(Device device);
size_t set_memory_limit(size_t bytes, Device device);
void reset_peak_memory(Device device);
void clear_cache(Device device);

}  // namespace tn
