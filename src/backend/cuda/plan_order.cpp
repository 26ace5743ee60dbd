// Which launches of a plan must follow which: those that use the same memory.
#include <algorithm>

#include "backend/cuda/cuda_products.h"
#include "backend/cuda/plan_state.h"

namespace tn::cuda {
namespace {

struct Range {
  int32_t block;
  int64_t from, to;
  bool written;
};

bool collide(const Range& a, const Range& b) {
  return (a.written || b.written) && a.block == b.block && a.from < b.to && b.from < a.to;
}

/// The memory of a run that a step uses. Inputs matter where results may take their place.
std::vector<Range> ranges_of(const Plan& plan, const Step& step) {
  std::vector<Range> ranges;
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    int32_t buffer = step.buffers[i];
    bool written =
        step.writes.empty() || std::ranges::count(step.writes, static_cast<int32_t>(i)) > 0;
    if (int32_t own = buffer - plan.first_own(); own >= 0) {
      Spot spot = plan.spots[static_cast<size_t>(own)];
      ranges.push_back(
          {spot.block, spot.offset, spot.offset + plan.bytes[static_cast<size_t>(own)], written});
      continue;
    }
    for (size_t b = 0; b < plan.blocks.size(); ++b)
      if (plan.blocks[b].input == buffer && buffer < plan.inputs)
        ranges.push_back({static_cast<int32_t>(b), 0, INT64_MAX, written});
  }
  return ranges;
}

}  // namespace

void PlanState::find_order() {
  constexpr size_t kMostCompared = 512;  // longer plans are chains
  size_t count = items_.size(), last_call = SIZE_MAX;
  if (count > kMostCompared) {
    for (size_t i = 1; i < count; ++i) items_[i].after = {i - 1};
    return;
  }
  std::vector<std::vector<Range>> ranges(count);
  std::vector<std::vector<bool>> behind(count, std::vector<bool>(count));  // all that it follows
  for (size_t i = 0; i < count; ++i) {
    ranges[i] = ranges_of(*plan_, *items_[i].step);
    const LibraryStep* call = items_[i].step->library();
    bool is_call = call && may_run_cublas(*call, plan_->products);
    for (size_t k = i; k-- > 0;) {
      if (behind[i][k]) continue;
      bool must =
          (is_call && k == last_call) ||  // they share memory of cuBLASLt
          std::ranges::any_of(ranges[i], [&](const Range& a) {
            return std::ranges::any_of(ranges[k], [&](const Range& b) { return collide(a, b); });
          });
      if (!must) continue;
      items_[i].after.push_back(k);
      behind[i][k] = true;
      for (size_t b = 0; b < k; ++b)
        if (behind[k][b]) behind[i][b] = true;
    }
    if (is_call) last_call = i;
  }
}

}  // namespace tn::cuda
