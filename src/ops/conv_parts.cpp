// Input dilation: a convolution falls into some without.
#include <algorithm>
#include <numeric>

#include "ops/conv_shape.h"

namespace tn {

static int64_t ceil_quotient(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

std::vector<ConvPhase> phases_of(const ConvAxis& a) {
  int64_t d = a.input_dilation, common = std::gcd(a.stride, d);
  int64_t tap_step = d / std::gcd(a.kernel_dilation, d);
  std::vector<ConvPhase> phases;
  for (int64_t p = 0; p < std::min(d / common, a.out); ++p) {
    int64_t at = p * a.stride - a.low, tap = 0;
    while (tap < tap_step && (at + tap * a.kernel_dilation) % d != 0) ++tap;
    int64_t taps = tap < tap_step ? std::max<int64_t>(0, ceil_quotient(a.taps - tap, tap_step)) : 0;
    phases.push_back({p, d / common, ceil_quotient(a.out - p, d / common), tap, tap_step, taps,
                      (at + tap * a.kernel_dilation) / d, a.stride / common,
                      a.kernel_dilation * tap_step / d});
  }
  return phases;
}

std::vector<ConvPart> parts_of(const ConvShape& shape) {
  std::vector<ConvPart> parts;
  for (const ConvPhase& p0 : phases_of(shape.axes[0]))
    for (const ConvPhase& p1 : phases_of(shape.axes[1]))
      for (const ConvPhase& p2 : phases_of(shape.axes[2])) parts.push_back({{p0, p1, p2}});
  return parts;
}

}  // namespace tn
