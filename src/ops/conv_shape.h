#pragma once
// The sizes and the layout of a convolution, as its kernels need them: plain numbers.
#include <cstdint>

#include "runtime/element_kind.h"

namespace tn {

/// One spatial axis. Result y and tap k meet at x[(y·stride + k·kernel_dilation - low) /
/// input_dilation] where that is a whole number inside x; elsewhere x counts as 0.
struct ConvAxis {
  int64_t in = 1, taps = 1, out = 1;
  int64_t stride = 1, low = 0, input_dilation = 1, kernel_dilation = 1;
};

/// Channels count those of one group. Each array has its channels second ([n, c, y…], w: [o, c,
/// k…]) or last ([n, y…, c], w: [o, k…, c]).
struct ConvShape {
  Element type = Element::f32;
  int64_t batch = 1, groups = 1, in_channels = 1, out_channels = 1;
  ConvAxis axes[3];
  bool x_last = false, w_last = false, out_last = false;  // channels
};

}  // namespace tn
