#pragma once
// Benchmarks with a goal: the figure, what it must reach, and whether it does, in one line.
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>

namespace tn::bench {

/// Runs `body` once per iteration and says whether one takes at most `goal_ns`. The names of such
/// benchmarks end in "/goal".
template <class Body>
void measure(benchmark::State& state, double goal_ns, Body body) {
  using Clock = std::chrono::steady_clock;
  auto began = Clock::now();
  for (auto _ : state) body();
  std::chrono::duration<double, std::nano> taken = Clock::now() - began;
  double each = taken.count() / static_cast<double>(state.iterations());
  state.counters["goal_ns"] = goal_ns;
  state.SetLabel(each <= goal_ns ? "goal met" : "GOAL MISSED");
}

}  // namespace tn::bench
