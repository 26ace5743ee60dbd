// The interpreter kernel of GPUs, compiled for the host, against the interpreter of the CPU.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "backend/cuda/cuda_runtime.h"
#include "backend/cuda/interpreter/bytecode_program.h"
#include "backend/cuda/interpreter/interpreted_code.h"
#include "backend/cuda/mock/mock_driver.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/bytecode.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "base/half.h"
#include "base/interrupt.h"
#include "device_threads.h"
#include "eval/eval.h"
#include "every_operation.h"
#include "loop/builder.h"
#include "loop/interpreter.h"
#include "loop/interpreter_scalar.h"
#include "loop/math.h"
#include "random_kernel.h"
#include "runtime/device.h"
#include "runtime/later.h"
#include "runtime/scalar_bits.h"
#include "tenon/tenon.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#ifndef __clang__  // GCC 14 takes a vector that is written element by element for uninitialised
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
namespace device_interpreter {
#include "backend/cuda/prebuilt/interpreter_kernels.cu"
}
#pragma GCC diagnostic pop

using namespace tn;
using namespace tn::loop;

namespace {

void run(const cuda::Entry& entry, void* const* buffers, const Scalar* arguments, bool backwards) {
  device_interpreter::InterpreterParams params;
  REQUIRE(entry.params.size() == cuda::bytecode::kWords);
  for (size_t i = 0; i < entry.params.size(); ++i) {
    const cuda::Param& param = entry.params[i];
    uint64_t word = static_cast<uint64_t>(param.value);
    if (param.kind == cuda::Param::Kind::buffer)
      word = reinterpret_cast<uint64_t>(buffers[param.index]);
    if (param.kind == cuda::Param::Kind::scalar)
      std::memcpy(&word, element_bits(arguments[param.index], param.type).data(), 8);
    params.words[i] = word;
  }
  static DeviceThreads<device_interpreter::Turn> all(device_interpreter::turn);
  all.run(entry.blocks, entry.threads, backwards, [&] { device_interpreter::interpret(params); });
}

/// Whether it is interpreted; compares the bits then, for both orders of the threads.
bool interpreted_agrees(const Kernel& kernel, uint32_t seed = 1,
                        const std::vector<Scalar>& arguments = {}, int64_t below = 0) {
  std::optional<cuda::BytecodeProgram> program = cuda::bytecode_program(kernel);
  if (!program) return false;
  RandomBuffers expected(kernel, seed, below, {});
  loop::run(*prepare(kernel), expected.pointers.data(), arguments.data());
  for (bool backwards : {false, true}) {
    RandomBuffers got(kernel, seed, below, {});
    run(program->entry, got.pointers.data(), arguments.data(), backwards);
    std::string difference = first_difference(kernel, expected, got);
    INFO(to_text(kernel));
    CAPTURE(backwards);
    CHECK(difference == "");
    if (!difference.empty()) return true;
  }
  return true;
}

}  // namespace

TEST_CASE("cuda interpreter: every operation of every type") {
  int left = 0;
  for (const OperationKernel& o : every_operation(133)) {
    CAPTURE(facts(o.op).name);
    CAPTURE(info(o.type).text);
    bool taken = interpreted_agrees(o.kernel, 3);
    if (!facts(o.op).math) {
      CHECK(taken);
      interpreted_agrees(o.kernel, 4, {}, 9);
    }
    left += !taken;
  }
  CHECK(left == 6);  // sin, cos, tan and lgamma, most of them of f64, are too long when spelled out
}

