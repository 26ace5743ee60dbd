#include "functions/deadline.h"

#include <algorithm>
#include <chrono>

#include "base/debug_log.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "eval/background.h"

namespace tn {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kLongest = 1e9;                        // seconds that a clock can add
constexpr auto kSlice = std::chrono::milliseconds(50);  // between looks at the user's interrupt

std::string_view name_of(CompileStage stage) {
  constexpr std::string_view kNames[] = {"waiting for other compilations",
                                         "tracing",
                                         "passes",
                                         "fusion",
                                         "lowering",
                                         "code generation",
                                         "memory planning"};
  return kNames[static_cast<size_t>(stage)];
}

/// Whether it is ready before `end`.
bool wait_until(const std::shared_future<Deadline::PlanRef>& made, Clock::time_point end) {
  while (made.wait_for(Clock::duration()) != std::future_status::ready) {
    if (Clock::now() >= end) return false;
    stop_if_asked();
    made.wait_until(std::min(end, Clock::now() + kSlice));
  }
  return true;
}

}  // namespace

std::shared_ptr<Deadline::Entry> Deadline::entry_for(
    const std::shared_ptr<const CompiledGraph>& code, std::span<const Binding> sizes) {
  warm_up_compiler();
  Begun& begun = *begun_;
  std::lock_guard lock(begun.mutex);
  for (const auto& entry : begun.entries)
    if (std::ranges::equal(entry->sizes, sizes, {}, &Binding::value, &Binding::value)) return entry;
  auto entry = std::make_shared<Entry>();
  entry->sizes.assign(sizes.begin(), sizes.end());
  double tracing = traced_in_.exchange(0), left = std::min(seconds_, kLongest) - tracing;
  if (left <= 0) entry->stage = CompileStage::tracing;
  entry->end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(std::max(left, 0.0)));
  auto made = std::make_shared<std::promise<PlanRef>>();
  entry->compiled = made->get_future().share();
  auto compile = [code, made, entry] {
    told_stage = entry->stage == CompileStage::tracing ? nullptr : &entry->stage;
    try {
      made->set_value(code->plan(entry->sizes));
    } catch (...) {
      made->set_exception(std::current_exception());
    }
    told_stage = nullptr;
  };
  if (!compiling_worker().add(compile)) compile();  // the process ends
  if (begun.entries.size() == kMost) begun.entries.erase(begun.entries.begin());
  return begun.entries.emplace_back(std::move(entry));
}

Deadline::Found Deadline::plan(const std::shared_ptr<const CompiledGraph>& code,
                               std::span<const Binding> sizes, FunctionRef<PlanRef()> interpreted) {
  std::shared_ptr<Entry> entry = entry_for(code, sizes);
  if (wait_until(entry->compiled, entry->end)) return {entry->compiled.get(), true};
  std::string_view stage = name_of(entry->stage);
  if (fails_)
    fail(Hint{"wait longer, lower optimization_level, or use the interpreter until then: "
              "timeout=(seconds, \"interpret\")",
              "wait longer, lower optimization_level, or use the interpreter until then: "
              ".timeout_fails = false"},
         "compile: compilation timed out after {:g} s in {}; it continues in the background",
         seconds_, stage);
  std::call_once(entry->once, [&] {
    entry->interpreted = interpreted();
    debug_compile("not ready after {:g} s, in {}: the interpreter runs meanwhile", seconds_, stage);
  });
  return {entry->interpreted, false};
}

}  // namespace tn
