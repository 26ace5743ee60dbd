// The sharding pass on the training step of a GPT of 12 layers.
#include "goal.h"
#include "gpt_step.h"
#include "sharding/shard.h"

using namespace tn;
using sharding::Constraint;
using sharding::Priority;

/// Rows of the batch along `data`; where `stored`, all parameters in memory as well.
static void shard_step(benchmark::State& state, bool stored) {
  Gpt gpt{12, 64, 4, 128, 16, 16};
  Graph graph = gpt.step();
  Mesh mesh = parse_mesh("data=8");
  std::vector<Constraint> constraints;
  auto add = [&](Val v, Priority priority) {
    Layout layout(mesh);
    layout[0] = {0, 1};
    constraints.push_back({v, layout, priority});
  };
  for (Val v : {gpt.tokens(), gpt.tokens() + 1}) add(v, Priority::data);
  for (Val v = 0; stored && v < static_cast<Val>(gpt.shapes().size()); ++v)
    add(v, Priority::stored);
  constexpr double kGoal = 10e6;
  bench::measure(state, kGoal, [&] {
    benchmark::DoNotOptimize(sharding::shard(graph, mesh, constraints).local.graph.ops.size());
  });
  state.counters["ops"] = static_cast<double>(graph.ops.size());
}
BENCHMARK_CAPTURE(shard_step, data, false)->Name("shard_a_step_by_data/goal");
BENCHMARK_CAPTURE(shard_step, stored, true)->Name("shard_a_step_with_stored_weights/goal");
