#pragma once
// Kernels drawn at random, the memory they run on, and the comparison of results.
#include "loop/kernel.h"

namespace tn::loop {

/// A verified kernel; the same for the same seed. Its extents are made of constants, and of
/// `symbols` where they are given.
Kernel random_kernel(uint32_t seed, std::span<const Dim> symbols = {});

/// One block of memory per buffer of a kernel, filled at random: f32 and f64 with numbers in
/// [-10, 10] and some NaN, the other types with any bits or, where `below` is given, with whole
/// numbers in [0, below).
struct RandomBuffers {
  using Bytes = std::vector<std::byte>;
  RandomBuffers(const Kernel& kernel, uint32_t seed, int64_t below = 0,
                std::span<const Binding> sizes = {});

  std::vector<Bytes> data;
  std::vector<void*> pointers;
};

/// The first element that differs, or -1. Any NaN is like another: which payload stays is open.
int64_t first_difference(const void* a, const void* b, int64_t elements, DType type);
/// "y1[3]", the first element that differs, or nothing.
std::string first_difference(const Kernel& kernel, const RandomBuffers& a, const RandomBuffers& b);

}  // namespace tn::loop
