// Compilation stays cheap: caps on single kernels and on whole graphs, in processor time.
#include <doctest/doctest.h>

#include <ctime>

#include "backend/cpu/codegen.h"
#include "compiler/compile.h"
#include "fuzz_graph.h"
#include "loop/builder.h"
#include "loop/step_source.h"

using namespace tn;

namespace {

constexpr double kKernelCap = 0.050, kGraphCap = 10;  // seconds

template <class F>
double processor_seconds(F&& f) {
  std::clock_t before = std::clock();
  f();
  return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
}

double seconds_for(const loop::Kernel& kernel) {
  cpu::KernelRequest request{&kernel};
  return processor_seconds([&] { cpu::compile_kernels({&request, 1}); });
}

loop::Kernel kernel_of(loop::Op op, DType type) {
  constexpr int64_t n = 1000;
  loop::Builder b("f");
  int axis = b.add_axis(n), in = b.add_buffer("x", type, n), other = b.add_buffer("z", type, n);
  int out = b.add_buffer("y", type, n, true);
  loop::S x = b.load(in, b.axis(axis)), z = b.load(other, b.axis(axis));
  b.store(out, b.axis(axis), loop::facts(op).operands == 1 ? b.unary(op, x) : b.binary(op, x, z));
  return b.finish();
}

}  // namespace

TEST_CASE("no math function takes long to compile") {
  cpu::clear_kernel_cache();
  seconds_for(kernel_of(loop::Op::add, DType::f32));  // the first one also starts the compiler
  for (int i = 0; i < loop::kOps; ++i) {
    loop::Op op = static_cast<loop::Op>(i);
    if (!loop::facts(op).math) continue;
    for (DType type : {DType::f32, DType::f64}) {
      CAPTURE(loop::facts(op).name);
      CAPTURE(name_of(type));
      CHECK(seconds_for(kernel_of(op, type)) < kKernelCap);
    }
  }
}

TEST_CASE("no graph takes long to compile, nor any of its kernels") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Graph graph = fuzz_graph(seed);
    cpu::clear_kernel_cache();
    CompileReport report;
    std::shared_ptr<const Plan> plan;
    double whole = processor_seconds(
        [&] { plan = compile(graph, {.effort = Effort::e2, .off = {"bundle"}}, &report); });
    CHECK(whole < kGraphCap);
    cpu::clear_kernel_cache();
    for (const Step& step : plan->steps)
      if (step.source->kernel && !step.source->op) {
        INFO(to_text(*step.source->kernel));
        CHECK(seconds_for(*step.source->kernel) < kKernelCap);
      }
  }
}
