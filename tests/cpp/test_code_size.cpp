// Compilation stays cheap: caps on the code of single kernels, which its time is proportional to.
// bench/compile_time.cpp measures the time itself.
#include <doctest/doctest.h>

#include <algorithm>

#include "backend/cpu/codegen.h"
#include "compiler/compile.h"
#include "fuzz_graph.h"
#include "loop/builder.h"
#include "loop/step_source.h"

using namespace tn;

namespace {

constexpr int64_t kInstructionCap = 3000;

/// Instructions of LLVM IR, after passes; 0 where the interpreter runs it.
int64_t instructions_of(const loop::Kernel& kernel) {
  if (!cpu::why_interpreted({&kernel}).empty()) return 0;
  std::string text = cpu::ir_text({&kernel});
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size() - 1) + 1)
    count += text.compare(at, 2, "  ") == 0;
  return count;
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

TEST_CASE("no math function becomes much code") {
  int64_t most = 0;
  for (int i = 0; i < loop::kOps; ++i) {
    loop::Op op = static_cast<loop::Op>(i);
    if (!loop::facts(op).math) continue;
    for (DType type : {DType::f32, DType::f64}) {
      CAPTURE(loop::facts(op).name);
      CAPTURE(name_of(type));
      int64_t count = instructions_of(kernel_of(op, type));
      CHECK(count < kInstructionCap);
      most = std::max(most, count);
    }
  }
  CHECK(most > 100);  // they are counted
  MESSAGE("at most " << most << " instructions");
}

TEST_CASE("no kernel of a graph becomes much code") {
  int64_t most = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    CompileReport report;
    auto plan = compile(fuzz_graph(seed), {.effort = Effort::e2, .off = {"bundle"}}, &report);
    for (const Step& step : plan->steps)
      if (step.source->kernel && !step.source->op) {
        INFO(to_text(*step.source->kernel));
        int64_t count = instructions_of(*step.source->kernel);
        CHECK(count < kInstructionCap);
        most = std::max(most, count);
      }
  }
  MESSAGE("at most " << most << " instructions");
}
