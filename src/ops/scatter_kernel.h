#pragma once
// Reading and writing a row-major tensor at computed places: the kernels behind gather, scatter and
// block updates.
#include <vector>

#include "ir/opdef.h"

namespace tn::ops {

enum class ScatterMode : uint8_t { set, add, mul, max, min };
inline constexpr std::string_view kScatterModes[] = {"set", "add", "mul", "max", "min"};
constexpr ChoiceNames choice_names(ScatterMode) { return kScatterModes; }

/// What becomes of an index beyond its axis: it is an error where indices are checked; it stands
/// for the nearest element; or it is dropped: then nothing is written, and what is read is 0. The
/// last two are errors where indices are checked, and clamp or drop elsewhere.
enum class OutOfRange : uint8_t { check, clamp, drop, check_clamp, check_drop };
inline constexpr std::string_view kOutOfRange[] = {"check", "clamp", "drop", "check_clamp",
                                                   "check_drop"};
constexpr ChoiceNames choice_names(OutOfRange) { return kOutOfRange; }
constexpr bool is_checked(OutOfRange outside) {
  return outside != OutOfRange::clamp && outside != OutOfRange::drop;
}
/// Without checks, `check` clamps where it reads and drops where it writes. Derivatives, which
/// write where the op read, say so.
constexpr OutOfRange for_reading(OutOfRange outside) {
  return outside == OutOfRange::check ? OutOfRange::check_clamp : outside;
}
constexpr OutOfRange for_writing(OutOfRange outside) {
  return outside == OutOfRange::check ? OutOfRange::check_drop : outside;
}
constexpr OutOfRange without_check(OutOfRange outside) {
  if (outside == OutOfRange::check_clamp) return OutOfRange::clamp;
  return outside == OutOfRange::check_drop ? OutOfRange::drop : outside;
}
constexpr OutOfRange when_reading(OutOfRange outside) {
  return without_check(for_reading(outside));
}
constexpr OutOfRange when_writing(OutOfRange outside) {
  return without_check(for_writing(outside));
}

/// Element (b, i, m, r) of what is read or written lies at b*outer_stride + points(b)[i] +
/// middle[m] + r.
struct ScatterPlan {
  int64_t outer = 1, outer_stride = 0;  // axes before the first indexed one
  int64_t batches = 1;                  // of the outer ones: each has index points of its own
  std::vector<int64_t> indexed;         // one offset per index point, -1 where it is dropped
  std::vector<int64_t> middle;          // of the axes between indexed ones
  int64_t run = 1;                      // elements after the last indexed axis, side by side

  int64_t count() const {  // of the points of a batch
    return batches ? static_cast<int64_t>(indexed.size()) / batches : 0;
  }
  std::span<const int64_t> points(int64_t b) const {
    int64_t batch = b / (outer / batches);
    return {indexed.data() + batch * count(), static_cast<size_t>(count())};
  }
};

/// The indices of `types` broadcast to `points`; the first `batch_dims` axes of both are paired.
/// Throws OutOfBounds where `outside` says so and this thread checks indices.
ScatterPlan plan_scatter(const Type& x, const Axes& axes, int64_t batch_dims, const Shape& points,
                         Types types, const void* const* indices, OutOfRange outside);

/// Copies the elements at the places of `plan` to `out`, in order.
void gather_from(ScatterPlan plan, DType type, const void* x, void* out);

/// Combines `updates` into `out`, in order.
void scatter_into(const ScatterPlan& plan, DType type, ScatterMode mode, const void* updates,
                  void* out);

/// A block of a tensor: per axis the first element, the step and (in `shape`) the count.
struct Block {
  Shape shape;
  Ints start, step;
};
/// Writes row-major `from` to the elements of `block` in `out`.
void write_block(const Type& x, const Block& block, const void* from, void* out);

}  // namespace tn::ops
