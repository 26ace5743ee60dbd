#include "compiler/placement.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "compiler/compiler.h"

namespace tn {
namespace {

/// Above this, trying every interval against every other takes too long.
constexpr size_t kMostBySize = 8192;
/// Further tries, and the comparisons spent on them.
constexpr size_t kMostTries = 64, kMostWork = 4'000'000;

struct Placed {
  int64_t begin, end;
  int32_t first, last;
};

/// What has been placed so far, by offset.
class Space {
 public:
  void add(const Interval& interval, int64_t offset) {
    Placed placed{offset, offset + interval.bytes, interval.first, interval.last};
    auto at = std::ranges::upper_bound(placed_, offset, {}, &Placed::begin);
    placed_.insert(at, placed);
    end_ = std::max(end_, placed.end);
  }
  /// The tightest gap that is free for the whole interval, or the lowest one.
  int64_t gap_for(const Interval& wanted, bool tightest) {
    int64_t free_from = floor_, best = -1, best_size = INT64_MAX;
    for (const Placed& placed : placed_) {
      ++compared_;
      if (placed.last < wanted.first || placed.first > wanted.last) continue;
      int64_t size = placed.begin - free_from;
      if (size >= wanted.bytes && size < best_size) {
        best = free_from, best_size = size;
        if (!tightest || size == wanted.bytes) return best;
      }
      free_from = std::max(free_from, placed.end);
    }
    return best >= 0 ? best : free_from;
  }
  /// What is wanted from now on begins at `step` or later, and ends by `end`. To look at all that
  /// is placed costs no more than the comparisons since the last time.
  void forget_before(int32_t step, int32_t end) {
    if (compared_ < placed_.size()) return;
    compared_ = 0;
    auto is_full = [&](const Placed& placed) {  // from `floor_` up, for good
      return placed.begin <= floor_ && placed.first <= step && placed.last >= end;
    };
    std::erase_if(placed_, [&](const Placed& placed) {
      if (!is_full(placed)) return placed.last < step;
      floor_ = std::max(floor_, placed.end);
      return true;
    });
  }
  int64_t end() const { return end_; }

 private:
  std::vector<Placed> placed_;
  size_t compared_ = 0;
  int64_t floor_ = 0, end_ = 0;  // below the floor there are no gaps any more
};

int64_t place_in_order(std::span<const Interval> intervals, std::span<const size_t> order,
                       bool in_time, std::vector<int64_t>& offsets) {
  Space space;
  for (const Interval& interval : intervals)
    if (interval.offset >= 0) space.add(interval, interval.offset);
  int32_t now = INT32_MIN, end = INT32_MIN;
  for (const Interval& interval : intervals) end = std::max(end, interval.last);
  for (size_t i : order) {
    const Interval& interval = intervals[i];
    if (in_time && interval.first > now) space.forget_before(now = interval.first, end);
    offsets[i] = space.gap_for(interval, !in_time);
    space.add(interval, offsets[i]);
  }
  return space.end();
}

}  // namespace

int64_t lower_bound(std::span<const Interval> intervals) {
  struct Change {
    int64_t when, bytes;
  };
  std::vector<Change> changes;
  for (const Interval& interval : intervals) {
    changes.push_back({interval.first, interval.bytes});
    changes.push_back({int64_t{interval.last} + 1, -interval.bytes});
  }
  // What ends at a moment goes before what begins.
  std::ranges::sort(changes, [](const Change& a, const Change& b) {
    return a.when != b.when ? a.when < b.when : a.bytes < b.bytes;
  });
  int64_t live = 0, most = 0;
  for (const Change& change : changes) most = std::max(most, live += change.bytes);
  return most;
}

/// The largest first, each into the tightest gap, several times.
static void place_by_size(std::span<const Interval> intervals, std::vector<size_t> order,
                          std::vector<int64_t>& best, int64_t& end) {
  std::ranges::stable_sort(order, [&](size_t i, size_t j) {
    const Interval &a = intervals[i], &b = intervals[j];
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.last - a.first > b.last - b.first;
  });
  std::vector<int64_t> tried(intervals.size());
  size_t more = std::min(kMostTries, kMostWork / (order.size() * order.size() + 1));
  for (size_t n = 0; n <= more; ++n) {
    int64_t reached = place_in_order(intervals, order, false, tried);
    if (reached < end) end = reached, best = tried;
    // What lies highest goes first next time.
    auto top = std::ranges::max_element(order, {},
                                        [&](size_t i) { return tried[i] + intervals[i].bytes; });
    if (top != order.end()) std::rotate(order.begin(), top, top + 1);
  }
}

Placement place(std::span<Interval> intervals, MemoryPlanning how) {
  std::vector<size_t> order;
  int64_t least = 0;  // what lies somewhere already ends there
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& interval = intervals[i];
    if (interval.offset < 0) order.push_back(i);
    if (interval.offset >= 0) least = std::max(least, interval.offset + interval.bytes);
  }
  if (how == MemoryPlanning::none) {
    for (size_t i : order) intervals[i].offset = least, least += intervals[i].bytes;
    return {least, false};
  }
  least = std::max(least, lower_bound(intervals));
  std::ranges::stable_sort(order, {}, [&](size_t i) { return intervals[i].first; });
  std::vector<int64_t> best(intervals.size());
  int64_t end = place_in_order(intervals, order, true, best);
  if (how != MemoryPlanning::greedy && order.size() <= kMostBySize)
    place_by_size(intervals, order, best, end);
  bool is_least = end == least;
  if (how == MemoryPlanning::optimal && !is_least && compiler)
    is_least = compiler->improve_placement(intervals, order, best, end);
  for (size_t i : order) intervals[i].offset = best[i];
  return {end, is_least};
}

}  // namespace tn
