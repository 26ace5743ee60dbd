#pragma once
// Discrete Fourier transforms of any length.
#include <cstdint>

#include "backend/cpu/cpu_level.h"
#include "ops/fft_kind.h"
#include "runtime/element_kind.h"

namespace tn {

/// out[k] = scale · Σ_j in[j] · exp(∓2πi jk/n): minus, or plus when `inverse`, along the middle
/// axis of [outer, n, inner]. Bits do not depend on threads, level, or what is transformed beside a
/// line.
struct FftArgs {
  Element type = Element::c64;  // c64 or c128: the precision
  FftKind kind = FftKind::c2c;
  bool inverse = false;
  double scale = 1;
  int64_t outer = 1, n = 0, inner = 1;
  const void* in = nullptr;
  void* out = nullptr;
};

void fft(const FftArgs& args);

/// The same with the kernels of one level, which the machine must support.
void fft_at(CpuLevel level, const FftArgs& args);

}  // namespace tn
