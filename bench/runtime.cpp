// What the runtime adds to kernels: running a plan, handing out chunks, placing buffers.
#include <time.h>

#include <random>

#include "compiler/placement.h"
#include "compiler/plan_memory.h"
#include "goal.h"
#include "ops/op_decls.h"
#include "plan/library.h"
#include "plan/plan.h"
#include "runtime/threads.h"

namespace tn::bench {

static constexpr LibraryKernel kNothing{&ops::copy, [](const LibraryCall& call) {
                                          const void* const* in = call.in;
                                          benchmark::DoNotOptimize(in);
                                        }};

/// Steps that do nothing, each from one buffer to the next.
static Plan chain(int32_t steps) {
  Plan plan;
  plan.inputs = 1;
  for (int32_t s = 0; s < steps; ++s) {
    plan.bytes.push_back(4096);
    LibraryStep call{{&ops::copy, nullptr, {}, {}}, &kNothing};
    plan.steps.push_back({std::move(call), {s, s + 1}, {}, {1}});
  }
  plan.outputs.push_back({steps, 0});
  return plan;
}

static void planning_of_memory(benchmark::State& state) {
  const Plan plan = chain(static_cast<int32_t>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    Plan planned = plan;
    state.ResumeTiming();
    plan_memory(planned, MemoryPlanning::best_fit);
  }
}
BENCHMARK(planning_of_memory)->Arg(1)->Arg(4)->Arg(1000);

static void run_of_plan(benchmark::State& state) {
  Plan plan = chain(static_cast<int32_t>(state.range(0)));
  plan_memory(plan, MemoryPlanning::best_fit);
  std::vector<Bound> in{{allocate(4096), 0}}, out(1);
  for (auto _ : state) run(plan, in, nullptr, out);
}
BENCHMARK(run_of_plan)->Arg(1)->Arg(4)->Arg(64);

/// Buffers of a training step: each lives until its mirror image is needed, or for a few steps.
static void placement(benchmark::State& state) {
  std::mt19937 random(1);
  int32_t count = static_cast<int32_t>(state.range(0));
  std::vector<Interval> intervals;
  for (int32_t i = 0; i < count; ++i) {
    int32_t last = i % 2 && i < count / 2 ? count - i : i + 1 + static_cast<int32_t>(random() % 4);
    intervals.push_back({i, last, 64 * static_cast<int64_t>(1 + random() % 5000)});
  }
  double end = 0;
  for (auto _ : state) {
    std::vector<Interval> placed = intervals;
    end = static_cast<double>(place(placed, MemoryPlanning::greedy).end);
  }
  state.counters["over_bound"] = end / static_cast<double>(lower_bound(intervals));
}
BENCHMARK(placement)->Arg(100)->Arg(2000)->Unit(benchmark::kMicrosecond);

static void spin_for(int64_t nanoseconds) {
  auto now = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000 + t.tv_nsec;
  };
  for (int64_t end = now() + nanoseconds; now() < end;) {
  }
}

/// A loop of 16 chunks that takes `range(0)` microseconds on one thread, after `range(1)`
/// milliseconds without work.
static void loop_over_chunks(benchmark::State& state) {
  int64_t chunk = state.range(0) * 1000 / 16;
  timespec idle{0, state.range(1) * 1'000'000};
  for (auto _ : state) {
    state.PauseTiming();
    if (idle.tv_nsec) nanosleep(&idle, nullptr);
    state.ResumeTiming();
    parallel_for(16, chunk, [&](int64_t) { spin_for(chunk); });
  }
}
BENCHMARK(loop_over_chunks)
    ->ArgsProduct({{5, 30, 320}, {0, 20}})
    ->Iterations(100)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}  // namespace tn::bench
