#include "ops/scatter_kernel.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "base/half.h"
#include "ir/view.h"
#include "ops/shapes.h"

namespace tn::ops {
namespace {

/// Calls `visit(coordinates)` for every point of `shape`, in row-major order.
template <class F>
void for_each_point(const Shape& shape, F&& visit) {
  int64_t count = span_of(shape, 0, shape.rank());
  std::vector<int64_t> at(static_cast<size_t>(shape.rank()), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(at);
    for (size_t k = at.size(); k-- > 0;) {
      if (++at[k] < shape[static_cast<int>(k)].value()) break;
      at[k] = 0;
    }
  }
}

template <class T>
int64_t clamped(const void* from, int64_t at, int64_t extent) {
  T value = static_cast<const T*>(from)[at];
  if (value < T{0}) return 0;
  if constexpr (sizeof(T) == 8)
    return value >= static_cast<T>(extent) ? extent - 1 : static_cast<int64_t>(value);
  return std::min(static_cast<int64_t>(value), extent - 1);
}

int64_t read_index(DType type, const void* from, int64_t at, int64_t extent) {
  switch (type) {
    case DType::i8:
      return clamped<int8_t>(from, at, extent);
    case DType::i16:
      return clamped<int16_t>(from, at, extent);
    case DType::i32:
      return clamped<int32_t>(from, at, extent);
    case DType::u8:
      return clamped<uint8_t>(from, at, extent);
    case DType::u16:
      return clamped<uint16_t>(from, at, extent);
    case DType::u32:
      return clamped<uint32_t>(from, at, extent);
    case DType::u64:
      return clamped<uint64_t>(from, at, extent);
    default:
      return clamped<int64_t>(from, at, extent);
  }
}

/// The offset of every point of `shape`, by strides.
std::vector<int64_t> offsets_of(const Shape& shape, const Ints& strides) {
  std::vector<int64_t> offsets;
  for_each_point(shape, [&](const std::vector<int64_t>& at) {
    int64_t offset = 0;
    for (size_t k = 0; k < at.size(); ++k) offset += at[k] * strides[static_cast<int>(k)];
    offsets.push_back(offset);
  });
  return offsets;
}

/// Strides that read `shape` as if it were broadcast to `points`.
Ints broadcast_strides(const Shape& shape, const Shape& points) {
  Ints own = Strided::row_major(shape).strides, strides;
  int missing = points.rank() - shape.rank();
  for (int k = 0; k < points.rank(); ++k)
    strides.push_back(k < missing || shape[k - missing] == Dim(1) ? 0 : own[k - missing]);
  return strides;
}

/// Elements as they lie in memory, and what they compute as.
template <class T>
struct Plain {
  using Stored = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
struct Half {
  using Stored = uint16_t;
  static float load(uint16_t x) { return float16_to_float(x); }
  static uint16_t store(float x) { return float_to_float16(x); }
};
struct BrainHalf {
  using Stored = uint16_t;
  static float load(uint16_t x) { return bfloat16_to_float(x); }
  static uint16_t store(float x) { return float_to_bfloat16(x); }
};

/// Integers wrap: signed arithmetic goes through the unsigned type, small ones through 64 bits.
template <ScatterMode kMode, class T>
T combined(T a, T b) {
  if constexpr (kMode == ScatterMode::set) {
    return b;
  } else if constexpr (kMode == ScatterMode::add || kMode == ScatterMode::mul) {
    constexpr bool kAdds = kMode == ScatterMode::add;
    if constexpr (std::is_same_v<T, bool>)
      return kAdds ? a || b : a && b;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(kAdds ? static_cast<uint64_t>(a) + static_cast<uint64_t>(b)
                                  : static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else if constexpr (kAdds)
      return a + b;
    else if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else if constexpr (std::is_floating_point_v<T> || std::is_integral_v<T>) {
    if (a != a) return a;
    if (b != b) return b;
    return (kMode == ScatterMode::max) == (a < b) ? b : a;
  } else {
    return b;  // complex numbers have no order; the op refuses them
  }
}

template <class E, ScatterMode kMode>
void combine_all(const ScatterPlan& plan, const void* updates, void* to) {
  auto* from = static_cast<const typename E::Stored*>(updates);
  auto* out = static_cast<typename E::Stored*>(to);
  for (int64_t b = 0; b < plan.outer; ++b)
    for (int64_t point : plan.indexed)
      for (int64_t middle : plan.middle) {
        auto* row = out + b * plan.outer_stride + point + middle;
        for (int64_t r = 0; r < plan.run; ++r)
          row[r] = E::store(combined<kMode>(E::load(row[r]), E::load(*from++)));
      }
}

template <class E>
void combine_by_mode(const ScatterPlan& plan, ScatterMode mode, const void* updates, void* out) {
  switch (mode) {
    case ScatterMode::set:
      break;
    case ScatterMode::add:
      return combine_all<E, ScatterMode::add>(plan, updates, out);
    case ScatterMode::mul:
      return combine_all<E, ScatterMode::mul>(plan, updates, out);
    case ScatterMode::max:
      return combine_all<E, ScatterMode::max>(plan, updates, out);
    case ScatterMode::min:
      return combine_all<E, ScatterMode::min>(plan, updates, out);
  }
}

/// Replacing needs the size of an element only.
void set_all(const ScatterPlan& plan, int64_t size, const void* updates, void* to) {
  auto* from = static_cast<const char*>(updates);
  auto* out = static_cast<char*>(to);
  auto bytes = static_cast<size_t>(plan.run * size);
  if (bytes == 0) return;
  for (int64_t b = 0; b < plan.outer; ++b)
    for (int64_t point : plan.indexed)
      for (int64_t middle : plan.middle) {
        std::memcpy(out + (b * plan.outer_stride + point + middle) * size, from, bytes);
        from += bytes;
      }
}

}  // namespace

ScatterPlan plan_scatter(const Shape& shape, const Axes& axes, const Shape& points, Types types,
                         const void* const* indices) {
  Ints strides = Strided::row_major(shape).strides;
  int first = axes[0].i, last = axes.back().i;
  ScatterPlan plan;
  plan.outer = span_of(shape, 0, first);
  plan.outer_stride = span_of(shape, first, shape.rank());
  plan.run = span_of(shape, last + 1, shape.rank());
  Shape between;
  Ints between_strides;
  for (int k = first; k < last; ++k)
    if (!axes.has(k)) between.push_back(shape[k]), between_strides.push_back(strides[k]);
  plan.middle = offsets_of(between, between_strides);
  plan.indexed.assign(static_cast<size_t>(span_of(points, 0, points.rank())), 0);
  for (size_t i = 0; i < types.size(); ++i) {
    int axis = axes[static_cast<int>(i)].i;
    std::vector<int64_t> places = offsets_of(points, broadcast_strides(types[i]->shape, points));
    if (shape[axis] == Dim(0)) plan.indexed.clear();  // nothing is written: the op saw to that
    for (size_t p = 0; p < plan.indexed.size(); ++p)
      plan.indexed[p] +=
          strides[axis] * read_index(types[i]->dtype, indices[i], places[p], shape[axis].value());
  }
  return plan;
}

void scatter_into(const ScatterPlan& plan, DType type, ScatterMode mode, const void* updates,
                  void* out) {
  if (mode == ScatterMode::set) return set_all(plan, size_of(type), updates, out);
  switch (type) {
    case DType::b1:
      return combine_by_mode<Plain<bool>>(plan, mode, updates, out);
    case DType::i8:
      return combine_by_mode<Plain<int8_t>>(plan, mode, updates, out);
    case DType::i16:
      return combine_by_mode<Plain<int16_t>>(plan, mode, updates, out);
    case DType::i32:
      return combine_by_mode<Plain<int32_t>>(plan, mode, updates, out);
    case DType::i64:
      return combine_by_mode<Plain<int64_t>>(plan, mode, updates, out);
    case DType::u8:
      return combine_by_mode<Plain<uint8_t>>(plan, mode, updates, out);
    case DType::u16:
      return combine_by_mode<Plain<uint16_t>>(plan, mode, updates, out);
    case DType::u32:
      return combine_by_mode<Plain<uint32_t>>(plan, mode, updates, out);
    case DType::u64:
      return combine_by_mode<Plain<uint64_t>>(plan, mode, updates, out);
    case DType::f16:
      return combine_by_mode<Half>(plan, mode, updates, out);
    case DType::bf16:
      return combine_by_mode<BrainHalf>(plan, mode, updates, out);
    case DType::f32:
      return combine_by_mode<Plain<float>>(plan, mode, updates, out);
    case DType::f64:
      return combine_by_mode<Plain<double>>(plan, mode, updates, out);
    case DType::c64:
      return combine_by_mode<Plain<std::complex<float>>>(plan, mode, updates, out);
    case DType::c128:
      return combine_by_mode<Plain<std::complex<double>>>(plan, mode, updates, out);
    case DType::f8e4m3:
    case DType::f8e5m2:
      return;  // refused by the op: these types do not compute
  }
}

void write_block(const Type& x, const Block& block, const void* from, void* out) {
  Ints strides = Strided::row_major(x.shape).strides;
  int rank = x.rank();
  // Trailing axes that are taken whole or side by side move as one run.
  int inner = rank;
  while (inner > 0 && block.step[inner - 1] == 1) {
    --inner;
    if (block.shape[inner] != x.shape[inner]) break;
  }
  ScatterPlan plan;
  plan.run = span_of(block.shape, inner, rank);
  int64_t offset = 0;
  Ints steps;
  for (int k = 0; k < rank; ++k) {
    offset += block.start[k] * strides[k];
    if (k < inner) steps.push_back(block.step[k] * strides[k]);
  }
  Shape points;
  for (int k = 0; k < inner; ++k) points.push_back(block.shape[k]);
  plan.indexed = offsets_of(points, steps);
  plan.middle = {offset};
  set_all(plan, size_of(x.dtype), from, out);
}

}  // namespace tn::ops
