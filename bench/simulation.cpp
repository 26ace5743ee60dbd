// Ten thousand workers, simulated: the training step of a GPT of 77 billion parameters in several
// layouts. `tenon_bench --benchmark_filter=simulate` prints the table of docs/design/036.
//
// A worker is taken as 550 TFLOP/s in products and 80 GB. `model` is the network inside a machine,
// 370 GB/s; `data` the one between machines, 50 GB/s. Communication is not overlapped.
#include <benchmark/benchmark.h>

#include "gpt_step.h"
#include "mesh/mesh_simulation.h"

using namespace tn;
using sharding::Constraint;
using sharding::Priority;

namespace {

struct Layouts {
  const char* mesh;
  bool stored, tensor;
};

constexpr Gpt kGpt{64, 10'000, 80, 100'000, 10'000, 512};

const Graph& step() {
  static const Graph graph = kGpt.step();
  return graph;
}

std::vector<Constraint> constraints_of(const Layouts& layouts, const Mesh& mesh) {
  std::vector<Constraint> list;
  auto add = [&](Val v, std::string_view layout, Priority priority) {
    TypeRef type = step().types[static_cast<size_t>(v)];
    list.push_back({v, parse_layout(layout, mesh, *type), priority});
  };
  for (Val v : {kGpt.tokens(), kGpt.tokens() + 1}) add(v, "@[data,-]", Priority::data);
  std::vector<std::string> names = kGpt.names();
  for (size_t i = 0; i < names.size(); ++i) {
    auto v = static_cast<Val>(i);
    bool is_row = names[i].ends_with("out") || names[i].ends_with("down");
    bool is_gain = names[i].ends_with("norm1") || names[i].ends_with("norm2");
    if (layouts.tensor && is_row) add(v, "@[-,model]", Priority::parameter);
    bool has_columns = names[i].ends_with("qkv") || names[i].ends_with("up");
    if (layouts.stored)
      add(v, is_gain ? "@[data]" : has_columns ? "@[-,data]" : "@[data,-]", Priority::stored);
  }
  return list;
}

void simulate(benchmark::State& state, Layouts layouts) {
  Mesh mesh = parse_mesh(layouts.mesh);
  mesh::Cluster cluster{.flops = 550e12, .memory = 80'000'000'000, .axes = {{}, {2e-6, 370e9}}};
  std::vector<Constraint> constraints = constraints_of(layouts, mesh);
  mesh::Simulation made;
  for (auto _ : state) made = mesh::simulate(step(), mesh, constraints, cluster);
  auto tokens = static_cast<double>(kGpt.rows * kGpt.length);
  state.counters["ops"] = static_cast<double>(step().ops.size());
  state.counters["workers"] = static_cast<double>(made.workers);
  state.counters["plans"] = made.plans;
  state.counters["equal"] = made.are_equal;
  state.counters["groups"] = static_cast<double>(made.groups);
  state.counters["collectives"] = static_cast<double>(made.traffic.size());
  state.counters["sent_GB"] = 1e-9 * static_cast<double>(made.sent());
  state.counters["computing_s"] = made.computing;
  state.counters["communicating_s"] = made.communicating;
  state.counters["tokens_per_s"] = tokens / (made.computing + made.communicating);
  state.counters["state_GB"] = 1e-9 * static_cast<double>(made.state);
  state.counters["peak_GB"] = 1e-9 * static_cast<double>(made.peak);
  state.counters["least_GB"] = 1e-9 * static_cast<double>(made.least);
  state.counters["fits"] = made.fits;
}

}  // namespace

#define ROW(name, ...) \
  BENCHMARK_CAPTURE(simulate, name, __VA_ARGS__)->Iterations(1)->Unit(benchmark::kMillisecond)
ROW(data_1, Layouts{"data=1", false, false});
ROW(data_10000, Layouts{"data=10000", false, false});
ROW(data_10000_stored, Layouts{"data=10000", true, false});
ROW(data_1250_model_8, Layouts{"data=1250, model=8", false, true});
ROW(data_1250_model_8_stored, Layouts{"data=1250, model=8", true, true});
ROW(data_625_model_16_stored, Layouts{"data=625, model=16", true, true});