TEST_CASE("cuda interpreter: remainders of numbers of all sizes") {
  constexpr float kNumbers[] = {1e-45F, 3e-45F, 1e-40F,  1.1754944e-38F, 2e-38F,
                                0.1F,   1,      3.1415F, 1e10F,          3.4028235e38F};
  auto same = [](auto got, auto wanted) { return std::memcmp(&got, &wanted, sizeof got) == 0; };
  for (float x : kNumbers)
    for (float y : kNumbers) {
      CAPTURE(x);
      CAPTURE(y);
      float got = device_interpreter::float_remainder<float, uint32_t, 23>(-x, y);
      CHECK(same(got, std::fmod(-x, y)));
      double wide = static_cast<double>(x) * 1e-270, divisor = static_cast<double>(y) * 1e-270;
      double remainder = device_interpreter::float_remainder<double, uint64_t, 52>(wide, divisor);
      CHECK(same(remainder, std::fmod(wide, divisor)));
    }
}

TEST_CASE("cuda interpreter: every cast") {
  for (const OperationKernel& o : every_cast(300)) {
    CAPTURE(to_text(o.kernel));
    CHECK(interpreted_agrees(o.kernel, 5, {}, o.type == DType::b1 ? 2 : 0));
  }
}

TEST_CASE("cuda interpreter: random kernels") {
  int runs = 400, taken = 0;
  if (const char* wanted = std::getenv("TENON_TEST_RUNS")) runs = std::atoi(wanted);
  for (int seed = 0; seed < runs; ++seed) {
    CAPTURE(seed);
    taken += interpreted_agrees(random_kernel(static_cast<uint32_t>(seed) + 9000), uint32_t(seed));
  }
  CHECK(taken > runs / 2);
}

TEST_CASE("cuda interpreter: rows of all lengths") {
  for (const char* monoid : {"add", "mul", "max", "min"})
    for (int64_t columns : {1, 3, 4, 5, 16, 17, 31, 64, 65, 100, 1000, 2051})
      for (const char* type : {"f32", "f64", "i8", "u16", "i64"}) {
        CAPTURE(columns);
        CAPTURE(type);
        CHECK(interpreted_agrees(rows_kernel(columns > 500 ? 2 : 19, columns, type, monoid)));
      }
  CHECK(interpreted_agrees(rows_kernel(1, 16384, "f32", "max")));
}

TEST_CASE("cuda interpreter: places of extremes, of equal elements too") {
  for (const char* monoid : {"argmax", "argmin"})
    for (const char* type : {"f32", "f64", "i8", "u32", "i64", "u64"})
      for (int64_t below : {0, 3})
        for (auto [rows, columns] : {std::array<int64_t, 2>{7, 5}, {5, 64}, {3, 200}}) {
          CAPTURE(type);
          CAPTURE(columns);
          CHECK(interpreted_agrees(
              parse_kernel(format(R"(kernel places(x: {0}[{1}]) -> (y: i64[{2}]) {{
  axes p0:{2} par, r1:{3} red
  v0 = load x[p0 + {2}*r1] : {0}
  v1 = reduce {4} v0 over r1 : i64
  store y[p0] = v1
}})",
                                  type, rows * columns, rows, columns, monoid)),
              uint32_t(columns), {}, below));
        }
}

TEST_CASE("cuda interpreter: numbers given at run time") {
  for (DType type :
       {DType::b1, DType::i8, DType::u16, DType::i32, DType::u64, DType::f32, DType::f64}) {
    Builder b("given");
    PolyId at = b.axis(b.add_axis(37));
    int x = b.add_buffer("x", type, 37), y = b.add_buffer("y", type, 37, true);
    S given = b.argument(b.add_argument(), type), loaded = b.load(x, at);
    b.store(y, at, b.binary(Op::max, given, loaded));
    CAPTURE(info(type).text);
    CHECK(interpreted_agrees(b.finish(), 2, {is_float(type) ? Scalar(-1.5) : Scalar(int64_t{1})}));
  }
}

