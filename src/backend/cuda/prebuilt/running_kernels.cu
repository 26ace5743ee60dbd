// Running sums, products and extremes for GPUs. Each line is one chain, as on the CPU, so that floats
// have its bits: one thread walks it, and others bring what it walks over. The build compiles this
// to PTX (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/gpu_numbers.h"

/// As in cuda_running.cpp.
struct Running {
  const void* x;
  void* out;
  int64 outer, n, inner;  // element i of line (o, j) lies at (o * n + i) * inner + j
  int mode;               // 0 sum, 1 product, 2 largest, 3 smallest
  int reverse, exclusive;
  int rows;  // of a block; log2
};

template <class Sum>
struct Limits;
template <>
struct Limits<float> {
  static constexpr float largest = __builtin_inff(), smallest = -__builtin_inff(), none = -0.0f;
};
template <>
struct Limits<double> {
  static constexpr double largest = __builtin_inf(), smallest = -__builtin_inf(), none = -0.0;
};
template <>
struct Limits<int> {
  static constexpr int largest = 0x7fffffff, smallest = -0x7fffffff - 1, none = 0;
};
template <>
struct Limits<int64> {
  static constexpr int64 largest = 0x7fffffffffffffff, smallest = -largest - 1, none = 0;
};

/// What a line begins with; none: what changes nothing, which an exclusive sum does not show.
template <class Sum>
inline Sum start_of(const Running& p) {
  if (p.mode == 0) return p.exclusive ? Sum(0) : Limits<Sum>::none;
  if (p.mode == 1) return Sum(1);
  return p.mode == 2 ? Limits<Sum>::smallest : Limits<Sum>::largest;
}

inline float times(float a, float b) { return a * b; }
inline double times(double a, double b) { return a * b; }
inline float plus(float a, float b) { return a + b; }
inline double plus(double a, double b) { return a + b; }
inline int times(int a, int b) { return static_cast<int>(1u * a * b); }
inline int plus(int a, int b) { return static_cast<int>(0u + a + b); }
inline int64 times(int64 a, int64 b) { return static_cast<int64>(1ull * a * b); }
inline int64 plus(int64 a, int64 b) { return static_cast<int64>(0ull + a + b); }

template <int Mode, class Sum>
inline Sum next_of(Sum a, Sum b) {
  if constexpr (Mode == 0) return plus(a, b);
  if constexpr (Mode == 1) return times(a, b);
  if constexpr (Mode == 2) return a > b || a != a ? a : b;
  return a < b || a != a ? a : b;
}

template <class F>
__attribute__((always_inline)) inline void with_mode(int mode, F f) {
  if (mode == 0) f.template operator()<0>();
  if (mode == 1) f.template operator()<1>();
  if (mode == 2) f.template operator()<2>();
  if (mode == 3) f.template operator()<3>();
}

/// Lines that lie beside each other: a thread has one.
template <class T>
inline void run_columns(const Running& p) {
  using Sum = typename T::Sum;
  using Memory = typename T::Memory;
  int64 line = block() * 256 + thread();
  if (line >= p.outer * p.inner) return;
  int64 o = line / p.inner, first = o * p.n * p.inner + (line - o * p.inner);
  auto* x = static_cast<const Memory*>(p.x) + first;
  auto* out = static_cast<Memory*>(p.out) + first;
  Sum sum = start_of<Sum>(p);
  with_mode(p.mode, [&]<int Mode>() {
    constexpr int kAhead = 4;  // loads under way
    for (int64 i = 0; i < p.n; i += kAhead) {
      Sum next[kAhead];
      TN_UNROLL
      for (int l = 0; l < kAhead; ++l) {
        int64 at = i + l < p.n ? i + l : p.n - 1;
        next[l] = T::load(x[(p.reverse ? p.n - 1 - at : at) * p.inner]);
      }
      TN_UNROLL
      for (int l = 0; l < kAhead; ++l) {
        if (i + l >= p.n) break;
        int64 at = (p.reverse ? p.n - 1 - i - l : i + l) * p.inner;
        Sum before = sum;
        sum = next_of<Mode>(sum, next[l]);
        out[at] = T::store(p.exclusive ? before : sum);
      }
    }
  });
}

constexpr int kPiece = 1024, kPieces = 3;  // elements of a piece: some of each row of the block

template <class Sum>
struct RunningRoom {
  Sum pieces[kPieces][kPiece + 32];
};

/// Rows: while one thread walks a piece of each, others bring the next and take away the last.
template <class T>
inline void run_rows(const Running& p, RunningRoom<typename T::Sum>& room) {
  using Sum = typename T::Sum;
  using Memory = typename T::Memory;
  int rows = 1 << p.rows, width = kPiece >> p.rows;
  int64 row0 = block() * rows, steps = (p.n + width - 1) / width;
  Sum sum = start_of<Sum>(p);
  constexpr int kWalkers = 32;  // a warp
  auto copy = [&](int64 step, bool is_result) {
    Sum* piece = room.pieces[step % kPieces];
    for (int l = thread() - kWalkers; l < kPiece; l += 256 - kWalkers) {
      int r = l / width, c = l % width;
      int64 at = step * width + c;
      if (row0 + r >= p.outer || at >= p.n) continue;
      int64 place = (row0 + r) * p.n + (p.reverse ? p.n - 1 - at : at);
      if (is_result)
        static_cast<Memory*>(p.out)[place] = T::store(piece[r * (width + 1) + c]);
      else
        piece[r * (width + 1) + c] = T::load(static_cast<const Memory*>(p.x)[place]);
    }
  };
  auto walk = [&](int64 step) {
    if (thread() >= rows || row0 + thread() >= p.outer) return;
    Sum* at = room.pieces[step % kPieces] + thread() * (width + 1);
    int64 left = p.n - step * width;
    int count = left < width ? static_cast<int>(left) : width;
    with_mode(p.mode, [&]<int Mode>() {
      constexpr int kAhead = 8;
      for (int i = 0; i < count; i += kAhead) {
        Sum next[kAhead];
        TN_UNROLL
        for (int l = 0; l < kAhead; ++l) next[l] = at[i + l < count ? i + l : count - 1];
        TN_UNROLL
        for (int l = 0; l < kAhead; ++l) {
          if (i + l >= count) break;
          Sum before = sum;
          sum = next_of<Mode>(sum, next[l]);
          at[i + l] = p.exclusive ? before : sum;
        }
      }
    });
  };
  if (thread() >= kWalkers) copy(0, false);
  for (int64 step = 0; step <= steps; ++step) {
    meet();
    if (thread() < kWalkers) {
      if (step < steps) walk(step);
      continue;
    }
    if (step > 0) copy(step - 1, true);
    if (step + 1 < steps) copy(step + 1, false);
  }
}

#define RUNNING(name, T)                                                               \
  TN_KERNEL(running_columns_##name, Running) { run_columns<T>(p); }                    \
  TN_KERNEL(running_rows_##name, Running) { run_rows<T>(p, shared<RunningRoom<T::Sum>>()); }

RUNNING(f32, F32)
RUNNING(f64, F64)
RUNNING(f16, F16)
RUNNING(bf16, BF16)
RUNNING(i32, Whole<int>)
RUNNING(i64, Whole<int64>)
