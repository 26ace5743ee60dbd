#pragma once
// Where buffers get their memory: size classes below 1 MiB, cached huge-page mappings above.
#include <cstddef>

#include "runtime/buffer.h"

namespace tn {

constexpr size_t kLargeBytes = size_t{1} << 20;
constexpr size_t kHugePage = size_t{2} << 20;

/// A block of at least `bytes` (header included, at most kLargeBytes + 64), 64-byte aligned, from
/// this thread's free list, the shared one, or the heap. `capacity` gets its size; nullptr: no
/// memory.
void* take_small(size_t bytes, size_t& capacity);
void give_small(void* block, size_t capacity);

/// A mapping of at least `bytes`, 2 MiB-aligned, kept from before when one fits.
struct LargeBlock {
  void* data = nullptr;  // nullptr: no memory
  size_t capacity = 0;
  bool recycled = false;
};
LargeBlock take_large(size_t bytes);
void give_large(void* data, size_t capacity);

size_t kept_small_bytes();
size_t kept_large_bytes();
void drop_kept_small();
/// Unmaps the least recently used kept mappings until at most `bytes` are kept.
void trim_kept_large(size_t bytes);
/// The most that give_large keeps. Returns the former value.
size_t set_kept_large_limit(size_t bytes);

}  // namespace tn
