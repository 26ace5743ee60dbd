#include "compiler/plan_memory.h"

#include <algorithm>
#include <ranges>

#include "compiler/memory_report.h"
#include "compiler/placement.h"
#include "compiler/step_order.h"
#include "compiler/storage.h"

namespace tn {
namespace {

/// Trying orders of more steps than this takes too long.
constexpr size_t kMostReordered = 8192;

int64_t bytes_needed(const Plan& plan, std::span<const int32_t> order) {
  std::vector<Interval> intervals;
  for (const Storage& storage : find_storages(plan, order).all)
    if (storage.input < 0) intervals.push_back({storage.first, storage.last, storage.bytes});
  return lower_bound(intervals);
}

/// As written, neighbours share what is in the caches: another order must save an eighth, unless
/// memory is all that counts.
std::vector<int32_t> best_order(const Plan& plan) {
  std::vector<int32_t> best = program_order(plan);
  int64_t least = bytes_needed(plan, best);
  if (plan.planning != MemoryPlanning::optimal) least = least / 8 * 7;
  for (auto make : {depth_first_order, least_growth_order}) {
    std::vector<int32_t> order = make(plan);
    int64_t needed = bytes_needed(plan, order);
    if (needed < least) least = needed, best = std::move(order);
  }
  return best;
}

void reorder(Plan& plan, std::span<const int32_t> order) {
  if (std::ranges::is_sorted(order)) return;
  std::vector<Step> steps;
  for (int32_t s : order) steps.push_back(std::move(plan.steps[index(s)]));
  plan.steps = std::move(steps);
}

/// The address space that storages are placed in: blocks side by side, then the arena, which has
/// no end. Nothing may reach across the end of a block, so a wall stands there at all times.
class AddressSpace {
 public:
  explicit AddressSpace(Plan& plan) : plan_(plan), end_(static_cast<int32_t>(plan.steps.size())) {}

  void place_all(Storages& storages) {
    make_blocks(storages.all);
    for (size_t i = 0; i < storages.all.size(); ++i)
      if (block_of_[i] < 0) add_interval(storages.all[i], storage_interval_[i]);
    auto [top, is_least] = place(intervals_, plan_.planning);
    plan_.is_least = is_least;
    if (top > arena_) plan_.blocks.push_back({top - arena_});
    for (int32_t of : storages.of) plan_.spots.push_back(spot_of_storage(index(of)));
    drop_unused_blocks();
  }

 private:
  /// Results have blocks of their own, donated inputs are blocks; temporaries may lie in them
  /// before the result is written and after the input was read.
  void make_blocks(const std::vector<Storage>& storages) {
    block_of_.assign(storages.size(), -1);
    storage_interval_.resize(storages.size());
    for (size_t i = 0; i < storages.size(); ++i)
      if (storages[i].input >= 0) add_block(i, storages[i]);
    succeeded_.resize(plan_.blocks.size());  // donated inputs are the first storages
    for (size_t i = 0; i < storages.size(); ++i) {
      if (!storages[i].kept || block_of_[i] >= 0) continue;
      if (!succeed_donated(i, storages)) add_block(i, storages[i]);
    }
  }

  void add_block(size_t i, const Storage& storage) {
    block_of_[i] = static_cast<int32_t>(plan_.blocks.size());
    plan_.blocks.push_back({storage.bytes, storage.input});
    starts_.push_back(arena_);
    int64_t usable = storage.bytes / kAlignment * kAlignment;
    if (usable == 0) return;  // nothing else fits
    intervals_.push_back({storage.first, storage.last, usable, arena_});
    intervals_.push_back({-1, end_, kAlignment, arena_ + usable});
    arena_ += usable + kAlignment;
  }

  /// A result as large as a donated input that is dead by then takes its memory.
  bool succeed_donated(size_t i, const std::vector<Storage>& storages) {
    for (size_t k = 0; k < succeeded_.size(); ++k) {
      const Storage& before = storages[k];
      if (succeeded_[k] || before.kept || before.bytes != storages[i].bytes ||
          before.last >= storages[i].first)
        continue;
      succeeded_[k] = true;
      block_of_[i] = block_of_[k];
      intervals_.push_back({storages[i].first, storages[i].last,
                            before.bytes / kAlignment * kAlignment, starts_[index(block_of_[k])]});
      return true;
    }
    return false;
  }

  void add_interval(const Storage& storage, size_t& number) {
    number = intervals_.size();
    int64_t bytes = std::max(aligned(storage.bytes), kAlignment);  // empty ones have an address too
    intervals_.push_back({storage.first, storage.last, bytes});
  }

  Spot spot_of_storage(size_t i) const {
    return block_of_[i] >= 0 ? Spot{block_of_[i], 0} : spot_of(storage_interval_[i]);
  }

