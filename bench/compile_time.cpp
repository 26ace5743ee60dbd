// What compiling costs in processor time: single kernels, whole graphs, the passes on a long chain.
#include <algorithm>
#include <cstdlib>

#include "backend/cpu/codegen/codegen.h"
#include "compiler/compile_graph.h"
#include "compiler/evaluate.h"
#include "every_operation.h"
#include "fuzz_graph.h"
#include "goal.h"
#include "passes/pipeline.h"

namespace tn::bench {

constexpr double kKernelGoal = 50e6, kGraphGoal = 10e9, kChainGoal = 2e9;  // nanoseconds

// Kernels are compiled, not found on disk.
[[maybe_unused]] static const int no_disk_cache = setenv("TENON_CACHE", "0", 1);

/// Of all threads of the process, as kernels are compiled by several.
template <class F>
static double process_nanoseconds(F&& f) {
  std::clock_t before = std::clock();
  f();
  return static_cast<double>(std::clock() - before) * (1e9 / CLOCKS_PER_SEC);
}

static double nanoseconds_for(const loop::Kernel& kernel) {
  KernelRequest request{&kernel};
  return process_nanoseconds([&] { cpu::compile_kernels({&request, 1}); });
}

static void report_worst(benchmark::State& state, double worst, double goal) {
  state.counters["worst_ns"] = worst;
  state.counters["goal_ns"] = goal;
  state.SetLabel(worst <= goal ? "goal met" : "GOAL MISSED");
}

static void kernels_of_math_functions(benchmark::State& state) {
  double worst = 0;
  std::vector<loop::OperationKernel> kernels = loop::every_operation(1000);
  nanoseconds_for(kernels[0].kernel);  // the first one also starts the compiler
  for (auto _ : state) {
    cpu::clear_kernel_cache();
    for (const loop::OperationKernel& k : kernels)
      if (loop::facts(k.op).math) worst = std::max(worst, nanoseconds_for(k.kernel));
  }
  report_worst(state, worst, kKernelGoal);
}
BENCHMARK(kernels_of_math_functions)->Name("compile_a_math_function/goal")->Iterations(1);

static void random_graphs(benchmark::State& state) {
  double worst = 0, worst_kernel = 0;
  for (auto _ : state)
    for (uint64_t seed = 0; seed < 60; ++seed) {
      Graph graph = fuzz_graph(seed);
      CompileOptions options{.effort = Effort::e2, .off = {"bundle"}};
      cpu::clear_kernel_cache();
      std::shared_ptr<const Plan> plan;
      worst = std::max(worst, process_nanoseconds([&] { plan = compile(graph, options); }));
      cpu::clear_kernel_cache();
      for (const Step& step : plan->steps)
        if (auto* call = std::get_if<KernelStep>(&step.what))
          worst_kernel = std::max(worst_kernel, nanoseconds_for(*call->kernel));
    }
  bool kernels = state.range(0) != 0;
  report_worst(state, kernels ? worst_kernel : worst, kernels ? kKernelGoal : kGraphGoal);
}
BENCHMARK(random_graphs)->Name("compile_a_random_graph/goal")->Arg(0)->Iterations(1);
BENCHMARK(random_graphs)->Name("compile_a_kernel_of_random_graphs/goal")->Arg(1)->Iterations(1);

static void passes_on_a_chain(benchmark::State& state) {
  Graph graph;
  TypeRef type = intern(DType::f32, {4});
  Val x = graph.add_input("x", type);
  const OpDef* ops[] = {find_op("negative"), find_op("exp"), find_op("stop_gradient")};
  for (int i = 0; i < 100'000; ++i) x = graph.add(*ops[i % 3], nullptr, std::vector{x}, {&type, 1});
  graph.outputs = {x};
  measure(state, kChainGoal, [&] {
    PassContext context{.evaluate = evaluate};
    benchmark::DoNotOptimize(run_passes(graph, context, pipeline(3)));
  });
}
BENCHMARK(passes_on_a_chain)->Name("passes_on_100000_ops/goal")->Iterations(1);

}  // namespace tn::bench
