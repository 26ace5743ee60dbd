// Sums over the workers of one machine, through shared memory.
#include <benchmark/benchmark.h>

#include <memory>
#include <thread>
#include <vector>

#include "workers/shared_transport.h"

using namespace tn;
using namespace tn::workers;

static std::shared_ptr<WorldMemory> memory;

static void all_reduce(benchmark::State& state) {
  SharedTransport worker(memory, state.thread_index());
  int64_t count = state.range(0) / 4;
  std::vector<float> x(static_cast<size_t>(count), 1.5f), y(x.size());
  CollectiveCall call{.kind = Collective::all_reduce,
                      .element = Element::f32,
                      .count = count,
                      .in = x.data(),
                      .out = y.data()};
  for (auto _ : state) worker.run(call);
  benchmark::DoNotOptimize(y.data());
}

static const bool registered = [] {
  for (int workers : {2, 4, 8})
    if (workers <= static_cast<int>(std::thread::hardware_concurrency()))
      benchmark::RegisterBenchmark("all_reduce", all_reduce)
          ->Setup(
              [](const benchmark::State& state) { memory = WorldMemory::make(state.threads()); })
          ->ArgName("bytes")
          ->Arg(4 << 10)
          ->Arg(4 << 20)
          ->Arg(64 << 20)
          ->Threads(workers)
          ->UseRealTime();
  return true;
}();
