#pragma once
// Element types of device code: how they lie in memory, and what sums of products are made in.
#include "backend/cuda/prebuilt/gpu_code.h"

struct F32 {
  using Memory = float;
  using Sum = float;
  static Sum load(Memory x) { return x; }
  static Memory store(Sum x) { return x; }
  static Sum fma(Sum a, Sum b, Sum c) { return __builtin_fmaf(a, b, c); }
  static Sum add(Sum a, Sum b) { return a + b; }
};
struct F64 {
  using Memory = double;
  using Sum = double;
  static Sum load(Memory x) { return x; }
  static Memory store(Sum x) { return x; }
  static Sum fma(Sum a, Sum b, Sum c) { return __builtin_fma(a, b, c); }
  static Sum add(Sum a, Sum b) { return a + b; }
};
#if defined(__NVPTX__)
using Half = _Float16;
inline float load_half(Half x) { return static_cast<float>(x); }
inline Half store_half(float x) { return static_cast<Half>(x); }
#else  // tests have them: not all compilers for the host have the type
struct Half {
  uint16 bits;
};
float load_half(Half x);
Half store_half(float x);
#endif
struct F16 : F32 {
  using Memory = Half;
  static Sum load(Memory x) { return load_half(x); }
  static Memory store(Sum x) { return store_half(x); }
};
struct BF16 : F32 {
  using Memory = uint16;
  static Sum load(Memory x) { return __builtin_bit_cast(float, static_cast<unsigned>(x) << 16); }
  static Memory store(Sum x) {
    unsigned bits = __builtin_bit_cast(unsigned, x);
    if (x != x) return static_cast<uint16>(bits >> 16 | 0x40);
    return static_cast<uint16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};
template <class T>
struct Whole {
  using Memory = T;
  using Sum = T;
  static Sum load(Memory x) { return x; }
  static Memory store(Sum x) { return x; }
  static Sum fma(Sum a, Sum b, Sum c) { return static_cast<T>(c + 1u * a * b); }
  static Sum add(Sum a, Sum b) { return static_cast<T>(a + b); }
};
