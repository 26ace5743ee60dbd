// Scatters for GPUs. Points are sorted by where they go (sort_kernels.cu), so that the updates of a
// place are side by side, in their order: one thread combines them as the CPU does. The build
// compiles this to PTX (cmake/prebuilt.cmake).
#include "backend/cuda/prebuilt/pairs.h"

constexpr int kMostIndices = 4, kMostAxes = 6;

/// As in cuda_scatter.cpp: where the points of a scatter lie, in elements from the first.
struct ScatterPoints {
  const void* indices[kMostIndices];
  int64 index_strides[kMostIndices][kMostAxes];  // along the axes of the points
  int64 extents[kMostIndices], strides[kMostIndices];  // of the axes of x that are indexed
  int64 points[kMostAxes];                             // their extents
  int64 count;
  void* keys;
  int bytes[kMostIndices], is_signed[kMostIndices];
  int operands, clamps, wide;  // wide: keys of 64 bits
};

/// An index beyond its axis is clamped, or its point is dropped: the largest key.
TN_KERNEL(scatter_points, ScatterPoints) {
  int64 point = block() * kThreads + thread();
  if (point >= p.count) return;
  int64 at[kMostIndices] = {}, rest = point;
  TN_UNROLL
  for (int k = kMostAxes - 1; k >= 0; --k) {
    int64 next = rest / p.points[k], i = rest - next * p.points[k];
    rest = next;
    TN_UNROLL
    for (int o = 0; o < kMostIndices; ++o) at[o] += i * p.index_strides[o][k];
  }
  int64 offset = 0;
  bool is_dropped = false;
  TN_UNROLL
  for (int o = 0; o < kMostIndices; ++o) {
    if (o >= p.operands) break;
    uint64 bits = load_bits(p.indices[o], at[o], p.bytes[o]);
    uint64 sign = 1ull << (8 * p.bytes[o] - 1);
    bool is_negative = p.is_signed[o] && (bits & sign);
    auto extent = static_cast<uint64>(p.extents[o]);
    bool is_outside = is_negative || bits >= extent;
    if (is_outside) bits = is_negative ? 0 : extent - 1;
    is_dropped = is_dropped || (is_outside && !p.clamps);
    offset += static_cast<int64>(bits) * p.strides[o];
  }
  if (is_dropped) offset = -1;
  if (p.wide)
    static_cast<uint64*>(p.keys)[point] = static_cast<uint64>(offset);
  else
    static_cast<uint32*>(p.keys)[point] = static_cast<uint32>(offset);
}

enum class Mode : int { set, add, mul, max, min };

/// As in cuda_scatter.cpp: element (b, i, m, r) of the updates goes to b * outer_stride + the key of
/// point i + middle m + r.
struct Scatter {
  const void* pairs;  // points in order of their keys
  const void* updates;
  void* out;
  int64 outer, outer_stride, batches, count, run, middles;
  int64 middle_extents[kMostIndices], middle_strides[kMostIndices];
  Mode mode;
  int wide;  // keys and places of 64 bits
};

struct Point {
  uint64 key;
  int64 place;
};
inline Point point_at(const Scatter& p, int64 i) {
  if (p.wide) {
    auto pair = static_cast<const Pair<uint64>*>(p.pairs)[i];
    return {pair.key, static_cast<int64>(pair.place)};
  }
  auto pair = static_cast<const Pair<uint32>*>(p.pairs)[i];
  return {pair.key == ~0u ? ~0ull : pair.key, static_cast<int64>(pair.place)};
}

