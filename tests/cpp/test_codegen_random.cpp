// Generated code against the interpreter: random kernels, every operation, every cast.
#include <cstdlib>
#include <random>

#include "every_operation.h"
#include "native_kernels.h"
#include "runtime/threads.h"

using namespace tn;
using namespace tn::loop;

TEST_CASE("native: random kernels") {
  int runs = 150, native = 0, wanted_native = 0;
  if (const char* wanted = std::getenv("TENON_TEST_RUNS")) runs = std::atoi(wanted);
  int threads = num_threads();
  std::vector<cpu::CodeTarget> targets = native_targets();
  for (int seed = 0; seed < runs; ++seed) {
    CAPTURE(seed);
    Kernel kernel = random_kernel(static_cast<uint32_t>(seed) + 9000);
    set_num_threads(1 + seed % 2);
    const cpu::CodeTarget& target = targets[static_cast<size_t>(seed) % targets.size()];
    native += agrees(kernel, target, static_cast<uint32_t>(seed));
    ++wanted_native;
  }
  CHECK(native > wanted_native * 2 / 3);
  set_num_threads(threads);
}

TEST_CASE("native: random kernels over symbols, one code for all sizes") {
  static constexpr int64_t kSizes[] = {1, 2, 3, 7, 15, 16, 17, 64, 100, 257};
  int runs = 100, native = 0;
  if (const char* wanted = std::getenv("TENON_TEST_RUNS")) runs = std::atoi(wanted);
  std::vector<cpu::CodeTarget> targets = native_targets();
  std::vector<Dim> symbols{Dim::symbol("s0"), Dim::symbol("s1")};
  for (int seed = 0; seed < runs; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(static_cast<uint32_t>(seed));
    auto size = [&] { return kSizes[random() % std::size(kSizes)]; };
    Kernel kernel = random_kernel(static_cast<uint32_t>(seed) + 70000, symbols);
    Binding likely[] = {{symbols[0], size()}, {symbols[1], size()}};
    KernelRequest request{&kernel, KernelForm::whole, likely};
    const cpu::CodeTarget& target = targets[static_cast<size_t>(seed) % targets.size()];
    auto code = cpu::compile_kernels({&request, 1}, target)[0];
    if (!code) continue;
    ++native;
    for (int k = 0; k < 6; ++k) {
      Binding sizes[] = {{symbols[0], k == 0 ? 1 : size()}, {symbols[1], k == 1 ? 1 : size()}};
      int64_t elements = 0;
      for (const BufferParam& b : kernel.buffers) elements += evaluate(b.size, sizes);
      if (elements < 1000000) compare(kernel, *code, sizes, static_cast<uint32_t>(k));
    }
  }
  CHECK(native > runs / 2);
}

TEST_CASE("native: every operation of every type") {
  std::vector<OperationKernel> all = every_operation(333);
  for (const cpu::CodeTarget& target : native_targets())
    for (const OperationKernel& o : all) {
      bool math = facts(o.op).math;
      bool angle = o.op == Op::sin || o.op == Op::cos || o.op == Op::tan;
      if (angle || (o.op == Op::rem && is_float(o.type))) continue;  // the interpreter's
      if (math && target.vector_bits == 128) continue;
      CAPTURE(facts(o.op).name);
      CAPTURE(name_of(o.type));
      bool native = agrees(o.kernel, target, 3) && (math || agrees(o.kernel, target, 4, {}, 9));
      CHECK((native || target.level == CpuLevel::v2));
    }
}

TEST_CASE("native: every cast") {
  std::vector<OperationKernel> all = every_cast(700);
  for (const cpu::CodeTarget& target : native_targets())
    for (const OperationKernel& o : all) {
      INFO(to_text(o.kernel));
      CHECK(agrees(o.kernel, target, 5, {}, o.type == DType::b1 ? 2 : 0));
    }
}
