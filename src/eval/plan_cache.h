#pragma once
// The plans of flushes, by what they compute.
#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/events.h"
#include "eval/hot_paths.h"
#include "eval/key.h"
#include "plan/run_places.h"

namespace tn {

struct CachedPlan {
  std::vector<uint64_t> words;
  std::shared_ptr<const Plan> plan;
  uint64_t last_used = 0;
  std::shared_ptr<HotPath> hot = nullptr;  // null: hot paths are off
  OpListRef ops = nullptr;                 // null: no watcher
  PlacesRef marked = nullptr;              // of its ops, if some are told apart: see ir/place.h
};

using CachedPlanRef = std::shared_ptr<CachedPlan>;

/// Plans by key. The hash selects, the words decide: no silent collisions. Bounded in number and in
/// words of key, to which the size of a plan is proportional: the least recently used go.
class PlanCache {
 public:
  static constexpr size_t kMost = 4096, kMostWords = 1 << 21;

  /// Null: there is none. It stays where it is until one is added, or all are cleared.
  const CachedPlanRef* find(const FlushKey& key) {
    auto [at, end] = plans_.equal_range(key.hash);
    for (; at != end; ++at) {
      if (!std::ranges::equal(at->second->words, key.words())) continue;
      at->second->last_used = ++clock_;
      return &at->second;
    }
    return nullptr;
  }
  const CachedPlanRef& add(const FlushKey& key, std::shared_ptr<const Plan> plan) {
    words_ += key.size;
    while (plans_.size() >= kMost || (words_ > kMostWords && !plans_.empty())) evict();
    std::span<const uint64_t> words = key.words();
    auto made = std::make_shared<CachedPlan>(
        CachedPlan{{words.begin(), words.end()}, std::move(plan), ++clock_});
    return plans_.emplace(key.hash, std::move(made))->second;
  }
  size_t size() const { return plans_.size(); }
  void clear() { plans_.clear(), words_ = 0; }

 private:
  void evict() {
    std::vector<uint64_t> ages;
    for (auto& [hash, plan] : plans_) ages.push_back(plan->last_used);
    std::nth_element(ages.begin(), ages.begin() + static_cast<ptrdiff_t>(ages.size() / 4),
                     ages.end());
    uint64_t newest_gone = ages[ages.size() / 4];
    std::erase_if(plans_, [&](auto& entry) {
      bool gone = entry.second->last_used <= newest_gone;
      if (gone) words_ -= entry.second->words.size();
      return gone;
    });
  }
  std::unordered_multimap<uint64_t, CachedPlanRef> plans_;
  uint64_t clock_ = 0;
  size_t words_ = 0;
};

}  // namespace tn