/// What a thread has to do: an element of the updates.
struct Task {
  int64 b, i, e, first, to;  // first: of the points of the batch; to: without the key
};
inline Task task_of(const Scatter& p, int64 number) {
  int64 each = p.middles * p.run;
  Task task;
  int64 row = number / each;
  task.e = number - row * each;
  task.b = row / p.count, task.i = row - task.b * p.count;
  task.first = task.b / (p.outer / p.batches) * p.count;
  int64 m = task.e / p.run;
  task.to = task.b * p.outer_stride + (task.e - m * p.run);
  if (p.middles == 1) return task;
  TN_UNROLL
  for (int k = kMostIndices - 1; k >= 0; --k) {
    int64 next = m / p.middle_extents[k];
    task.to += (m - next * p.middle_extents[k]) * p.middle_strides[k];
    m = next;
  }
  return task;
}

template <class T>
struct Plain {
  using Memory = T;
  using Value = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
  static T mul(T a, T b) { return static_cast<T>(1u * a * b); }
};
struct Float : Plain<float> {
  static float mul(float a, float b) { return a * b; }
};
struct Double : Plain<double> {
  static double mul(double a, double b) { return a * b; }
};
template <class T>
struct Narrow : T {
  using Value = float;
  static float mul(float a, float b) { return a * b; }
};

/// As the CPU combines elements: integers wrap, NaN stays.
template <class T>
inline typename T::Value combine(Mode mode, typename T::Value a, typename T::Value b) {
  using Value = typename T::Value;
  if (mode == Mode::add) return static_cast<Value>(a + b);
  if (mode == Mode::mul) return T::mul(a, b);
  if (a != a) return a;
  if (b != b) return b;
  return (mode == Mode::max) == (a < b) ? b : a;
}

/// One thread for each element of the updates; the first of those for one place combines them all,
/// in their order, or the last one is written.
template <class T>
inline void scatter_element(const Scatter& p) {
  using Memory = typename T::Memory;
  using Value = typename T::Value;
  int64 number = block() * kThreads + thread(), each = p.middles * p.run;
  if (number >= p.outer * p.count * each) return;
  Task task = task_of(p, number);
  int64 i = task.i;
  uint64 key = point_at(p, task.first + i).key;
  if (key == ~0ull) return;  // it is dropped
  auto* updates = static_cast<const Memory*>(p.updates) + task.b * p.count * each + task.e;
  auto* out = static_cast<Memory*>(p.out) + task.to + static_cast<int64>(key);
  if (p.mode == Mode::set) {
    if (i + 1 == p.count || point_at(p, task.first + i + 1).key != key)
      *out = updates[point_at(p, task.first + i).place * each];
    return;
  }
  if (i > 0 && point_at(p, task.first + i - 1).key == key) return;
  constexpr int kAhead = 8;  // loads under way
  Memory sum = *out;
  for (bool goes_on = true; goes_on; i += kAhead) {
    Memory next[kAhead];
    bool is_own[kAhead];
    TN_UNROLL
    for (int l = 0; l < kAhead; ++l) {
      Point point = point_at(p, task.first + (i + l < p.count ? i + l : p.count - 1));
      is_own[l] = i + l < p.count && point.key == key;
      next[l] = updates[point.place * each];
    }
    TN_UNROLL
    for (int l = 0; l < kAhead; ++l)
      if (is_own[l])
        sum = T::store(combine<T>(p.mode, Value(T::load(sum)), Value(T::load(next[l]))));
    goes_on = is_own[kAhead - 1];
  }
  *out = sum;
}

#define SCATTER(name, ...) \
  TN_KERNEL(scatter_##name, Scatter) { scatter_element<__VA_ARGS__>(p); }

SCATTER(u8, Plain<uint8>)
SCATTER(i8, Plain<signed char>)
SCATTER(u16, Plain<uint16>)
SCATTER(i16, Plain<short>)
SCATTER(u32, Plain<uint32>)
SCATTER(i32, Plain<int>)
SCATTER(u64, Plain<uint64>)
SCATTER(i64, Plain<int64>)
SCATTER(f16, Narrow<F16>)
SCATTER(bf16, Narrow<BF16>)
SCATTER(f32, Float)
SCATTER(f64, Double)