TEST_CASE("cuda interpreter: what is compiled") {
  auto is_taken = [](const char* body, const char* axes) {
    return cuda::bytecode_program(
               parse_kernel(format("kernel k(x: f32[40000], i: i32[8]) -> (y: f32[40000]) {{\n  "
                                   "axes {}\n{}\n}}",
                                   axes, body)))
        .has_value();
  };
  const char* sum =
      "  v0 = load x[r0] : f32\n  v1 = reduce add v0 over r0 : f32\n  store y[0] = v1";
  CHECK(is_taken(sum, "r0:16384 red"));
  CHECK(!is_taken(sum, "r0:16385 red"));  // two chunks
  CHECK(!is_taken("  v0 = load x[s0] : f32\n  v1 = scan add v0 over s0 : f32\n  store y[s0] = v1",
                  "s0:8 scan"));
  CHECK(!is_taken("  v0 = load x[p0] : f32\n  store add y[p0] = v0", "p0:8 par"));
  CHECK(!is_taken("  v0 = load x[p0] : f32\n  store y[0] = v0", "p0:8 par"));  // points collide
}

namespace {

/// A mock of a GPU that has the interpreter, and a queue of jobs that no thread runs.
struct WithInterpreter {
  WithInterpreter() {
    cuda::replace_driver(&cuda::mock_driver());
    cuda::assembles_own = false;
    cuda::forget_gpus();
    cuda::mock().major = 9;
    cuda::mock().log.clear();
    add_device_kernel("interpret", device_interpreter::interpret, device_interpreter::turn,
                      backwards);
    clear_plans();
    jobs = 0;
    run_later = [](Callback<void()>, bool) { return ++jobs, true; };
  }
  ~WithInterpreter() {
    run_later = before;
    cuda::mock().major = 0;
    cuda::forget_gpus();
    cuda::assembles_own = true;
    cuda::replace_driver(nullptr);
    clear_plans();
  }
  static inline bool backwards = false;
  bool (*before)(Callback<void()>, bool) = run_later;
  static inline int jobs = 0;
};

std::string bytes_of(const Tensor& t) {
  eval({t});
  HostView view(bound_of(slot_of(t)));
  return {view.data<char>(), static_cast<size_t>(type_of(t)->bytes())};
}

}  // namespace

TEST_CASE("cuda interpreter: immediate evaluation waits for no compiler") {
  if (cuda::interpreter_ptx().empty()) return;
  WithInterpreter with;
  Device gpu("cuda");
  auto f = [](const Tensor& x) { return sum(exp(x) * 3.0 + tanh(x), Axes(1)) / 7.0; };
  for (int run = 1; run <= 12; ++run) {
    Tensor x = random::normal({6, 50}, 0, 1, float32, random::key(uint64_t(run)));
    std::string want = bytes_of(f(x));
    Tensor there = x.to(gpu);
    eval({there});
    cuda::mock().log.clear();
    CHECK(bytes_of(f(there).to(Device())) == want);
    CHECK(!cuda::mock().log.empty());
    for (const std::string& name : cuda::mock().log) CHECK(name == "interpret");
    CHECK((WithInterpreter::jobs > 0) == (run >= 10));  // it is to be compiled
  }
  CHECK(cuda::runs_until_compiled(1 << 20) == 2);
}

TEST_CASE("cuda interpreter: a kernel that could not be compiled is tried again later") {
  if (cuda::interpreter_ptx().empty()) return;
  WithInterpreter with;
  static int asked;
  static Callback<void()> job;
  asked = 0;
  run_later = [](Callback<void()> its, bool) {
    if (++asked == 1) throw std::bad_alloc();
    return job = std::move(its), true;
  };
  Tensor x = random::normal({6, 50}).to(Device("cuda"));
  eval({x});
  for (int run = 1; run <= 70; ++run) {
    eval({exp(x) * 3.0});  // what goes wrong does not fail it
    CHECK(asked == (run >= 10) + (run >= 30) + (run >= 70));
    if (run != 30) continue;
    std::atomic<bool> stopped = true;
    stop_wanted = &stopped;
    job();
    stop_wanted = nullptr;
  }
  job = nullptr;
}
