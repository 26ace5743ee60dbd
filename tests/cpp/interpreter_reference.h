#pragma once
// A kernel evaluated point by point, as its definition reads: slow, and independent of blocks.
#include <vector>

#include "loop/kernel.h"

namespace tn::loop {

/// An element of any type.
struct Number {
  double real = 0;      // floats: f32 values are exact in it
  int64_t integer = 0;  // the others; u64 by its bits
};

/// Runs `kernel`, whose sizes are constants, over bool, i32, i64, u8, f32 and f64 buffers.
void run_reference(const Kernel& kernel, void* const* buffers);

}  // namespace tn::loop
