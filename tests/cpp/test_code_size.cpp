// Compilation stays cheap: caps on the code of single kernels, which its time is proportional to.
// bench/compile_time.cpp measures the time itself.
#include <doctest/doctest.h>

#include <algorithm>

#include "backend/cpu/codegen/codegen.h"
#include "compiler/compile_graph.h"
#include "every_operation.h"
#include "fuzz_graph.h"

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

}  // namespace

TEST_CASE("no math function becomes much code") {
  int64_t most = 0;
  for (const auto& [op, type, kernel] : loop::every_operation(1000)) {
    if (!loop::facts(op).math) continue;
    CAPTURE(loop::facts(op).name);
    CAPTURE(name_of(type));
    int64_t count = instructions_of(kernel);
    CHECK(count < kInstructionCap);
    most = std::max(most, count);
  }
  CHECK(most > 100);  // they are counted
  MESSAGE("at most " << most << " instructions");
}

TEST_CASE("no kernel of a graph becomes much code") {
  int64_t most = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    auto plan = compile(fuzz_graph(seed), {.effort = Effort::e2, .off = {"bundle"}});
    for (const Step& step : plan->steps)
      if (auto* call = std::get_if<KernelStep>(&step.what)) {
        INFO(to_text(*call->kernel));
        int64_t count = instructions_of(*call->kernel);
        CHECK(count < kInstructionCap);
        most = std::max(most, count);
      }
  }
  MESSAGE("at most " << most << " instructions");
}
