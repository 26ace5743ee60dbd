#pragma once
// Warps of device code: what their threads exchange, products of small matrices by tensor cores,
// and copies into shared memory that go on beside the work. Each has a form for the host.
#include "backend/cuda/prebuilt/gpu_numbers.h"

#define TN_INLINE __attribute__((always_inline))

inline int lane() { return thread() % 32; }
inline int warp() { return thread() / 32; }
inline float widened(F16, uint16 bits) { return F16::load(__builtin_bit_cast(Half, bits)); }
inline float widened(BF16, uint16 bits) { return BF16::load(bits); }
inline uint16 narrowed(F16, float x) { return __builtin_bit_cast(uint16, F16::store(x)); }
inline uint16 narrowed(BF16, float x) { return BF16::store(x); }
inline float larger(float a, float b) { return __builtin_fmaxf(a, b); }

template <class T>
constexpr bool is_brain = false;
template <>
inline constexpr bool is_brain<BF16> = true;

#if defined(__NVPTX__)

/// Where shared memory lies, as its instructions name it.
TN_INLINE inline uint32 near_address(const void* at) {
  return static_cast<uint32>(
      reinterpret_cast<uint64>((__attribute__((address_space(3))) const char*)at));
}
/// All threads of the block; of a warp.
TN_INLINE inline void meet_all(int) { __syncthreads(); }
TN_INLINE inline void meet_warp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

TN_INLINE inline float from_lane_xor(float x, int mask) {
  float y;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(y) : "f"(x), "r"(mask));
  return y;
}
TN_INLINE inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TN_INLINE inline float log2_of(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// Two numbers as T, the first in the lower half.
template <class T>
TN_INLINE inline uint32 packed(float low, float high) {
  uint32 y;
  if constexpr (is_brain<T>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

/// Four 8×8 matrices of 16 bits; lane 8 i + r names row r of matrix i. Transposed where asked.
template <bool Turned>
TN_INLINE inline void load_matrices(uint32 (&to)[4], const void* row) {
  if constexpr (Turned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(near_address(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(near_address(row))
                 : "memory");
}
#define TN_MMA(type)                                                                  \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                 \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
/// c += a·b, 16×16 by 16×8.
template <class T>
TN_INLINE inline void multiply(float* c, const uint32 (&a)[4], uint32 b0, uint32 b1) {
  if constexpr (is_brain<T>)
    TN_MMA("bf16");
  else
    TN_MMA("f16");
}
#undef TN_MMA

/// 16 bytes from global to shared memory; zeros where they are not wanted. They are there when
/// `wait_copies` says so of the group that `close_copies` ended.
TN_INLINE inline void copy_near(void* to, const void* from, bool wanted) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(near_address(to)), "l"(from),
               "r"(wanted ? 16 : 0)
               : "memory");
}
/// The same where they always are.
TN_INLINE inline void copy_near(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(near_address(to)), "l"(from)
               : "memory");
}
/// 4 bytes, or zeros.
TN_INLINE inline void copy_number_near(float* to, const float* from, bool wanted) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(near_address(to)), "l"(from),
               "r"(wanted ? 4 : 0)
               : "memory");
}
TN_INLINE inline void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until at most `Left` groups are under way.
template <int Left>
TN_INLINE inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

#else

/// Threads that wait for each other, by warps and by blocks.
struct Gathering {
  int arrived = 0, round = 0;
  void arrive(int count) {
    if (++arrived == count) arrived = 0, ++round;
  }
  void meet(int count) {
    int before = round;
    arrive(count);
    while (round == before) turn.wait();
  }
};
inline Gathering gathered_warps[32], gathered_block;
inline void meet_warp() { gathered_warps[warp()].meet(32); }
inline void meet_all(int threads) { gathered_block.meet(threads); }

/// What threads of a warp show each other, and the last such, which may still be read.
struct Shown {
  uint64 words[2][8];
  int side = 0;
};
inline Shown shown_by[1024];
template <class... W>
const uint64 (&show(W... words))[8] {
  static_assert(sizeof...(W) <= 8);
  Shown& own = shown_by[thread()];
  own.side ^= 1;
  int i = 0;
  ((own.words[own.side][i++] = static_cast<uint64>(words)), ...);
  meet_warp();
  return own.words[own.side];
}
/// What a lane of the same warp has shown last.
inline uint64 seen(int from_lane, int word) {
  const Shown& other = shown_by[thread() / 32 * 32 + from_lane];
  return other.words[shown_by[thread()].side][word];
}

inline float from_lane_xor(float x, int mask) {
  show(__builtin_bit_cast(uint32, x));
  return __builtin_bit_cast(float, static_cast<uint32>(seen(lane() ^ mask, 0)));
}
inline float exp2_of(float x) { return __builtin_exp2f(x); }
inline float log2_of(float x) { return __builtin_log2f(x); }
template <class T>
inline uint32 packed(float low, float high) {
  return narrowed(T(), low) | static_cast<uint32>(narrowed(T(), high)) << 16;
}
template <bool Turned>
inline void load_matrices(uint32 (&to)[4], const void* row) {
  show(reinterpret_cast<uint64>(row));
  auto at = [](int matrix, int r, int c) {
    return reinterpret_cast<const uint16*>(seen(8 * matrix + r, 0))[c];
  };
  for (int i = 0; i < 4; ++i) {
    int r = lane() / 4, c = lane() % 4 * 2;
    uint32 low = Turned ? at(i, c, r) : at(i, r, c),
           high = Turned ? at(i, c + 1, r) : at(i, r, c + 1);
    to[i] = low | high << 16;
  }
}
inline uint16 half_of(uint64 word, int k) { return static_cast<uint16>(word >> (16 * (k % 2))); }
template <class T>
inline void multiply(float* c, const uint32 (&a)[4], uint32 b0, uint32 b1) {
  show(a[0], a[1], a[2], a[3], b0, b1);
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k) {
      int r = lane() / 4, n = lane() % 4 * 2 + i % 2, of_k = k % 8 / 2;
      float x = widened(T(), half_of(seen(r * 4 + of_k, i / 2 + k / 8 * 2), k));
      float y = widened(T(), half_of(seen(n * 4 + of_k, 4 + k / 8), k));
      c[i] += x * y;
    }
}
inline void copy_near(void* to, const void* from) { __builtin_memcpy(to, from, 16); }
inline void copy_near(void* to, const void* from, bool wanted) {
  for (int i = 0; i < 16; ++i)
    static_cast<char*>(to)[i] = wanted ? static_cast<const char*>(from)[i] : 0;
}
inline void copy_number_near(float* to, const float* from, bool wanted) {
  *to = wanted ? *from : 0;
}
inline void close_copies() {}
template <int Left>
inline void wait_copies() {}

#endif
