#include "compiler/step_order.h"

#include <algorithm>
#include <numeric>

namespace tn {

/// A donated input that may be overwritten in place should be, so its other readers go first.
static bool writes(const Plan& plan, const Step& step, int32_t place) {
  int32_t b = step.buffers[static_cast<size_t>(place)];
  if (b >= plan.first_own())
    return step.writes.empty() || std::ranges::count(step.writes, place) > 0;
  return static_cast<size_t>(b) < plan.donated.size() && plan.donated[static_cast<size_t>(b)] > 0 &&
         std::ranges::count(step.in_place, place, &Step::Pair::input) > 0;
}

StepDependences::StepDependences(const Plan& plan)
    : before(plan.steps.size()), after(plan.steps.size()) {
  size_t buffers = static_cast<size_t>(plan.first_own()) + plan.bytes.size();
  std::vector<int32_t> writer(buffers, -1);
  std::vector<std::vector<int32_t>> readers(buffers);
  int32_t effect = -1;
  for (int32_t s = 0; s < static_cast<int32_t>(plan.steps.size()); ++s) {
    const Step& step = plan.steps[static_cast<size_t>(s)];
    for (size_t place = 0; place < step.buffers.size(); ++place) {
      size_t b = static_cast<size_t>(step.buffers[place]);
      add(writer[b], s);
      if (!writes(plan, step, static_cast<int32_t>(place))) {
        readers[b].push_back(s);
        continue;
      }
      for (int32_t reader : readers[b]) add(reader, s);
      readers[b].clear();
      writer[b] = s;
    }
    if (step.effect) add(std::exchange(effect, s), s);
  }
}

void StepDependences::add(int32_t earlier, int32_t later) {
  if (earlier < 0 || earlier == later) return;
  before[static_cast<size_t>(later)].push_back(earlier);
  after[static_cast<size_t>(earlier)].push_back(later);
}

namespace {

/// Picks, among the steps that may run, the one that adds least to the memory in use.
class Growth {
 public:
  explicit Growth(const Plan& plan)
      : plan_(plan), own_(plan.steps.size()), left_(plan.bytes.size()), made_(plan.bytes.size()) {
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      for (int32_t b : plan.steps[s].buffers)
        if (b >= plan.first_own()) own_[s].push_back(static_cast<size_t>(b - plan.first_own()));
      std::ranges::sort(own_[s]);
      own_[s].erase(std::unique(own_[s].begin(), own_[s].end()), own_[s].end());
      for (size_t b : own_[s]) ++left_[b];
    }
    // Results have memory of their own from the start: when they are made says nothing.
    for (const Plan::Output& out : plan.outputs) {
      if (out.buffer < plan.first_own()) continue;
      auto b = static_cast<size_t>(out.buffer - plan.first_own());
      ++left_[b], made_[b] = true;
    }
  }
  int64_t of(int32_t step) const {
    int64_t growth = 0;
    for (size_t b : own_[static_cast<size_t>(step)]) {
      if (!made_[b]) growth += plan_.bytes[b];
      if (left_[b] == 1) growth -= plan_.bytes[b];
    }
    return growth;
  }
  void run(int32_t step) {
    for (size_t b : own_[static_cast<size_t>(step)]) made_[b] = true, --left_[b];
  }

 private:
  const Plan& plan_;
  std::vector<std::vector<size_t>> own_;  // by step: its own buffers, once each
  std::vector<int32_t> left_;             // by own buffer: steps yet to run that use it
  std::vector<bool> made_;
};

}  // namespace

std::vector<int32_t> program_order(const Plan& plan) {
  std::vector<int32_t> order(plan.steps.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool is_order(const Plan& plan, std::span<const int32_t> order) {
  if (order.size() != plan.steps.size()) return false;
  if (std::ranges::is_sorted(order)) return true;
  StepDependences depends(plan);
  std::vector<bool> done(order.size());
  for (int32_t s : order) {
    size_t step = static_cast<size_t>(s);
    for (int32_t before : depends.before[step])
      if (!done[static_cast<size_t>(before)]) return false;
    done[step] = true;
  }
  return true;
}

std::vector<int32_t> depth_first_order(const Plan& plan) {
  StepDependences steps(plan);
  std::vector<int32_t> order, path;
  std::vector<size_t> next(plan.steps.size());  // of `before`, to look at
  std::vector<bool> seen(plan.steps.size());
  auto visit = [&](int32_t step) {
    if (seen[static_cast<size_t>(step)]) return;
    seen[static_cast<size_t>(step)] = true;
    path.push_back(step);
  };
  for (int32_t root = 0; root < static_cast<int32_t>(plan.steps.size()); ++root) {
    if (!steps.after[static_cast<size_t>(root)].empty()) continue;
    for (visit(root); !path.empty();) {
      size_t step = static_cast<size_t>(path.back());
      if (next[step] < steps.before[step].size()) {
        visit(steps.before[step][next[step]++]);
      } else {
        order.push_back(path.back());
        path.pop_back();
      }
    }
  }
  return order;
}

std::vector<int32_t> least_growth_order(const Plan& plan) {
  StepDependences steps(plan);
  Growth growth(plan);
  std::vector<size_t> waiting(plan.steps.size());
  std::vector<int32_t> ready, order;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    waiting[s] = steps.before[s].size();
    if (waiting[s] == 0) ready.push_back(static_cast<int32_t>(s));
  }
  while (!ready.empty()) {
    auto least = std::ranges::min_element(
        ready, {}, [&](int32_t step) { return std::pair(growth.of(step), step); });
    int32_t step = *least;
    ready.erase(least);
    order.push_back(step);
    growth.run(step);
    for (int32_t s : steps.after[static_cast<size_t>(step)])
      if (--waiting[static_cast<size_t>(s)] == 0) ready.push_back(s);
  }
  return order;
}

}  // namespace tn
