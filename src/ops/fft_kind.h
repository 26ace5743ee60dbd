#pragma once
// What a line of n numbers becomes by a Fourier transform.
#include <cstdint>

namespace tn {

enum class FftKind : uint8_t {
  c2c,  // n complex → n complex
  r2c,  // n real → the first n/2 + 1 complex; the rest are their conjugates
  c2r,  // n/2 + 1 complex, standing for n → n real; imaginary parts that cannot be are ignored
};

}  // namespace tn
