#pragma once
// Placement: assigns offsets in one arena to buffers with lifetimes.
#include "plan/plan.h"

namespace tn {

/// Offsets and sizes in arenas are multiples of this.
inline constexpr int64_t kAlignment = 64;
inline int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Memory that is needed from step `first` to step `last`, both included.
struct Interval {
  int32_t first, last;
  int64_t bytes;        // a multiple of kAlignment
  int64_t offset = -1;  // given: it lies there already
};

/// The most bytes that are needed at one step, whatever the offsets.
int64_t lower_bound(std::span<const Interval> intervals);

struct Placement {
  int64_t end;    // of the one that lies highest
  bool is_least;  // it is known that there is no better one
};

/// Gives every interval an offset so that no two that meet in time meet in space.
///   greedy    as time goes by, each at the lowest offset that is free
///   best_fit  that; the largest first, each into the tightest gap; and again with what came to lie
///             highest in front: the best of these
///   optimal   from there, all placements that could be better, if there are few intervals
///   none      side by side, whether they meet in time or not
Placement place(std::span<Interval> intervals, MemoryPlanning how);

}  // namespace tn
