#pragma once
// Benchmarks with a goal: the figure, what it must reach, and whether it does, in one line.
#include <benchmark/benchmark.h>

#include <ctime>

namespace tn::bench {

inline double thread_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Runs `body`, which uses one thread, once per iteration, and says whether one takes at most
/// `goal_ns` of that thread's time, so that other load does not count. The names of such benchmarks
/// end in "/goal".
template <class Body>
void measure(benchmark::State& state, double goal_ns, Body body) {
  double began = thread_nanoseconds();
  for (auto _ : state) body();
  double each = (thread_nanoseconds() - began) / static_cast<double>(state.iterations());
  state.counters["goal_ns"] = goal_ns;
  state.SetLabel(each <= goal_ns ? "goal met" : "GOAL MISSED");
}

}  // namespace tn::bench
