#pragma once
// Warp groups of sm_90a: products of shared memory by four warps together, barriers in shared
// memory, and registers that warps give each other. Each has a form for the host.
#include "backend/cuda/prebuilt/gpu_warps.h"

#if defined(__NVPTX__)

/// Rows of 128 bytes, whose 16-byte pieces are exchanged as the hardware does it: bits 4 to 6 of an
/// address are combined with bits 7 to 9. `leading` bytes lie between pieces of 64 columns
/// where columns are neighbours, `stride` bytes between groups of 8 rows.
using Matrix = uint64;
TN_INLINE inline Matrix matrix_at(const void* at, int leading, int stride) {
  return static_cast<uint64>((near_address(at) & 0x3ffff) >> 4) |
         static_cast<uint64>(leading >> 4) << 16 | static_cast<uint64>(stride >> 4) << 32 |
         uint64{1} << 62;
}
/// The same, `bytes` further.
TN_INLINE inline Matrix moved(Matrix m, int bytes) { return m + static_cast<uint64>(bytes >> 4); }

TN_INLINE inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TN_INLINE inline void close_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `Left` groups are under way; `sums` are of those that are done.
template <int Left, int N>
TN_INLINE inline void wait_products(float (&sums)[N]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
  TN_UNROLL
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

#define TN_SUMS_8(i)                                                                          \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define TN_SUMS_32 TN_SUMS_8(0), TN_SUMS_8(8), TN_SUMS_8(16), TN_SUMS_8(24)
#define TN_SUMS_64 TN_SUMS_32, TN_SUMS_8(32), TN_SUMS_8(40), TN_SUMS_8(48), TN_SUMS_8(56)
#define TN_NAMES_32                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TN_NAMES_64                                                                  \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// d (+)= a·b by a warp group: 64 rows, 16 deep. a is in shared memory, or the rows of each thread.
#define TN_FROM_SHARED(columns, type, names, sums, left, right, flag)                    \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " flag                                    \
               ", 0; wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type \
               " {" names "}, " left ", " right ", p, 1, 1, 0, 0; }"                     \
               : sums                                                                    \
               : "l"(a), "l"(b), "r"(adds ? 1 : 0))
#define TN_BY_64(type) TN_FROM_SHARED("64", type, TN_NAMES_32, TN_SUMS_32, "%32", "%33", "%34")
#define TN_BY_128(type) TN_FROM_SHARED("128", type, TN_NAMES_64, TN_SUMS_64, "%64", "%65", "%66")
template <class T>
TN_INLINE inline void multiply_rows(float (&d)[32], Matrix a, Matrix b, bool adds) {
  if constexpr (is_brain<T>)
    TN_BY_64("bf16");
  else
    TN_BY_64("f16");
}
template <class T>
TN_INLINE inline void multiply_rows(float (&d)[64], Matrix a, Matrix b, bool adds) {
  if constexpr (is_brain<T>)
    TN_BY_128("bf16");
  else
    TN_BY_128("f16");
}
#undef TN_BY_64
#undef TN_BY_128
#undef TN_FROM_SHARED
#define TN_FROM_REGISTERS(columns, type, names, sums, a0, a1, a2, a3, right)                   \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" names \
               "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " right ", 1, 1, 1, 1;"                   \
               : sums                                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define TN_BY_64(type) \
  TN_FROM_REGISTERS("64", type, TN_NAMES_32, TN_SUMS_32, "%32", "%33", "%34", "%35", "%36")
#define TN_BY_128(type) \
  TN_FROM_REGISTERS("128", type, TN_NAMES_64, TN_SUMS_64, "%64", "%65", "%66", "%67", "%68")
/// Columns of b are neighbours.
template <class T>
TN_INLINE inline void multiply_columns(float (&d)[32], const uint32 (&a)[4], Matrix b) {
  if constexpr (is_brain<T>)
    TN_BY_64("bf16");
  else
    TN_BY_64("f16");
}
template <class T>
TN_INLINE inline void multiply_columns(float (&d)[64], const uint32 (&a)[4], Matrix b) {
  if constexpr (is_brain<T>)
    TN_BY_128("bf16");
  else
    TN_BY_128("f16");
}

