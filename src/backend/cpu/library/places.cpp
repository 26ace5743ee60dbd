#include "backend/cpu/library/places.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/half.h"
#include "ir/element.h"
#include "ir/view.h"
#include "ops/index_bounds.h"
#include "ops/runtime_types.h"
#include "ops/shapes.h"
#include "runtime/threads.h"
#include "runtime/with_bits.h"

namespace tn::cpu {
namespace {

using namespace ops;

constexpr int64_t kNowhere = -1;  // the offset of an index point that is dropped

template <class T>
int64_t clamped(T value, int64_t extent) {
  if (value < T{0}) return 0;
  if constexpr (sizeof(T) == 8)
    return value >= static_cast<T>(extent) ? extent - 1 : static_cast<int64_t>(value);
  return std::min(static_cast<int64_t>(value), extent - 1);
}

template <class T>
bool is_inside(T value, int64_t extent) {
  return value >= T{0} && static_cast<uint64_t>(value) < static_cast<uint64_t>(extent);
}

/// Index tensors are read row by row: row r begins at rows[r], its elements are `step` apart.
struct IndexRows {
  std::vector<int64_t> rows;
  int64_t columns, step;
};

/// Adds stride times each index to `offsets`.
template <class T, OutOfRange kOutside>
void add_offsets(const void* from, const IndexRows& at, int64_t extent, int64_t stride,
                 int64_t* offsets) {
  constexpr int64_t kIndicesPerChunk = 1 << 15;
  auto* indices = static_cast<const T*>(from);
  auto rows = static_cast<int64_t>(at.rows.size());
  int64_t chunks = std::min(rows, chunks_for(rows * at.columns, kIndicesPerChunk));
  parallel_for(chunks, [&](int64_t chunk) {
    ChunkRange range = chunk_range(rows, chunks, chunk);
    for (int64_t r = range.begin; r < range.end; ++r) {
      const T* row = indices + at.rows[static_cast<size_t>(r)];
      int64_t* to = offsets + r * at.columns;
      for (int64_t c = 0; c < at.columns; ++c) {
        T index = row[c * at.step];
        if constexpr (kOutside == OutOfRange::clamp)
          to[c] += stride * clamped(index, extent);
        else if (to[c] != kNowhere)
          to[c] =
              is_inside(index, extent) ? to[c] + stride * static_cast<int64_t>(index) : kNowhere;
      }
    }
  });
}

/// The offset of every point of `shape`, by strides, in row-major order: axis after axis, each
/// offset so far becomes a row.
std::vector<int64_t> offsets_of(const Shape& shape, const Ints& strides) {
  std::vector<int64_t> offsets = {0};
  for (int k = 0; k < shape.rank(); ++k) {
    int64_t extent = shape[k].value(), stride = strides[k];
    std::vector<int64_t> next(offsets.size() * static_cast<size_t>(extent));
    int64_t* to = next.data();
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < extent; ++i) *to++ = offset + i * stride;
    offsets = std::move(next);
  }
  return offsets;
}

/// Strides that read `shape` as if it were broadcast to `points`.
Ints broadcast_strides(const Shape& shape, const Shape& points) {
  Ints own = Strided::row_major(shape).strides, strides;
  int missing = points.rank() - shape.rank();
  for (int k = 0; k < points.rank(); ++k)
    strides.push_back(k < missing || shape[k - missing].is(1) ? 0 : own[k - missing]);
  return strides;
}

/// How an index tensor of `shape` is read at `points`, to which it broadcasts.
IndexRows index_rows(const Shape& shape, Shape points) {
  if (points.rank() == 0) return {{0}, 1, 0};
  Ints strides = broadcast_strides(shape, points);
  int last = points.rank() - 1;
  int64_t columns = points[last].value(), step = strides[last];
  points.erase(last);
  return {offsets_of(points, strides), columns, step};
}

/// Elements compute as they are, narrow floats as float.
template <class T>
T loaded(T x) {
  return x;
}
float loaded(Float16Bits x) { return float16_to_float(x.bits); }
float loaded(BFloat16Bits x) { return bfloat16_to_float(x.bits); }
template <class T>
void put(T x, T& to) {
  to = x;
}
void put(float x, Float16Bits& to) { to.bits = float_to_float16(x); }
void put(float x, BFloat16Bits& to) { to.bits = float_to_bfloat16(x); }

/// Integers wrap: signed arithmetic goes through the unsigned type, small ones through 64 bits.
template <ScatterMode kMode, class T>
T combined(T a, T b) {
  if constexpr (kMode == ScatterMode::add || kMode == ScatterMode::mul) {
    constexpr bool kAdds = kMode == ScatterMode::add;
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(kAdds ? static_cast<uint64_t>(a) + static_cast<uint64_t>(b)
                                  : static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else if constexpr (kAdds)
      return a + b;
    else if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    if (a != a) return a;
    if (b != b) return b;
    return (kMode == ScatterMode::max) == (a < b) ? b : a;
  }
}

template <class T, ScatterMode kMode>
void combine_all(const ScatterPlan& plan, const void* updates, void* to) {
  int64_t run = plan.run, each = static_cast<int64_t>(plan.middle.size()) * run;
  auto* from = static_cast<const T*>(updates);
  auto* out = static_cast<T*>(to);
  for (int64_t b = 0; b < plan.outer; ++b)
    for (int64_t point : plan.points(b)) {
      if (point == kNowhere) {
        from += each;
        continue;
      }
      for (int64_t middle : plan.middle) {
        auto* row = out + b * plan.outer_stride + point + middle;
        for (int64_t r = 0; r < run; ++r)
          put(combined<kMode>(loaded(row[r]), loaded(*from++)), row[r]);
      }
    }
}

/// Copies `count` elements of kSize bytes to places `step` elements apart.
template <int kSize>
void copy_elements(const char* from, char* to, int64_t step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * step * kSize, from + i * kSize, kSize);
}

void copy_apart(int64_t size, const char* from, char* to, int64_t step, int64_t count) {
  with_bits(size, [&]<class T>(T) { copy_elements<sizeof(T)>(from, to, step, count); });
}

/// Replacing needs the size of an element only.
void set_all(const ScatterPlan& plan, int64_t size, const void* updates, void* to) {
  auto* from = static_cast<const char*>(updates);
  auto* out = static_cast<char*>(to);
  auto bytes = static_cast<size_t>(plan.run * size);
  if (bytes == 0) return;
  for (int64_t b = 0; b < plan.outer; ++b)
    for (int64_t point : plan.points(b)) {
      if (point == kNowhere) {
        from += plan.middle.size() * bytes;
        continue;
      }
      for (int64_t middle : plan.middle) {
        std::memcpy(out + (b * plan.outer_stride + point + middle) * size, from, bytes);
        from += bytes;
      }
    }
}

}  // namespace

