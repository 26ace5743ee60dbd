#include "ir/region.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/at_fork.h"

namespace tn {

std::atomic<bool> regions_are_used = false;

namespace {

constexpr size_t kMostIntervals = 1 << 14;

struct RegionInterval {
  uint64_t end;
  RegionRef region;
};

struct Intervals {
  std::mutex mutex;
  std::map<uint64_t, RegionInterval> by_start;  // disjoint
};

Intervals& intervals() {
  static auto& only = *[] {
    auto* made = new Intervals;
    guarded_at_fork(made->mutex, 15);  // nodes are numbered under other locks
    return made;
  }();
  return only;
}

thread_local RegionRef current;
thread_local uint64_t current_start = 0;  // of its last interval

/// Begins an interval, which ends with the block of numbers at the latest.
void begin(uint64_t start) {
  auto& by_start = intervals().by_start;
  by_start[start] = {(start / kSequenceBlock + 1) * kSequenceBlock, current};
  current_start = start;
  if (by_start.size() > kMostIntervals) by_start.erase(by_start.begin());
}

/// The region goes on in another block of numbers.
void go_on(uint64_t first) {
  if (!current) return;
  std::lock_guard lock(intervals().mutex);
  begin(first);
}

}  // namespace

const RegionRef& current_region() { return current; }

RegionRef exchange_region(RegionRef region) {
  if (region == current) return region;
  regions_are_used.store(true, std::memory_order_relaxed);
  sequence_block_taken.store(go_on, std::memory_order_relaxed);
  uint64_t here = next_sequence();
  std::lock_guard lock(intervals().mutex);
  if (current) {
    auto open = intervals().by_start.find(current_start);
    if (open != intervals().by_start.end()) open->second.end = std::min(open->second.end, here);
  }
  std::swap(current, region);
  if (current) begin(here);
  return region;
}

std::vector<RegionRef> regions_of(std::span<Node* const> nodes) {
  std::vector<RegionRef> found(nodes.size());
  std::lock_guard lock(intervals().mutex);
  const auto& by_start = intervals().by_start;
  if (by_start.empty()) return found;
  auto at = by_start.end();  // nodes that are near each other were recorded one after the other
  for (size_t i = 0; i < nodes.size(); ++i) {
    uint64_t number = nodes[i]->sequence;
    if (at == by_start.end() || number < at->first || number >= at->second.end) {
      at = by_start.upper_bound(number);
      if (at == by_start.begin()) continue;
      --at;
    }
    if (number < at->second.end) found[i] = at->second.region;
  }
  return found;
}

RegionsOfDerivatives::~RegionsOfDerivatives() { exchange_region(outer_); }

void RegionsOfDerivatives::move_to(Node& node) {
  Node* one[] = {&node};
  RegionRef region = std::move(regions_of(one)[0]);
  RegionRef derivatives;
  if (region) {
    auto known = std::ranges::find(known_, region, &std::pair<RegionRef, RegionRef>::first);
    if (known == known_.end()) {
      known_.emplace_back(region, region->of_derivatives());
      known = known_.end() - 1;
    }
    derivatives = known->second;
  }
  exchange_region(derivatives ? derivatives : outer_);
}

}  // namespace tn
