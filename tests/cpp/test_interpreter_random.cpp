// Random kernels: the interpreter agrees with the definition, whatever the orientation, the number
// of threads and the CPU level.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backend/cpu/block_op_levels.h"
#include "interpreter_reference.h"
#include "loop/builder.h"
#include "loop/interpreter.h"
#include "random_kernel.h"
#include "runtime/threads.h"

using namespace tn;
using namespace tn::loop;

TEST_CASE("random kernels give what the definition says") {
  int runs = 400;
  if (const char* wanted = std::getenv("TENON_TEST_RUNS")) runs = std::atoi(wanted);
  int threads = num_threads();
  for (int seed = 0; seed < runs; ++seed) {
    Kernel kernel = random_kernel(static_cast<uint32_t>(seed));
    CAPTURE(seed);
    CAPTURE(to_text(kernel));
    CHECK(to_text(parse_kernel(to_text(kernel))) == to_text(kernel));
    uint32_t data = static_cast<uint32_t>(seed) + 77;
    RandomBuffers expected(kernel, data);
    run_reference(kernel, expected.pointers.data());
    for (int level = 0; level <= static_cast<int>(best_cpu_level()); ++level)
      for (Orientation orientation :
           {Orientation::by_strides, Orientation::rows, Orientation::columns}) {
        PrepareOptions options{.ops = &cpu::block_ops(static_cast<CpuLevel>(level)),
                               .orientation = orientation};
        auto program = prepare(kernel, {}, options);
        CAPTURE(level);
        CAPTURE(static_cast<int>(orientation));
        CAPTURE(to_text(*program));
        set_num_threads(1 + (seed + level) % 4);
        RandomBuffers actual(kernel, data);
        run(*program, actual.pointers.data());
        CHECK(first_difference(kernel, expected, actual) == "");
      }
    RandomBuffers whole(kernel, data);
    run(*prepare(kernel, {}, {.whole_values = true}), whole.pointers.data());
    CHECK(first_difference(kernel, expected, whole) == "");
  }
  set_num_threads(threads);
}

TEST_CASE("the bits of long reductions depend on the extent alone") {
  int threads = num_threads();
  for (int64_t extent : {63, 64, 65, 1000, 1024, 1025, 16384, 16385, 70000, 1200001})
    for (int64_t points : {1, 3}) {
      std::vector<float> x(static_cast<size_t>(points * extent)), expected, actual;
      std::mt19937 random(static_cast<uint32_t>(extent));
      for (float& v : x) v = static_cast<float>(random() % 1000000) * 1e-5f - 3;
      std::vector<float> turned(x.size());
      for (int64_t p = 0; p < points; ++p)
        for (int64_t r = 0; r < extent; ++r)
          turned[static_cast<size_t>(r * points + p)] = x[static_cast<size_t>(p * extent + r)];
      for (bool transposed : {false, true})
        for (Orientation orientation : {Orientation::rows, Orientation::columns})
          for (int count : {1, 2, 4})
            for (int level = 0; level <= static_cast<int>(best_cpu_level()); ++level) {
              Builder b("sum");
              int p = b.add_axis(points), r = b.add_axis(extent, AxisKind::red);
              int in = b.add_buffer("x", DType::f32, points * extent);
              int out = b.add_buffer("y", DType::f32, 3 * points, true);
              PolyTable& t = b.polys();
              PolyId index = transposed ? t.add(t.scale(b.axis(r), points), b.axis(p))
                                        : t.add(t.scale(b.axis(p), extent), b.axis(r));
              S v = b.load(in, index);
              S sum = b.reduce(Monoid::add, v, 2);
              S spread = b.reduce(Monoid::add, (v - sum) * (v - sum), 2);
              b.store(out, b.axis(p), sum);
              b.store(out, t.add_constant(b.axis(p), points), spread);
              S where = b.reduce(Monoid::argmax, v, 2);
              b.store(out, t.add_constant(b.axis(p), 2 * points), sc::cast(where, DType::f32));
              auto program = prepare(b.finish(), {},
                                     {.ops = &cpu::block_ops(static_cast<CpuLevel>(level)),
                                      .orientation = orientation});
              set_num_threads(count);
              actual.assign(static_cast<size_t>(3 * points), 0);
              void* buffers[] = {transposed ? turned.data() : x.data(), actual.data()};
              run(*program, buffers);
              if (expected.empty()) expected = actual;
              CAPTURE(extent);
              CHECK(std::memcmp(expected.data(), actual.data(), actual.size() * 4) == 0);
            }
    }
  set_num_threads(threads);
}

TEST_CASE("columns read in place reduce as rows do") {
  for (int64_t points : {300, 1500})
    for (int64_t extent : {1, 2, 5, 16, 63, 64, 65, 200})
      for (int64_t apart : {1, 2}) {  // neighbouring columns, or every second
        std::vector<float> expected;
        std::vector<float> x(static_cast<size_t>(points * extent * apart));
        std::mt19937 random(static_cast<uint32_t>(extent));
        for (float& v : x) v = static_cast<float>(random() % 100000) * 1e-3f - 30;
        for (Orientation orientation : {Orientation::rows, Orientation::columns}) {
          Builder b("columns");
          int p = b.add_axis(points), r = b.add_axis(extent, AxisKind::red);
          int in = b.add_buffer("x", DType::f32, points * extent * apart);
          int out = b.add_buffer("y", DType::f32, 3 * points, true);
          PolyTable& t = b.polys();
          PolyId index = t.add(t.scale(b.axis(r), points * apart), t.scale(b.axis(p), apart));
          S v = b.load(in, index);
          S where = b.reduce(Monoid::argmin, v, 2);
          b.store(out, b.axis(p), b.reduce(Monoid::add, v, 2));
          b.store(out, t.add_constant(b.axis(p), points), b.reduce(Monoid::max, v, 2) * 2.0);
          b.store(out, t.add_constant(b.axis(p), 2 * points), sc::cast(where, DType::f32));
          std::vector<float> actual(static_cast<size_t>(3 * points));
          void* buffers[] = {x.data(), actual.data()};
          run(*prepare(b.finish(), {}, {.orientation = orientation}), buffers);
          if (expected.empty()) expected = actual;
          CAPTURE(extent);
          CHECK(std::memcmp(expected.data(), actual.data(), actual.size() * 4) == 0);
        }
      }
}
