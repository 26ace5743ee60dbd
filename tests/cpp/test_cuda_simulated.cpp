// Kernels of the CUDA backend, simulated on the CPU, against the interpreter.
#include <cstdlib>
#include <random>

#include "backend/cpu/cpu_level.h"
#include "every_operation.h"
#include "loop/sharing.h"
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

/// With the memory of an operand for each result that may take it. Returns how many may.
static int overlaid_agrees(const Kernel& kernel, uint32_t seed) {
  using Order = cuda::SimulatedKernel::Order;
  cuda::Schedule schedule = cuda::make_schedule({&kernel});
  cuda::SimulatedKernel code(schedule);
  Sharing sharing(kernel);
  RandomBuffers expected(kernel, seed);
  loop::run(*prepare(kernel), expected.pointers.data(), nullptr);
  int pairs = 0;
  for (size_t out = 0; out < kernel.buffers.size(); ++out)
    for (size_t in = 0; in < kernel.buffers.size(); ++in) {
      if (!kernel.buffers[out].written || !sharing.allows(int(in), int(out)) ||
          expected.data[in].size() < expected.data[out].size())
        continue;
      ++pairs;
      for (Order order : {Order::forward, Order::backward}) {
        RandomBuffers got(kernel, seed);
        std::vector<int64_t> bytes;
        for (const auto& data : got.data) bytes.push_back(static_cast<int64_t>(data.size()));
        std::vector<void*> pointers = got.pointers;
        pointers[out] = pointers[in];
        std::string fault = code.run({}, pointers.data(), bytes, nullptr, order, false);
        std::memcpy(got.pointers[out], got.pointers[in], got.data[out].size());
        std::memcpy(got.pointers[in], expected.pointers[in], got.data[in].size());
        INFO(to_text(kernel));
        INFO(to_text(schedule));
        CHECK(fault == "");
        CHECK(first_difference(kernel, expected, got) == "");
      }
    }
  return pairs;
}

TEST_CASE("cuda simulated: results in the place of operands") {
  if (!can_simulate()) return;
  int pairs = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) pairs += overlaid_agrees(random_kernel(seed), seed);
  CHECK(pairs > 10);
  // Every thread of a row loads x[p0] for its elements of z; one of them stores y[p0] there.
  for (auto [rows, columns, by_row, by_column] :
       {std::array<int64_t, 4>{3, 2048, 2048, 1}, {3, 512, 512, 1}, {64, 40, 1, 64}}) {
    Kernel kernel =
        parse_kernel(format(R"(kernel k(x: f32[{0}], a: f32[{4}]) -> (y: f32[{0}], z: f32[{4}]) {{
  axes p0:{0} par, r1:{1} red
  v0 = load a[{2}*p0 + {3}*r1] : f32
  v1 = reduce add v0 over r1 : f32
  v2 = load x[p0] : f32
  v3 = add v0, v1 : f32
  v4 = mul v3, v2 : f32
  store y[p0] = v1
  store z[{2}*p0 + {3}*r1] = v4
}})",
                            rows, columns, by_row, by_column, rows * columns));
    CHECK(overlaid_agrees(kernel, 7) >= 2);
  }
  // Cut into several parts: the one that stores y[p0] comes behind the one that loads x[p0] for z.
  CHECK(
      overlaid_agrees(parse_kernel(R"(kernel k(x: f32[4], a: f32[288]) -> (y: f32[4], z: f32[32]) {
  axes p0:4 par, r1:8 red, r2:9 red
  v0 = load a[72*p0 + 9*r1 + r2] : f32
  v1 = reduce add v0 over r2 : f32
  v2 = reduce add v1 over r1 : f32
  v3 = load x[p0] : f32
  v4 = add v1, v3 : f32
  store y[p0] = v2
  store z[8*p0 + r1] = v4
})"),
                      7) >= 1);
}

// Through the cache of what no kernel writes, a load would not see what the kernel writes there.
TEST_CASE("cuda simulated: loads of what a result may overwrite see stores") {
  auto ptx = [](const char* extent) {
    Kernel kernel = parse_kernel(format(R"(kernel k(x: f32[64]) -> (y: f32[64]) {{
  axes p0:64 par
  v0 = load x[{}] : f32
  v1 = exp v0 : f32
  store y[p0] = v1
}})",
                                        extent));
    return cuda::generate(cuda::make_schedule({&kernel}), 90).ptx;
  };
  CHECK(ptx("p0").find("ld.global.nc") == std::string::npos);
  CHECK(ptx("63 - p0").find("ld.global.nc") != std::string::npos);
}

// Only of numbers that are known to be far from 0 and from infinity.
TEST_CASE("cuda simulated: reciprocals without a branch") {
  auto has_branch = [](const char* divisor) {
    Kernel kernel = parse_kernel(format(R"(kernel k(x: f32[64]) -> (y: f32[64]) {{
  axes p0:64 par
  v0 = load x[p0] : f32
  v1 = constant 10 : f32
  v2 = abs v0 : f32
  v3 = lt v2, v1 : bool
  v4 = select v3, v2, v1 : f32
  v5 = constant 3 : f32
  v6 = add v4, v5 : f32
  v7 = constant 1 : f32
  v8 = div v7, {} : f32
  store y[p0] = v8
}})",
                                        divisor));
    return cuda::generate(cuda::make_schedule({&kernel}), 90).ptx.find("rcp.approx") ==
           std::string::npos;
  };
  CHECK(!has_branch("v6"));
  CHECK(has_branch("v4"));  // it may be 0
  CHECK(has_branch("v0"));
}

