#include "compiler/memory_report.h"

#include <algorithm>

#include "base/text.h"
#include "compiler/device_part.h"
#include "compiler/step_order.h"
#include "compiler/storage.h"
#include "runtime/memory_use.h"

namespace tn {
namespace {

constexpr size_t kListed = 10;

void add_blocks(const Plan& plan, MemoryReport& report) {
  std::vector<bool> holds_output(plan.blocks.size());
  for (const Plan::Output& out : plan.outputs)
    if (int32_t own = out.buffer - plan.first_own(); own >= 0)
      holds_output[index(plan.spots[index(own)].block)] = true;
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    const Plan::Block& block = plan.blocks[i];
    int64_t& sum = block.input >= 0  ? report.donated
                   : holds_output[i] ? report.outputs
                                     : report.arena;
    sum += block.bytes;
  }
  report.peak = report.arena + report.outputs;
  std::vector<const Buffer*> seen;
  for (const Bound& constant : plan.constants) {
    const Buffer* buffer = constant.buffer.get();
    if (std::ranges::count(seen, buffer)) continue;
    seen.push_back(buffer);
    report.constants += static_cast<int64_t>(buffer->bytes);
  }
}

/// The step at which most is needed, and how much.
void find_peak(const Plan& plan, const Storages& storages, MemoryReport& report) {
  std::vector<int64_t> change(plan.steps.size() + 1);
  std::vector<int64_t> alone(plan.steps.size() + 1);  // what no other step uses
  for (const Storage& storage : storages.all) {
    if (storage.input >= 0) continue;
    if (storage.first == storage.last) alone[index(storage.first)] += storage.bytes;
    change[index(storage.first)] += storage.bytes;
    if (index(storage.last) < plan.steps.size()) change[index(storage.last) + 1] -= storage.bytes;
  }
  int64_t live = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    live += change[s];
    report.needed.push_back(live);
    report.workspace = std::max(report.workspace, alone[s]);
    if (report.step >= 0 && live <= report.lower_bound) continue;
    report.lower_bound = live;
    report.step = static_cast<int32_t>(s);
  }
  // Temporaries in donated memory need none of the plan's.
  report.lower_bound = std::min(report.lower_bound, report.peak);
}

/// What lies in every storage at the report's step: the last buffer written there.
void list_live(const Plan& plan, const Storages& storages, MemoryReport& report) {
  std::vector<const Step*> maker(storages.all.size());
  std::vector<bool> made(plan.bytes.size());
  for (int32_t s = 0; s <= report.step; ++s)
    for (const Step& step = plan.steps[index(s)]; int32_t b : step.buffers) {
      int32_t own = b - plan.first_own();
      if (own < 0 || made[index(own)]) continue;
      made[index(own)] = true;
      maker[index(storages.of[index(own)])] = &step;
    }
  for (size_t i = 0; i < maker.size(); ++i) {
    const Storage& storage = storages.all[i];
    if (!maker[i] || storage.last < report.step) continue;
    report.live.push_back({storage.bytes, maker[i]->name, maker[i]->loc, storage.kept});
  }
  std::ranges::stable_sort(report.live, std::greater(), &MemoryReport::Live::bytes);
  if (report.live.size() > kListed) report.live.resize(kListed);
}

std::string size_text(int64_t bytes) { return bytes_text(static_cast<size_t>(bytes)); }

}  // namespace

std::string_view name_of(MemoryPlanning planning) {
  constexpr std::string_view kNames[] = {"usual", "greedy", "best_fit", "optimal", "none"};
  return kNames[static_cast<size_t>(planning)];
}

int64_t memory_needed(const Plan& plan) {
  int64_t bytes = 0;
  if (plan.parts)
    for (const Plan::Part& part : plan.parts->list)
      bytes = std::max(bytes, memory_needed(*plan_that_runs(part.plan->plan)));
  for (const Plan::Block& block : plan.blocks)
    if (block.input < 0) bytes += block.bytes;
  return bytes;
}

MemoryReport memory_report(const Plan& plan) {
  if (plan.parts)
    for (const Plan::Part& part : plan.parts->list)
      if (auto own = plan_that_runs(part.plan->plan); memory_needed(*own) == memory_needed(plan))
        return memory_report(*own);
  MemoryReport report;
  report.planning = name_of(plan.planning);
  report.is_least = plan.is_least;
  Storages storages = find_storages(plan, program_order(plan));
  add_blocks(plan, report);
  find_peak(plan, storages, report);
  int64_t donated = std::ranges::count_if(storages.all, [](auto& s) { return s.input >= 0; });
  report.in_place = static_cast<int64_t>(plan.bytes.size()) -
                    (static_cast<int64_t>(storages.all.size()) - donated);
  if (report.step < 0) return report;
  const Step& step = plan.steps[index(report.step)];
  report.step_name = step.name;
  report.step_loc = step.loc;
  list_live(plan, storages, report);
  return report;
}

std::string to_text(const MemoryReport& r) {
  std::string text = format("peak {}, lower bound {} ({:.1f} % lost to gaps)\n", size_text(r.peak),
                            size_text(r.lower_bound), 100 * r.fragmentation());
  text += format("arena {}, outputs {}, constants {}, workspace {}\n", size_text(r.arena),
                 size_text(r.outputs), size_text(r.constants), size_text(r.workspace));
  text += format("placed by {}{}\n", r.planning, r.is_least ? ": no placement needs less" : "");
  if (r.donated) text += format("in memory of inputs {}\n", size_text(r.donated));
  if (r.step < 0) return text;
  auto place = [](Loc loc) {
    std::string at = to_text(loc);
    return at.empty() ? at : format("  {}", at);
  };
  text += format("most at step {}, {}{}\n", r.step, r.step_name, place(r.step_loc));
  for (const MemoryReport::Live& live : r.live)
    text += format("  {:>12}  {:<6}  {}{}\n", size_text(live.bytes), live.output ? "output" : "",
                   live.name, place(live.loc));
  return text;
}

std::string over_limit_text(const MemoryReport& report, int64_t limit, Effort effort,
                            std::string_view whose) {
  std::string_view tried =
      effort == Effort::e0 ? "" : ": no plan was found that needs less by rematerialising values";
  return format("memory_limit is {} bytes, the smallest peak{} is {} bytes{}\n{}", limit, whose,
                report.peak, tried, to_text(report));
}

}  // namespace tn