  Spot spot_of(size_t interval) const {
    int64_t offset = intervals_[interval].offset;
    if (offset >= arena_) return {static_cast<int32_t>(starts_.size()), offset - arena_};
    auto block = std::ranges::upper_bound(starts_, offset) - 1;
    return {static_cast<int32_t>(block - starts_.begin()), offset - *block};
  }

  /// Donated inputs that nothing lies in.
  void drop_unused_blocks() {
    std::vector<int32_t> number(plan_.blocks.size(), -1);
    for (Spot spot : plan_.spots) number[index(spot.block)] = 0;
    std::vector<Plan::Block> used;
    for (size_t i = 0; i < number.size(); ++i) {
      if (number[i] < 0) continue;
      number[i] = static_cast<int32_t>(used.size());
      used.push_back(plan_.blocks[i]);
    }
    for (Spot& spot : plan_.spots) spot.block = number[index(spot.block)];
    plan_.blocks = std::move(used);
  }

  Plan& plan_;
  int32_t end_;
  std::vector<Interval> intervals_;
  std::vector<int32_t> block_of_;         // by storage; -1: placed among the others
  std::vector<size_t> storage_interval_;  // by storage
  std::vector<int64_t> starts_;           // of blocks
  int64_t arena_ = 0;                     // where it starts
  std::vector<bool> succeeded_;           // by donated storage
};

bool is_own(const Plan& plan, int32_t buffer) { return buffer >= plan.first_own(); }

int64_t bytes_of(const Plan& plan, int32_t buffer) {
  return plan.bytes[index(buffer - plan.first_own())];
}

int64_t bytes_touched(const Plan& plan, const Step& step) {
  int64_t bytes = 0;
  for (int32_t b : step.buffers)
    if (is_own(plan, b)) bytes += bytes_of(plan, b);
  return bytes;
}

bool lies_on_operand(const Plan& plan, const Step& step, int32_t result) {
  Spot at = plan.spots[index(result - plan.first_own())];
  return std::ranges::any_of(step.buffers, [&](int32_t b) {
    if (b == result || !is_own(plan, b)) return false;
    Spot other = plan.spots[index(b - plan.first_own())];
    return other.block == at.block && other.offset == at.offset;
  });
}

/// A store over what was just loaded finds its line in the cache: nothing to save.
/// Soon means before so many other bytes have been touched that a result would leave the caches.
void choose_streaming(Plan& plan) {
  const TargetCosts& costs = costs_of(plan.target);
  std::vector<int64_t> read_after(plan.bytes.size(),
                                  INT64_MAX);  // bytes touched before, from the end
  int64_t touched = 0;                         // by the steps behind
  for (Step& step : std::views::reverse(plan.steps)) {
    bool large = false, pays = true;
    for (int32_t place : step.writes) {
      int32_t b = step.buffers[index(place)];
      int64_t bytes = bytes_of(plan, b), read = read_after[index(b - plan.first_own())];
      if (bytes < costs.bypass_bytes) continue;
      large = true;
      bool soon = read != INT64_MAX && touched - read < costs.bypass_always_bytes;
      pays &= (bytes >= costs.bypass_always_bytes || !soon) && !lies_on_operand(plan, step, b);
    }
    step.bypass_cache = large && pays;
    for (int32_t b : step.buffers)
      if (is_own(plan, b))
        read_after[index(b - plan.first_own())] = touched + bytes_touched(plan, step);
    touched += bytes_touched(plan, step);
  }
}

size_t first_overwrite(const Plan& plan) {
  auto in_input = [&](int32_t b) {
    return is_own(plan, b) &&
           plan.blocks[index(plan.spots[index(b - plan.first_own())].block)].input >= 0;
  };
  auto overwrites = [&](const Step& step) { return std::ranges::any_of(step.buffers, in_input); };
  return static_cast<size_t>(std::ranges::find_if(plan.steps, overwrites) - plan.steps.begin());
}

}  // namespace

void plan_memory(Plan& plan, MemoryPlanning how, std::vector<int32_t>* order) {
  plan.planning = how;
  if (how == MemoryPlanning::none) plan.donated.clear();
  bool reorders = how == MemoryPlanning::best_fit || how == MemoryPlanning::optimal;
  if (reorders && plan.steps.size() <= kMostReordered) {
    std::vector<int32_t> own;
    std::vector<int32_t>& best = order ? *order : own;
    if (!is_order(plan, best)) best = best_order(plan);
    reorder(plan, best);
  }
  Storages storages = find_storages(plan, program_order(plan));
  AddressSpace(plan).place_all(storages);
  plan.first_overwrite = first_overwrite(plan);
  choose_streaming(plan);
  plan.explain_memory = [](const Plan& p) { return to_text(memory_report(p)); };
}

}  // namespace tn