// The quotient is rounded once, whatever the sizes of the element and of the sum.
TEST_CASE("cuda simulated: shares of the sum of a row") {
  if (!can_simulate()) return;
  for (const char* factor : {"1", "20", "100"})  // larger: more elements are tiny or 0
    for (const char* shift : {"v2", "v3"})       // of v3, sums are from tiny to infinite
      for (int64_t columns : {512, 8192}) {
        CAPTURE(factor);
        CAPTURE(columns);
        simulated_agrees(parse_kernel(format(R"(kernel shares(x: f32[{0}]) -> (y: f32[{0}]) {{
  axes p0:6 par, r1:{1} red
  v0 = load x[{1}*p0 + r1] : f32
  v1 = constant {2} : f32
  v2 = mul v0, v1 : f32
  v3 = constant 0 : f32
  v4 = reduce max {3} over r1 : f32
  v5 = sub v2, v4 : f32
  v6 = exp v5 : f32
  v7 = reduce add v6 over r1 : f32
  v8 = div v6, v7 : f32
  store y[{1}*p0 + r1] = v8
}})",
                                             6 * columns, columns, factor, shift)),
                         uint32_t(columns), {}, 2);
      }
}

// Of a sum that shares are made of without a division, and of one that divides them.
TEST_CASE("cuda simulated: shares that are zeros, tiny, infinite or NaN") {
  if (!can_simulate()) return;
  for (const char* other : {"0", "-0", "9e-30", "1e-40", "inf", "nan", "-2", "3e+38"})
    for (const char* usual : {"3", "0.0001", "1e+09"})
      for (int64_t columns : {512, 8192}) {
        CAPTURE(other);
        CAPTURE(usual);
        CAPTURE(columns);
        simulated_agrees(parse_kernel(format(R"(kernel shares(x: i32[{0}]) -> (y: f32[{0}]) {{
  axes p0:2 par, r1:{1} red
  v0 = load x[{1}*p0 + r1] : i32
  v1 = constant 0 : i32
  v2 = eq v0, v1 : bool
  v3 = constant {2} : f32
  v4 = constant {3} : f32
  v5 = select v2, v3, v4 : f32
  v6 = reduce add v5 over r1 : f32
  v7 = div v5, v6 : f32
  store y[{1}*p0 + r1] = v7
}})",
                                             2 * columns, columns, other, usual)),
                         uint32_t(columns), {}, 3);
      }
}

static std::string layer_norm(int64_t columns, const char* type, const char* weights) {
  auto widened = [](std::string_view of) { return of == "f32" ? "abs" : "cast"; };
  return format(R"(kernel layernorm(x: {2}[{0}], w: {3}[{1}], b: {3}[{1}]) -> (y: f32[{0}]) {{
  axes p0:3 par, r1:{1} red
  v0 = load x[{1}*p0 + r1] : {2}
  v1 = {4} v0 : f32
  v2 = reduce add v1 over r1 : f32
  v3 = constant 0.001 : f32
  v4 = mul v2, v3 : f32
  v5 = sub v1, v4 : f32
  v6 = mul v5, v5 : f32
  v7 = reduce add v6 over r1 : f32
  v8 = add v7, v3 : f32
  v9 = rsqrt v8 : f32
  v10 = mul v5, v9 : f32
  v11 = load w[r1] : {3}
  v12 = {5} v11 : f32
  v13 = mul v10, v12 : f32
  v14 = load b[{1} - r1 - 1] : {3}
  v15 = {5} v14 : f32
  v16 = add v13, v15 : f32
  store y[{1}*p0 + r1] = v16
}})",
                3 * columns, columns, type, weights, widened(type), widened(weights));
}

// Rows of 8192 have half as many blocks of twice the threads as those without weights.
TEST_CASE("cuda simulated: rows with weights") {
  if (!can_simulate()) return;
  for (const char* weights : {"f32", "bf16"})
    for (const char* type : {"f32", "bf16"})
      for (int64_t columns : {300, 1030, 2048, 5000, 8192, 16384}) {
        CAPTURE(columns);
        simulated_agrees(parse_kernel(layer_norm(columns, type, weights)), uint32_t(columns));
      }
}

// Two vectors of a thread: the second lies a constant behind the first.
TEST_CASE("cuda simulated: several vectors of a thread") {
  if (!can_simulate()) return;
  for (const char* type : {"f32", "i16", "i8", "f64"})
    for (const char* from : {"p0", "4095 - p0", "2*p0 + 3", "p0%7", "p0//3"}) {
      CAPTURE(type);
      CAPTURE(from);
      Kernel kernel = parse_kernel(format(
          R"(kernel k(x: {0}[4096], z: {0}[8200]) -> (y: {0}[4096], w: {0}[8192]) {{
  axes p0:4096 par
  v0 = load x[p0] : {0}
  v1 = load z[{1}] : {0}
  v2 = add v0, v1 : {0}
  store y[p0] = v2
  store w[2*p0] = v1
}})",
          type, from));
      cuda::Schedule schedule = cuda::make_schedule({&kernel});
      cuda::Part& part = schedule.parts[0];
      part.unroll = 2;
      part.blocks = 4096 / (2 * part.threads * part.vector);
      compare_simulated(kernel, schedule, cuda::SimulatedKernel(schedule), {}, 6);
    }
}