/// A barrier that `count` arrivals open, again and again: its phases are numbered.
using Barrier = uint64;
TN_INLINE inline void prepare(Barrier& at, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(near_address(&at)), "r"(count)
               : "memory");
}
TN_INLINE inline void arrive(Barrier& at) {
  asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(near_address(&at))
               : "memory");
}
/// When all copies are there that this thread has begun.
TN_INLINE inline void arrive_after_copies(Barrier& at) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(near_address(&at))
               : "memory");
}
/// Whether a phase of this parity is over.
TN_INLINE inline bool is_open(Barrier& at, int parity) {
  uint32 done;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(near_address(&at)), "r"(parity)
      : "memory");
  return done;
}
TN_INLINE inline void wait(Barrier& at, int parity) {
  while (!is_open(at, parity)) {
  }
}
/// Shared memory that was written by copies and stores is now read by products.
TN_INLINE inline void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// Barriers of the block by number, of 256 threads: some wait, others only arrive.
TN_INLINE inline void meet_number(int number) {
  asm volatile("bar.sync %0, 256;" ::"r"(number) : "memory");
}
TN_INLINE inline void arrive_number(int number) {
  asm volatile("bar.arrive %0, 256;" ::"r"(number) : "memory");
}
template <int Count>
TN_INLINE inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count>
TN_INLINE inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}
/// The same number for all threads of a warp.
TN_INLINE inline int uniform(int x) {
  int y;
  asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x));
  return y;
}

#else

struct Matrix {
  const char* at;
  int leading, stride;
};
inline Matrix matrix_at(const void* at, int leading, int stride) {
  return {static_cast<const char*>(at), leading, stride};
}
inline Matrix moved(Matrix m, int bytes) { return {m.at + bytes, m.leading, m.stride}; }
inline void begin_products() {}
inline void close_products() {}
template <int Left, int N>
inline void wait_products(float (&)[N]) {}
template <class T>
inline float element(const char* at) {
  auto place = reinterpret_cast<uint64>(at);
  return widened(T(), *reinterpret_cast<const uint16*>(place ^ (place >> 7 & 7) << 4));
}
template <class T, int N>
inline void multiply_rows(float (&d)[N], Matrix a, Matrix b, bool adds) {
  auto at = [](Matrix m, int row, int k) {
    return element<T>(m.at + row / 8 * m.stride + row % 8 * 128 + k * 2);
  };
  for (int i = 0; i < N; ++i) {
    int row = warp() % 4 * 16 + lane() / 4 + i / 2 % 2 * 8;
    int column = i / 4 * 8 + lane() % 4 * 2 + i % 2;
    if (!adds) d[i] = 0;
    for (int k = 0; k < 16; ++k) d[i] += at(a, row, k) * at(b, column, k);
  }
}
template <class T, int N>
inline void multiply_columns(float (&d)[N], const uint32 (&a)[4], Matrix b) {
  show(a[0], a[1], a[2], a[3]);
  for (int i = 0; i < N; ++i) {
    int column = i / 4 * 8 + lane() % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) {
      uint64 word = seen(lane() / 4 * 4 + k % 8 / 2, i / 2 % 2 + k / 8 * 2);
      d[i] += widened(T(), half_of(word, k)) *
              element<T>(b.at + column / 64 * b.leading + k / 8 * b.stride + k % 8 * 128 +
                         column % 64 * 2);
    }
  }
}
struct Barrier {
  uint16 count, left;
  uint32 phase;
};
inline void prepare(Barrier& at, int count) {
  at = {static_cast<uint16>(count), static_cast<uint16>(count), 0};
}
inline void arrive(Barrier& at) {
  if (--at.left == 0) at.left = at.count, ++at.phase;
}
inline void arrive_after_copies(Barrier& at) { arrive(at); }
inline bool is_open(Barrier& at, int parity) { return static_cast<int>(at.phase & 1) != parity; }
inline void wait(Barrier& at, int parity) {
  while (!is_open(at, parity)) turn.wait();
}
inline void show_to_products() {}
inline Gathering gathered_numbers[16];
inline void meet_number(int number) { gathered_numbers[number].meet(256); }
inline void arrive_number(int number) { gathered_numbers[number].arrive(256); }
template <int Count>
inline void give_registers() {}
template <int Count>
inline void take_registers() {}
inline int uniform(int x) { return x; }

#endif