/// The first index beyond its axis of the first point that has one.
[[noreturn]] static void throw_outside(const ScatterPlan& plan, const Type& x, const Axes& axes,
                                       const Shape& points, Types types,
                                       const void* const* indices) {
  auto point = std::ranges::find(plan.indexed, kNowhere) - plan.indexed.begin();
  for (size_t i = 0; i < types.size(); ++i) {
    int axis = axes[static_cast<int>(i)].i;
    int64_t extent = x.shape[axis].value(), offset = 0, rest = point;
    Ints strides = broadcast_strides(types[i]->shape, points);
    for (int k = points.rank() - 1; k >= 0; --k) {
      offset += rest % points[k].value() * strides[k];
      rest /= points[k].value();
    }
    auto* at = static_cast<const char*>(indices[i]) + offset * size_of(types[i]->dtype);
    int64_t index = element_at(types[i]->dtype, at).integer;
    if (!is_inside(index, extent)) throw OutOfBounds(index, axis, x, types.size() - i);
  }
  throw_internal("a point out of bounds has no such index");
}

ScatterPlan plan_scatter(const Type& x, const Axes& axes, int64_t batch_dims, const Shape& points,
                         Types types, const void* const* indices, OutOfRange outside) {
  const Shape& shape = x.shape;
  Ints strides = Strided::row_major(shape).strides;
  int first = axes[0].i, last = axes.back().i;
  ScatterPlan plan;
  plan.outer = span_of(shape, 0, first);
  plan.outer_stride = span_of(shape, first, shape.rank());
  plan.batches = span_of(shape, 0, static_cast<int>(batch_dims));
  plan.run = span_of(shape, last + 1, shape.rank());
  Shape between;
  Ints between_strides;
  for (int k = first; k < last; ++k)
    if (!axes.has(k)) between.push_back(shape[k]), between_strides.push_back(strides[k]);
  plan.middle = offsets_of(between, between_strides);
  plan.indexed.assign(static_cast<size_t>(span_of(points, 0, points.rank())), 0);
  for (size_t i = 0; i < types.size(); ++i) {
    int axis = axes[static_cast<int>(i)].i;
    int64_t extent = shape[axis].value();
    if (extent == 0) return plan.indexed.clear(), plan;  // nothing is touched: the op saw to that
    IndexRows rows = index_rows(types[i]->shape, points);
    with_element(element_of(types[i]->dtype), [&]<class T>(T) {
      if constexpr (std::is_integral_v<T>)
        (outside == OutOfRange::clamp ? add_offsets<T, OutOfRange::clamp>
                                      : add_offsets<T, OutOfRange::drop>)(indices[i], rows, extent,
                                                                          strides[axis],
                                                                          plan.indexed.data());
    });
  }
  if (indices_are_checked && is_checked(outside) && std::ranges::count(plan.indexed, kNowhere))
    throw_outside(plan, x, axes, points, types, indices);
  return plan;
}

