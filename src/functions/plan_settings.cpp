#include "functions/plan_settings.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/memory_report.h"
#include "functions/compiled.h"
#include "passes/pipeline.h"

namespace tn {
namespace {

MemoryPlanning planning_of(std::string_view name) {
  using enum MemoryPlanning;
  if (name.empty()) return usual;
  std::vector<std::string_view> names;
  for (MemoryPlanning planning : {greedy, best_fit, optimal, none}) {
    names.push_back(name_of(planning));
    if (names.back() == name) return planning;
  }
  fail("compile: memory_planning is one of {}, not '{}'", join(names, ", "), name);
}

bool is_for_throughput(std::string_view purpose) {
  if (purpose == "throughput") return true;
  if (purpose.empty() || purpose == "latency") return false;
  fail("compile: optimize_for is one of latency, throughput, not '{}'", purpose);
}

/// The best of the targets that this machine's CPU runs, or this machine's own.
Target target_here(const std::vector<Target>& targets) {
  auto at = std::ranges::find_if(targets.rbegin(), targets.rend(), [](const Target& target) {
    return is_for_host(target) && runs_here(target);
  });
  return at == targets.rend() ? host_target() : *at;
}

}  // namespace

CompileOptions options_of(int optimization_level, const PlanSettings& settings) {
  for (const std::string& name : settings.on) check_asked_for(name);
  return {.effort = effort_of(optimization_level),
          .off = settings.off,
          .on = settings.on,
          .memory_planning = planning_of(settings.memory_planning),
          .one_thread = is_for_throughput(settings.optimize_for),
          .target = target_here(targets_named(settings.targets, "target_hardware"))};
}

void check_runs_here(const PlanSettings& settings) {
  std::vector<Target> targets = targets_named(settings.targets, "target_hardware");
  if (targets.empty()) return;
  Hint ahead{"compile it ahead, with args=[...], and save it: files hold code for any machine",
             "use tn::compile_ahead, and save the result: files hold code for any machine"};
  if (!is_for_host(targets.front()))
    fail(ahead,
         "target_hardware: {} is for saved files only: a compiled function runs on the device of "
         "its arguments",
         name_of(targets.front()));
  if (!runs_here(targets.front()))
    fail(ahead, "target_hardware: code for {} does not run here: this machine has {}",
         name_of(targets.front()), name_of(host_target()));
}

}  // namespace tn
