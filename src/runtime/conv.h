#pragma once
// Convolutions of every element type.
#include <cstdint>

#include "runtime/element.h"

namespace tn {

/// One spatial axis. Result y and tap k meet at x[(y·stride + k·kernel_dilation - low) /
/// input_dilation] where that is a whole number inside x; elsewhere x counts as 0.
struct ConvAxis {
  int64_t in = 1, taps = 1, out = 1;
  int64_t stride = 1, low = 0, input_dilation = 1, kernel_dilation = 1;
};

/// out[n, o, y…] = Σ w[o, c, k…] · x[n, c', …], over the channels c (c' in x) of o's group and the
/// taps k. All are contiguous, `out` is written whole. Channels count those of one group.
///
/// The order of additions depends on the channels and the taps only, so the bits do not depend on
/// the batch or on threads. f16 and bf16 are summed in f32 and rounded once; integers wrap.
struct ConvArgs {
  Element type = Element::f32;
  int64_t batch = 1, groups = 1, in_channels = 1, out_channels = 1;
  ConvAxis axes[3];
  const void* x = nullptr;
  const void* w = nullptr;
  void* out = nullptr;
};

void conv(const ConvArgs& args);

}  // namespace tn
