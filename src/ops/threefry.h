#pragma once
// Threefry-2x32 with 20 rounds: from a key and a counter, two random words. Written once, for
// numbers of the host and for loop values.
#include <bit>

#include "loop/builder.h"

namespace tn::ops {

template <class U>
struct Words {
  U a, b;
};

inline uint32_t constant_like(uint32_t, double x) { return static_cast<uint32_t>(x); }
inline uint32_t rotate(uint32_t x, int by) { return std::rotl(x, by); }
inline loop::S rotate(loop::S x, int by) {
  return (x << constant_like(x, by)) | (x >> constant_like(x, 32 - by));
}

template <class U>
Words<U> threefry(Words<U> key, Words<U> counter) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const U parity = key.a ^ key.b ^ constant_like(key.a, 0x1BD11BDA);
  const U schedule[3] = {key.a, key.b, parity};
  U a = counter.a + key.a, b = counter.b + key.b;
  for (int i = 0; i < 5; ++i) {
    for (int by : kRotations[i % 2]) {
      a = a + b;
      b = rotate(b, by) ^ a;
    }
    a = a + schedule[(i + 1) % 3];
    b = b + (schedule[(i + 2) % 3] + constant_like(key.a, i + 1));
  }
  return {a, b};
}

}  // namespace tn::ops
