#pragma once
// The sizes and the layout of a convolution, as its kernels need them: plain numbers.
#include <cstdint>
#include <vector>

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

inline constexpr int kConvAxes = 3;

/// The results of one axis that meet the same taps, and those taps. With input dilation d only
/// every d-th tap meets an element of x, so results fall into phases; without there is one.
struct ConvPhase {
  int64_t out_first, out_step, outs;
  int64_t tap_first, tap_step, taps;
  int64_t start, out_x, tap_x;  // result j and tap i meet at x[start + j·out_x + i·tap_x]
};
std::vector<ConvPhase> phases_of(const ConvAxis& axis);

/// One phase for each axis: a convolution without input dilation.
struct ConvPart {
  ConvPhase phases[kConvAxes];
  int64_t results() const { return phases[0].outs * phases[1].outs * phases[2].outs; }
  int64_t taps() const { return phases[0].taps * phases[1].taps * phases[2].taps; }
};
std::vector<ConvPart> parts_of(const ConvShape& shape);

}  // namespace tn
