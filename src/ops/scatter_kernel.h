#pragma once
// Reading and writing a row-major tensor at computed places: the kernels behind gather, scatter and
// block updates.
#include <vector>

#include "ir/opdef.h"

namespace tn::ops {

enum class ScatterMode : uint8_t { set, add, mul, max, min };
inline constexpr std::string_view kScatterModes[] = {"set", "add", "mul", "max", "min"};
constexpr ChoiceNames choice_names(ScatterMode) { return kScatterModes; }

/// What becomes of an index beyond its axis: reads take the nearest element, writes are left out.
enum class OutOfRange : uint8_t { clamp, drop };

/// Element (b, i, m, r) of what is read or written lies at b*outer_stride + indexed[i] + middle[m]
/// + r.
struct ScatterPlan {
  int64_t outer = 1, outer_stride = 0;  // axes before the first indexed one
  std::vector<int64_t> indexed;         // one offset per index point, -1 where it is dropped
  std::vector<int64_t> middle;          // of the axes between indexed ones
  int64_t run = 1;                      // elements after the last indexed axis, side by side
};

ScatterPlan plan_scatter(const Shape& shape, const Axes& axes, const Shape& points, Types types,
                         const void* const* indices, OutOfRange outside);

/// Copies the elements at the places of `plan`, none of them dropped, to `out`, in order.
void gather_from(const ScatterPlan& plan, DType type, const void* x, void* out);

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