void check_indices(const Type& x, const Axes& axes, int64_t batch_dims, const Shape& points,
                   Types types, const void* const* indices) {
  constexpr int64_t kIndicesPerChunk = 1 << 16;
  std::atomic<bool> all_inside = true;
  for (size_t i = 0; i < types.size() && span_of(points, 0, points.rank()) > 0; ++i) {
    int64_t extent = x.shape[axes[static_cast<int>(i)].i].value(), count = types[i]->elements;
    int64_t chunks = chunks_for(count, kIndicesPerChunk);
    with_element(element_of(types[i]->dtype), [&]<class T>(T) {
      if constexpr (std::is_integral_v<T>)
        parallel_for(chunks, [&](int64_t chunk) {
          auto [begin, end] = chunk_range(count, chunks, chunk);
          auto* at = static_cast<const T*>(indices[i]);
          bool inside = true;
          for (int64_t k = begin; k < end; ++k) inside &= is_inside(at[k], extent);
          if (!inside) all_inside = false;
        });
    });
  }
  if (!all_inside) plan_scatter(x, axes, batch_dims, points, types, indices, OutOfRange::check);
}

void scatter_into(const ScatterPlan& plan, DType type, ScatterMode mode, const void* updates,
                  void* out) {
  if (mode == ScatterMode::set) return set_all(plan, size_of(type), updates, out);
  if (type == DType::b1)  // sums are "or", products "and"
    mode = mode == ScatterMode::add   ? ScatterMode::max
           : mode == ScatterMode::mul ? ScatterMode::min
                                      : mode;
  with_element(element_of(type), [&]<class T>(T) {
    if (mode == ScatterMode::add) return combine_all<T, ScatterMode::add>(plan, updates, out);
    if (mode == ScatterMode::mul) return combine_all<T, ScatterMode::mul>(plan, updates, out);
    if constexpr (requires(T x) { loaded(x) < loaded(x); })  // complex numbers have no order
      mode == ScatterMode::max ? combine_all<T, ScatterMode::max>(plan, updates, out)
                               : combine_all<T, ScatterMode::min>(plan, updates, out);
  });
}

void write_block(const Type& x, const Block& block, const void* from, void* out) {
  Ints strides = Strided::row_major(x.shape).strides;
  int rank = x.rank(), inner = rank;
  // Trailing axes that are taken whole or side by side move as one run; else one axis in steps.
  while (inner > 0 && block.step[inner - 1] == 1) {
    --inner;
    if (!identical(block.shape[inner], x.shape[inner])) break;
  }
  int64_t step = inner == rank && rank > 0 ? block.step[--inner] : 1;
  int64_t run = span_of(block.shape, inner, rank), size = size_of(x.dtype), first = 0;
  Shape points;
  Ints steps;
  for (int k = 0; k < rank; ++k) {
    first += block.start[k] * strides[k];
    if (k < inner) points.push_back(block.shape[k]), steps.push_back(block.step[k] * strides[k]);
  }
  if (run == 0) return;
  auto* source = static_cast<const char*>(from);
  for (int64_t offset : offsets_of(points, steps)) {
    char* to = static_cast<char*>(out) + (first + offset) * size;
    if (step == 1)
      std::memcpy(to, source, static_cast<size_t>(run * size));
    else
      copy_apart(size, source, to, step, run);
    source += run * size;
  }
}

}  // namespace tn::cpu
