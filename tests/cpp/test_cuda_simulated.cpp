// Kernels of the CUDA backend, simulated on the CPU, against the interpreter.
#include <cstdlib>
#include <random>

#include "every_operation.h"
#include "runtime/cpu_level.h"
#include "simulated_kernels.h"

using namespace tn;
using namespace tn::loop;

static bool can_simulate() { return best_cpu_level() >= CpuLevel::v3; }

TEST_CASE("cuda simulated: random kernels") {
  if (!can_simulate()) return;
  int runs = 100;
  if (const char* wanted = std::getenv("TENON_TEST_RUNS")) runs = std::atoi(wanted);
  for (int seed = 0; seed < runs; ++seed) {
    CAPTURE(seed);
    simulated_agrees(random_kernel(static_cast<uint32_t>(seed) + 9000), uint32_t(seed));
  }
}

TEST_CASE("cuda simulated: random kernels over symbols") {
  if (!can_simulate()) return;
  static constexpr int64_t kSizes[] = {1, 2, 3, 7, 15, 16, 17, 64, 100, 257};
  int runs = 40;
  if (const char* wanted = std::getenv("TENON_TEST_RUNS")) runs = std::atoi(wanted);
  std::vector<Dim> symbols{Dim::symbol("s0"), Dim::symbol("s1")};
  for (int seed = 0; seed < runs; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(static_cast<uint32_t>(seed));
    auto size = [&] { return kSizes[random() % std::size(kSizes)]; };
    Kernel kernel = random_kernel(static_cast<uint32_t>(seed) + 70000, symbols);
    Binding likely[] = {{symbols[0], size()}, {symbols[1], size()}};
    cuda::Schedule schedule = cuda::make_schedule({&kernel, KernelForm::whole, likely});
    cuda::SimulatedKernel code(schedule);
    for (int k = 0; k < 3; ++k) {
      Binding sizes[] = {{symbols[0], k == 0 ? 1 : size()}, {symbols[1], k == 1 ? 1 : size()}};
      int64_t elements = 0;
      for (const BufferParam& b : kernel.buffers) elements += evaluate(b.size, sizes);
      if (elements < 20000)
        compare_simulated(kernel, schedule, code, sizes, static_cast<uint32_t>(k));
    }
  }
}

TEST_CASE("cuda simulated: every operation of every type") {
  if (!can_simulate()) return;
  for (const OperationKernel& o : every_operation(133)) {
    CAPTURE(facts(o.op).name);
    CAPTURE(name_of(o.type));
    simulated_agrees(o.kernel, 3);
    if (!facts(o.op).math) simulated_agrees(o.kernel, 4, {}, 9);
  }
}

TEST_CASE("cuda simulated: every cast") {
  if (!can_simulate()) return;
  for (const OperationKernel& o : every_cast(300))
    simulated_agrees(o.kernel, 5, {}, o.type == DType::b1 ? 2 : 0);
}

static Kernel rows_kernel(int64_t rows, int64_t columns, const char* type, const char* monoid) {
  return parse_kernel(format(R"(kernel rows(x: {2}[{3}]) -> (y: {2}[{3}]) {{
  axes p0:{0} par, r1:{1} red
  v0 = load x[{1}*p0 + r1] : {2}
  v1 = reduce {4} v0 over r1 : {2}
  v2 = sub v0, v1 : {2}
  v3 = reduce add v2 over r1 : {2}
  v4 = mul v2, v3 : {2}
  store y[{1}*p0 + r1] = v4
}})",
                             rows, columns, type, rows * columns, monoid));
}

static Kernel sum_kernel(int64_t outer, int64_t extent, int64_t inner, const char* type,
                         const char* monoid, const char* result) {
  return parse_kernel(format(R"(kernel sums(x: {3}[{4}]) -> (y: {6}[{5}]) {{
  axes p0:{0} par, p1:{2} par, r2:{1} red
  v0 = load x[{7}*p0 + {2}*r2 + p1] : {3}
  v1 = reduce {8} v0 over r2 : {6}
  store y[{2}*p0 + p1] = v1
}})",
                             outer, extent, inner, type, outer * extent * inner, outer * inner,
                             result, extent * inner, monoid));
}

