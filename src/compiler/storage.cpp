#include "compiler/storage.h"

#include <algorithm>

namespace tn {
namespace {

class StorageFinder {
 public:
  StorageFinder(const Plan& plan, std::span<const int32_t> order)
      : plan_(plan),
        order_(order),
        first_(static_cast<size_t>(plan.first_own()) + plan.bytes.size(), -1),
        last_(first_.size(), -1),
        storage_(first_.size(), -1),
        kept_(first_.size()) {}

  Storages find() {
    find_uses();
    add_donated();
    for (int32_t now = 0; now < steps(); ++now)
      for (const Step& step = step_at(now); int32_t b : step.buffers)
        if (b >= plan_.first_own() && storage_[index(b)] < 0) assign(step, b, now);
    for (size_t own = 0; own < plan_.bytes.size(); ++own) {
      int32_t& of = storage_[index(plan_.first_own()) + own];
      if (of < 0) of = add({0, 0, plan_.bytes[own]});  // no step uses it
    }
    found_.of.assign(storage_.begin() + plan_.first_own(), storage_.end());
    return std::move(found_);
  }

 private:
  int32_t steps() const { return static_cast<int32_t>(order_.size()); }
  const Step& step_at(int32_t now) const { return plan_.steps[index(order_[index(now)])]; }
  int64_t bytes(int32_t b) const {
    if (b < plan_.inputs) return plan_.donated[index(b)];
    return plan_.bytes[index(b - plan_.first_own())];
  }

  void find_uses() {
    for (int32_t now = 0; now < steps(); ++now)
      for (int32_t b : step_at(now).buffers) {
        if (first_[index(b)] < 0) first_[index(b)] = now;
        last_[index(b)] = now;
      }
    for (const Plan::Output& out : plan_.outputs) {
      last_[index(out.buffer)] = steps();
      kept_[index(out.buffer)] = true;
    }
  }

  void add_donated() {
    for (int32_t b = 0; b < static_cast<int32_t>(plan_.donated.size()); ++b)
      if (bytes(b) > 0 && !kept_[index(b)])
        storage_[index(b)] = add({-1, last_[index(b)], bytes(b), b});
  }

  int32_t add(Storage storage) {
    found_.all.push_back(storage);
    return static_cast<int32_t>(found_.all.size()) - 1;
  }

  void assign(const Step& step, int32_t b, int32_t now) {
    int32_t& mine = storage_[index(b)];
    for (Step::Pair pair : step.in_place) {
      if (plan_.planning == MemoryPlanning::none) break;
      int32_t before = step.buffers[index(pair.input)];
      if (step.buffers[index(pair.output)] != b || !may_follow(step, before, b, now)) continue;
      if (mine < 0) mine = storage_[index(before)];
      if (!kept_[index(b)] || before >= plan_.inputs) continue;
      mine = storage_[index(before)];  // a result takes donated memory rather than the plan's
      break;
    }
    if (mine < 0) mine = add({now, now, bytes(b)});
    Storage& storage = found_.all[index(mine)];
    storage.last = last_[index(b)];
    storage.kept = kept_[index(b)];
  }

  /// `before` is dead after this step, which reads it once, and nothing took its place yet.
  bool may_follow(const Step& step, int32_t before, int32_t b, int32_t now) const {
    int32_t storage = storage_[index(before)];
    return storage >= 0 && last_[index(before)] == now && bytes(before) == bytes(b) &&
           (before < plan_.inputs || first_[index(before)] < now) &&
           found_.all[index(storage)].last == now && !taken(step, storage, before) &&
           std::ranges::count(step.buffers, before) == 1;
  }

  /// A result that lives for this step alone leaves `last` as it was.
  bool taken(const Step& step, int32_t storage, int32_t before) const {
    return std::ranges::any_of(
        step.buffers, [&](int32_t b) { return b != before && storage_[index(b)] == storage; });
  }

  const Plan& plan_;
  std::span<const int32_t> order_;
  // By number in the plan's table.
  std::vector<int32_t> first_, last_, storage_;
  std::vector<bool> kept_;
  Storages found_;
};

}  // namespace

Storages find_storages(const Plan& plan, std::span<const int32_t> order) {
  return StorageFinder(plan, order).find();
}

}  // namespace tn
