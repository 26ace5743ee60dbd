#pragma once
// What sorts leave for others: keys in order, and where they were.
#include "backend/cuda/prebuilt/gpu_numbers.h"

constexpr int kThreads = 256;

template <class Key>
struct Pair {
  Key key, place;
};

inline uint64 load_bits(const void* at, int64 i, int bytes) {
  if (bytes == 4) return static_cast<const uint32*>(at)[i];
  if (bytes == 8) return static_cast<const uint64*>(at)[i];
  if (bytes == 2) return static_cast<const uint16*>(at)[i];
  return static_cast<const uint8*>(at)[i];
}
