// Branch and bound over placements.
//
// Pushed down until nothing moves, every interval of a placement lies at the lowest offset that is
// free above those that lie lower and meet it in time. So all that matter are found by adding one
// interval after the other, each there, with offsets that never fall.
#include <algorithm>

#include "compiler/set_maker.h"

namespace tn {
namespace {

/// More intervals have too many placements.
constexpr size_t kMostOpen = 64;
/// Comparisons: about 50 ms.
constexpr int64_t kMostSearched = 50'000'000;

class Search {
 public:
  Search(std::span<const Interval> intervals, std::span<const size_t> open,
         std::vector<int64_t>& best, int64_t& end)
      : all_(intervals), open_(open.begin(), open.end()), best_(best), end_(end) {
    for (const Interval& interval : intervals) {
      moments_.push_back(interval.first);  // most is alive when something begins
      if (interval.offset < 0) continue;
      fixed_.push_back(interval);
      least_ = std::max(least_, interval.offset + interval.bytes);
    }
    std::ranges::sort(moments_);
    moments_.erase(std::ranges::unique(moments_).begin(), moments_.end());
    std::ranges::sort(fixed_, {}, &Interval::offset);
    least_ = std::max(least_, lower_bound(intervals));
    for (const Interval& interval : intervals) times_.push_back(times_of(interval));
    rest_.assign(moments_.size(), 0);
    for (size_t i : open_) add_rest(i, all_[i].bytes);
  }

  /// Whether everything was looked at, or nothing can be better.
  bool run() {
    std::vector<int64_t> tops(moments_.size());
    std::vector<int64_t> offsets(all_.size());
    extend(tops, offsets, 0, 0);
    return end_ == least_ || work_ <= kMostSearched;
  }

 private:
  struct Choice {
    int64_t offset;
    size_t interval;
  };

  /// Moments by number, from the first to behind the last.
  struct Times {
    size_t from, to;
  };
  Times times_of(const Interval& i) const {
    auto from = std::ranges::lower_bound(moments_, i.first);
    auto to = std::ranges::upper_bound(moments_, i.last);
    return {static_cast<size_t>(from - moments_.begin()),
            static_cast<size_t>(to - moments_.begin())};
  }

  void add_rest(size_t i, int64_t bytes) {
    for (size_t t = times_[i].from; t < times_[i].to; ++t) rest_[t] += bytes;
  }

  /// The lowest offset above what lies there; `tops` are by moment.
  int64_t lowest(size_t number, const std::vector<int64_t>& tops) {
    const Interval& i = all_[number];
    auto [from, to] = times_[number];
    work_ += static_cast<int64_t>(to - from + fixed_.size());
    int64_t offset = 0;
    for (size_t t = from; t < to; ++t) offset = std::max(offset, tops[t]);
    for (const Interval& f : fixed_)
      if (f.first <= i.last && i.first <= f.last && f.offset < offset + i.bytes)
        offset = std::max(offset, f.offset + f.bytes);
    return offset;
  }

  /// What is open lies above `low`, and above what was placed that is alive with it: whether that
  /// leaves room for something better than the best.
  bool has_room(const std::vector<int64_t>& tops, int64_t low) {
    work_ += static_cast<int64_t>(moments_.size() * (1 + fixed_.size()));
    for (size_t t = 0; t < moments_.size(); ++t) {
      int64_t from = std::max(tops[t], low), needed = from + rest_[t];
      if (rest_[t] == 0) continue;
      for (const Interval& f : fixed_)
        if (f.first <= moments_[t] && moments_[t] <= f.last)
          needed += std::max<int64_t>(0, f.offset + f.bytes - std::max(f.offset, from));
      if (needed >= end_) return false;
    }
    return true;
  }

  bool is_same(const Interval& a, const Interval& b) const {
    return a.first == b.first && a.last == b.last && a.bytes == b.bytes;
  }

  /// Where each open interval could lie next: the lowest and largest first.
  std::vector<Choice> choices(const std::vector<int64_t>& tops, int64_t low, size_t before) {
    std::vector<Choice> list;
    for (size_t k = 0; k < open_.size(); ++k) {
      const Interval& i = all_[open_[k]];
      auto same = [&](const Choice& c) { return is_same(i, all_[c.interval]); };
      if (std::ranges::any_of(list, same)) continue;
      int64_t offset = lowest(open_[k], tops);
      // Two at one offset do not meet: one order of them is enough.
      if (offset > low || (offset == low && open_[k] >= before)) list.push_back({offset, open_[k]});
    }
    std::ranges::sort(list, [&](const Choice& a, const Choice& b) {
      int64_t x = all_[a.interval].bytes, y = all_[b.interval].bytes;
      return a.offset != b.offset ? a.offset < b.offset : x != y ? x > y : a.interval < b.interval;
    });
    return list;
  }

  void extend(const std::vector<int64_t>& tops, std::vector<int64_t>& offsets, int64_t low,
              size_t before) {
    if (open_.empty()) {
      int64_t end = std::max(least_, std::ranges::max(tops));
      if (end < end_) end_ = end, best_ = offsets;
      return;
    }
    for (const Choice& choice : choices(tops, low, before)) {
      if (work_ > kMostSearched || end_ == least_ || !has_room(tops, choice.offset)) return;
      const Interval& i = all_[choice.interval];
      if (choice.offset + i.bytes >= end_) continue;
      std::vector<int64_t> above = tops;
      auto [from, to] = times_[choice.interval];
      for (size_t t = from; t < to; ++t) above[t] = choice.offset + i.bytes;
      offsets[choice.interval] = choice.offset;
      auto at = std::ranges::find(open_, choice.interval) - open_.begin();
      open_.erase(open_.begin() + at);
      add_rest(choice.interval, -i.bytes);
      extend(above, offsets, choice.offset, choice.interval);
      add_rest(choice.interval, i.bytes);
      open_.insert(open_.begin() + at, choice.interval);
    }
  }

  std::span<const Interval> all_;
  std::vector<size_t> open_;      // not placed yet
  std::vector<int32_t> moments_;  // steps at which something begins
  std::vector<Times> times_;      // by interval
  std::vector<Interval> fixed_;   // by offset
  std::vector<int64_t> rest_;     // by moment: bytes of open intervals that are alive
  std::vector<int64_t>& best_;
  int64_t& end_;       // of the best
  int64_t least_ = 0;  // nothing ends lower
  int64_t work_ = 0;
};

}  // namespace

bool improve_placement(std::span<const Interval> intervals, std::span<const size_t> open,
                       std::vector<int64_t>& offsets, int64_t& end) {
  return open.size() <= kMostOpen && Search(intervals, open, offsets, end).run();
}

}  // namespace tn