TEST_CASE("cuda simulated: rows of all lengths") {
  if (!can_simulate()) return;
  for (const char* monoid : {"add", "max"})
    for (int64_t columns : {1, 3, 8, 31, 32, 64, 65, 100, 256, 1000, 1024, 1028, 2051, 8192})
      for (const char* type : {"f32", "f64"}) {
        CAPTURE(columns);
        CAPTURE(type);
        simulated_agrees(rows_kernel(columns > 500 ? 2 : 19, columns, type, monoid));
      }
  simulated_agrees(rows_kernel(2, 16384, "f32", "min"));
  simulated_agrees(rows_kernel(1, 16388, "f32", "add"));
}

TEST_CASE("cuda simulated: transposes") {
  if (!can_simulate()) return;
  for (const char* type : {"f32", "f64", "i8", "bool"})
    for (auto [rows, columns] : {std::array<int64_t, 2>{64, 32}, {33, 70}, {100, 17}, {32, 32}}) {
      CAPTURE(rows);
      CAPTURE(columns);
      Kernel kernel = parse_kernel(format(
          R"(kernel turn(x: {2}[{3}], z: {2}[{3}], b: {2}[{0}]) -> (y: {2}[{3}]) {{
  axes p0:3 par, p1:{0} par, p2:{1} par
  v0 = load x[{4}*p0 + {0}*p2 + p1] : {2}
  v1 = load z[{4}*p0 + {1}*p1 + p2] : {2}
  v2 = load b[p1] : {2}
  v3 = eq v1, v2 : bool
  v4 = select v3, v1, v0 : {2}
  store y[{4}*p0 + {1}*p1 + p2] = v4
}})",
          rows, columns, type, 3 * rows * columns, rows * columns));
      CHECK(to_text(cuda::make_schedule({&kernel})).starts_with("tiles"));
      simulated_agrees(kernel, 3, {}, 2);
    }
}

// Of zeros, the sign depends on the order.
TEST_CASE("cuda simulated: the largest of zeros") {
  if (!can_simulate()) return;
  for (const char* monoid : {"max", "min"})
    for (int64_t columns : {5, 100, 1000, 3000, 8192})
      for (bool along : {true, false}) {
        CAPTURE(columns);
        int64_t rows = 24;
        simulated_agrees(parse_kernel(format(R"(kernel zeros(x: i32[{0}]) -> (y: f32[{1}]) {{
  axes p0:{1} par, r1:{2} red
  v0 = load x[{3}*p0 + {4}*r1] : i32
  v1 = constant 0 : i32
  v2 = eq v0, v1 : bool
  v3 = constant -0 : f32
  v4 = constant 0 : f32
  v5 = select v2, v3, v4 : f32
  v6 = reduce {5} v5 over r1 : f32
  store y[p0] = v6
}})",
                                             rows * columns, rows, columns, along ? columns : 1,
                                             along ? 1 : rows, monoid)),
                         uint32_t(columns), {}, 2);
      }
}

TEST_CASE("cuda simulated: sums along and across, chunks, positions") {
  if (!can_simulate()) return;
  for (auto [outer, extent, inner] : {std::array<int64_t, 3>{3, 40, 20},
                                      {1, 300, 36},
                                      {2, 7, 130},
                                      {1, 20000, 4},
                                      {1, 40000, 1},
                                      {3, 17000, 1},
                                      {1, 64, 1000},
                                      {5, 1, 9},
                                      {2, 33, 17}}) {
    CAPTURE(extent);
    CAPTURE(inner);
    simulated_agrees(sum_kernel(outer, extent, inner, "f32", "add", "f32"));
    simulated_agrees(sum_kernel(outer, extent, inner, "f32", "argmax", "i64"));
    simulated_agrees(sum_kernel(outer, extent, inner, "i32", "add", "i32"));
    simulated_agrees(sum_kernel(outer, extent, inner, "f64", "mul", "f64"));
  }
}
