#pragma once
// The registers of the interpreter of GPUs: four elements of each thread, in shared memory.
#include "backend/cuda/prebuilt/bytecode.h"
#include "backend/cuda/prebuilt/gpu_code.h"

using namespace tn::cuda::bytecode;

#if defined(__NVPTX__)
#define TN_ROLLED TN_PRAGMA(nounroll)
#define TN_INLINE __attribute__((always_inline)) inline
#define TN_GLOBAL __attribute__((address_space(1)))
#else
#define TN_ROLLED
#define TN_INLINE inline
#define TN_GLOBAL
#endif

using Words4 = uint32 __attribute__((vector_size(16)));
using Words2 = uint64 __attribute__((vector_size(16)));

/// The registers of a thread: those of one number lie side by side.
struct Registers {
  char* own;
  uint32 stride;
  char* at(uint32 number) const { return own + number * stride; }
};

template <class T>
struct Four {
  T x[4];
};

template <class T>
TN_INLINE Four<T> get(const Registers& r, uint32 number) {
  Four<T> out;
  if constexpr (sizeof(T) == 4) {
    Words4 words = *(const Words4*)r.at(number);
    TN_UNROLL for (int e = 0; e < 4; ++e) out.x[e] = __builtin_bit_cast(T, uint32(words[e]));
  } else {
    Words2 low = *(const Words2*)r.at(number), high = *(const Words2*)r.at(number + 1);
    TN_UNROLL for (int e = 0; e < 2; ++e) {
      out.x[e] = __builtin_bit_cast(T, uint64(low[e]));
      out.x[e + 2] = __builtin_bit_cast(T, uint64(high[e]));
    }
  }
  return out;
}

template <class T>
TN_INLINE void put(const Registers& r, uint32 number, const Four<T>& in) {
  if constexpr (sizeof(T) == 4) {
    Words4 words = {};
    TN_UNROLL for (int e = 0; e < 4; ++e) words[e] = __builtin_bit_cast(uint32, in.x[e]);
    *(Words4*)r.at(number) = words;
  } else {
    Words2 low = {}, high = {};
    TN_UNROLL for (int e = 0; e < 2; ++e) {
      low[e] = __builtin_bit_cast(uint64, in.x[e]);
      high[e] = __builtin_bit_cast(uint64, in.x[e + 2]);
    }
    *(Words2*)r.at(number) = low, *(Words2*)r.at(number + 1) = high;
  }
}

template <class R, class T, class F>
TN_INLINE void one(const Registers& r, const Instruction& i, F f) {
  Four<T> a = get<T>(r, i.a);
  Four<R> out;
  TN_UNROLL for (int e = 0; e < 4; ++e) out.x[e] = static_cast<R>(f(a.x[e]));
  put(r, i.dst, out);
}
template <class R, class T, class F>
TN_INLINE void two(const Registers& r, const Instruction& i, F f) {
  Four<T> a = get<T>(r, i.a), b = get<T>(r, i.b);
  Four<R> out;
  TN_UNROLL for (int e = 0; e < 4; ++e) out.x[e] = static_cast<R>(f(a.x[e], b.x[e]));
  put(r, i.dst, out);
}
template <class T, class F>
TN_INLINE void three(const Registers& r, const Instruction& i, F f) {
  Four<T> a = get<T>(r, i.a), b = get<T>(r, i.b), c = get<T>(r, i.c);
  Four<T> out;
  TN_UNROLL for (int e = 0; e < 4; ++e) out.x[e] = f(a.x[e], b.x[e], c.x[e]);
  put(r, i.dst, out);
}
template <class T>
TN_INLINE void choose(const Registers& r, const Instruction& i) {
  Four<uint32> a = get<uint32>(r, i.a);
  Four<T> b = get<T>(r, i.b), c = get<T>(r, i.c);
  Four<T> out;
  TN_UNROLL for (int e = 0; e < 4; ++e) out.x[e] = a.x[e] ? b.x[e] : c.x[e];
  put(r, i.dst, out);
}

/// One element of a register.
template <class T>
TN_INLINE T& element(const Registers& r, uint32 number, uint32 e) {
  if constexpr (sizeof(T) == 4)
    return *(T*)(r.at(number) + e * 4);
  else
    return *(T*)(r.at(number + e / 2) + e % 2 * 8);
}
/// Long functions are there once, for one element after the other.
template <class R, class T, class F>
TN_INLINE void long_one(const Registers& r, const Instruction& i, F f) {
  TN_ROLLED for (uint32 e = 0; e < 4; ++e) element<R>(r, i.dst, e) =
      static_cast<R>(f(element<T>(r, i.a, e)));
}
template <class R, class T, class F>
TN_INLINE void long_two(const Registers& r, const Instruction& i, F f) {
  TN_ROLLED for (uint32 e = 0; e < 4; ++e) element<R>(r, i.dst, e) =
      static_cast<R>(f(element<T>(r, i.a, e), element<T>(r, i.b, e)));
}

template <class T>
TN_INLINE void splat(const Registers& r, uint32 number, T x) {
  put(r, number, Four<T>{{x, x, x, x}});
}
