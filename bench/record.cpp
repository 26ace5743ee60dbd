// What one call costs before any arithmetic: recording, keying, allocating, a cached small run.
#include <tenon/tenon.h>

#include <cstdlib>

#include "eval/key.h"
#include "goal.h"
#include "ir/walk.h"
#include "runtime/buffer.h"

namespace tn::bench {

static Tensor row_of(float first) {
  std::vector<float> values(16);
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return array(values, {16});
}

static void record_and_release_add(benchmark::State& state) {
  Tensor x = row_of(1), y = row_of(2);
  measure(state, 60, [&] { benchmark::DoNotOptimize(x + y); });
}
BENCHMARK(record_and_release_add)->Name("record_and_release_x+y/goal");

static void run_four_ops(benchmark::State& state) {
  Tensor x = row_of(1), y = row_of(2);
  measure(state, 1000, [&] { abs(x * y + x - y).eval(); });
}
BENCHMARK(run_four_ops)->Name("record,_key_and_run_4_ops_on_16_elements/goal");

/// A number that changes every time is an argument of the plan, not a new plan.
static void run_with_a_new_number(benchmark::State& state) {
  Tensor x = row_of(1), y = row_of(2);
  double factor = 0.25;
  for (auto _ : state) (x * (factor += 1) + y).eval();
}
BENCHMARK(run_with_a_new_number);

/// Time per op of finding the pending ops and making their key.
static void walk_and_key(benchmark::State& state) {
  Tensor x = row_of(1), y = x;
  for (int i = 0; i < state.range(0); ++i) y = y + x;
  Walk seen;
  FlushKey key;
  std::vector<Edge> outputs{{y.node(), y.index()}};
  for (auto _ : state) {
    std::lock_guard lock(walk_mutex());
    seen.nodes.clear(), seen.leaves.clear();
    walk({&y, 1}, seen);
    make_key(seen, outputs, key);
    benchmark::DoNotOptimize(key.hash);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(walk_and_key)->Arg(4)->Arg(100)->Arg(10'000);

static void allocate_and_free(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(allocate(static_cast<size_t>(state.range(0))));
}
BENCHMARK(allocate_and_free)->Arg(64)->Arg(4096)->Arg(1 << 20)->Arg(64 << 20);

/// The rival: the system's own allocator.
static void malloc_and_free(benchmark::State& state) {
  for (auto _ : state) {
    void* block = std::malloc(static_cast<size_t>(state.range(0)));
    benchmark::DoNotOptimize(block);
    std::free(block);
  }
}
BENCHMARK(malloc_and_free)->Arg(64)->Arg(4096)->Arg(1 << 20)->Arg(64 << 20);

}  // namespace tn::bench
