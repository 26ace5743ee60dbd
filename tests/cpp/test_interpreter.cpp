// The interpreter case by case: what a random kernel would meet too rarely.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "loop/builder.h"
#include "loop/interpreter.h"

using namespace tn;
using namespace tn::loop;

namespace {

const float kInf = std::numeric_limits<float>::infinity();

template <class In, class Out>
std::vector<Out> map(DType from, DType to, std::vector<In> x, S (*f)(S)) {
  Builder b("map");
  int64_t n = static_cast<int64_t>(x.size());
  int axis = b.add_axis(n), in = b.add_buffer("x", from, n), out = b.add_buffer("y", to, n, true);
  b.store(out, b.axis(axis), f(b.load(in, b.axis(axis))));
  std::vector<Out> y(x.size());
  void* buffers[] = {x.data(), y.data()};
  run(*prepare(b.finish()), buffers);
  return y;
}

}  // namespace

TEST_CASE("floats become integers by saturating, and NaN becomes 0") {
  std::vector<float> x = {1.9f, -1.9f, 300, -300, kInf, -kInf, NAN, 3e9f, 1e30f};
  using I8 = std::vector<int8_t>;
  CHECK(map<float, int8_t>(DType::f32, DType::i8, x, [](S s) { return sc::cast(s, DType::i8); }) ==
        I8{1, -1, 127, -128, 127, -128, 0, 127, 127});
  using U8 = std::vector<uint8_t>;
  CHECK(map<float, uint8_t>(DType::f32, DType::u8, x, [](S s) { return sc::cast(s, DType::u8); }) ==
        U8{1, 0, 255, 0, 255, 0, 0, 255, 255});
  auto i64 =
      map<float, int64_t>(DType::f32, DType::i64, x, [](S s) { return sc::cast(s, DType::i64); });
  CHECK(i64[4] == INT64_MAX);
  CHECK(i64[5] == INT64_MIN);
  CHECK(i64[7] == 3000000000);
  auto u64 = map<double, uint64_t>(DType::f64, DType::u64, {1.8e19, 1e30, -1, NAN},
                                   [](S s) { return sc::cast(s, DType::u64); });
  CHECK(u64 == std::vector<uint64_t>{18000000000000000000u, UINT64_MAX, 0, 0});
  auto u32 = map<double, uint32_t>(DType::f64, DType::u32, {4e9, 1e30, -0.5, 4294967295.5},
                                   [](S s) { return sc::cast(s, DType::u32); });
  CHECK(u32 == std::vector<uint32_t>{4000000000u, UINT32_MAX, 0, UINT32_MAX});
}

TEST_CASE("integer division is total") {
  auto divide = [](S s) { return s / constant_like(s, 0); };
  CHECK(map<int32_t, int32_t>(DType::i32, DType::i32, {7, -7}, divide) ==
        std::vector<int32_t>{0, 0});
  auto negate = [](S s) { return s / constant_like(s, -1); };
  CHECK(map<int32_t, int32_t>(DType::i32, DType::i32, {INT32_MIN, 7}, negate) ==
        std::vector<int32_t>{INT32_MIN, -7});
  auto shift = [](S s) { return s >> constant_like(s, 40); };
  CHECK(map<int32_t, int32_t>(DType::i32, DType::i32, {-5, 5}, shift) ==
        std::vector<int32_t>{-1, 0});
}

TEST_CASE("narrow floats pass through casts") {
  auto round = [](S s) { return sc::cast(sc::cast(s, DType::bf16), DType::f32); };
  auto y = map<float, float>(DType::f32, DType::f32, {1.0f, 1.00390625f, 1.01171875f, kInf}, round);
  CHECK(y == std::vector<float>{1.0f, 1.0f, 1.015625f, kInf});
  auto half = [](S s) { return sc::cast(sc::cast(s, DType::f16), DType::i32); };
  CHECK(map<int32_t, int32_t>(DType::i32, DType::i32, {2049, 70000, -3}, half) ==
        std::vector<int32_t>{2048, INT32_MAX, -3});
}

TEST_CASE("nothing is read where the mask does not hold") {
  Builder b("pad");
  int axis = b.add_axis(5000), in = b.add_buffer("x", DType::f32, 3);
  int out = b.add_buffer("y", DType::f32, 5000, true);
  PolyTable& t = b.polys();
  PolyId moved = t.add_constant(b.axis(axis), -2000);
  PolyId conditions[] = {moved, t.sub(t.constant(2), moved)};
  b.store(out, b.axis(axis), b.load(in, moved, b.mask(conditions)));
  std::vector<float> x = {1, 2, 3}, y(5000, -1);
  void* buffers[] = {x.data(), y.data()};
  run(*prepare(b.finish()), buffers);  // far outside of x otherwise
  CHECK(std::accumulate(y.begin(), y.end(), 0.0f) == 6);
  CHECK(y[2001] == 2);
}

TEST_CASE("colliding scatters run in order") {
  for (Combine combine : {Combine::set, Combine::add}) {
    Builder b("scatter");
    int axis = b.add_axis(3000), in = b.add_buffer("x", DType::f64, 3000);
    int at = b.add_buffer("i", DType::i32, 3000), out = b.add_buffer("y", DType::f64, 3, true);
    PolyId index = b.value_index(b.load(at, b.axis(axis)), 3);
    b.store(out, index, b.load(in, b.axis(axis)), kNone, combine);
    std::vector<double> x(3000), y(3, 0);
    std::vector<int32_t> i(3000);
    for (int k = 0; k < 3000; ++k) {
      x[static_cast<size_t>(k)] = 0.1 * k;
      i[static_cast<size_t>(k)] = k % 3;
    }
    void* buffers[] = {x.data(), i.data(), y.data()};
    run(*prepare(b.finish()), buffers);
    double expected = 0;
    for (int k = 1; k < 3000; k += 3)
      expected = combine == Combine::set ? 0.1 * k : expected + 0.1 * k;
    CHECK(y[1] == expected);
  }
}

TEST_CASE("arguments take the type of their value and sizes may be symbols") {
  Dim n = Dim::symbol("N");
  Builder b("scale");
  int axis = b.add_axis(n), in = b.add_buffer("x", DType::f32, n * 2);
  int out = b.add_buffer("y", DType::f32, n, true);
  PolyTable& t = b.polys();
  S factor = b.argument(b.add_argument(), DType::f32);
  PolyId index = t.add(b.axis(axis), t.from_dim(n));
  b.store(out, b.axis(axis), b.load(in, index) * factor);
  Kernel kernel = b.finish();
  for (int64_t size : {1, 5, 3000}) {
    Binding bindings[] = {{n, size}};
    auto program = prepare(kernel, bindings);
    std::vector<float> x(static_cast<size_t>(2 * size), 2), y(static_cast<size_t>(size));
    for (size_t i = y.size(); i < x.size(); ++i) x[i] = static_cast<float>(i);
    void* buffers[] = {x.data(), y.data()};
    Scalar arguments[] = {3};
    run(*program, buffers, arguments);
    CHECK(y.back() == 3.0f * static_cast<float>(2 * size - 1));
  }
}

TEST_CASE("an output may be an input of the same index") {
  Builder b("in_place");
  int axis = b.add_axis(2500), x = b.add_buffer("x", DType::f32, 2500);
  int y = b.add_buffer("y", DType::f32, 2500, true), z = b.add_buffer("z", DType::f32, 2500, true);
  S v = b.load(x, b.axis(axis));
  b.store(y, b.axis(axis), v + 1.0);
  b.store(z, b.axis(axis), v * 2.0);
  std::vector<float> data(2500, 5), other(2500);
  void* buffers[] = {data.data(), data.data(), other.data()};
  run(*prepare(b.finish()), buffers);
  CHECK(data == std::vector<float>(2500, 6));
  CHECK(other == std::vector<float>(2500, 10));
}

TEST_CASE("reductions over nothing give the neutral element") {
  for (Orientation orientation : {Orientation::rows, Orientation::columns}) {
    Builder b("empty");
    int p = b.add_axis(3), r = b.add_axis(0, AxisKind::red);
    int x = b.add_buffer("x", DType::f32, 0), y = b.add_buffer("y", DType::f32, 6, true);
    PolyTable& t = b.polys();
    S v = b.load(x, t.add(b.axis(p), t.scale(b.axis(r), 3)));
    b.store(y, b.axis(p), b.reduce(Monoid::add, v, 2));
    b.store(y, t.add_constant(b.axis(p), 3), b.reduce(Monoid::mul, v, 2));
    std::vector<float> out(6, 9);
    void* buffers[] = {nullptr, out.data()};
    run(*prepare(b.finish(), {}, {.orientation = orientation}), buffers);
    CHECK(out == std::vector<float>{0, 0, 0, 1, 1, 1});
    CHECK(!std::signbit(out[0]));
  }
}

TEST_CASE("nested reductions and opposite scans take the general path") {
  Kernel kernel = parse_kernel(R"(kernel nested(x: i32[24]) -> (y: i32[2]) {
  axes p0:2 par, r1:3 red, r2:4 red
  v0 = load x[12*p0 + 4*r1 + r2] : i32
  v1 = reduce max v0 over r2 : i32
  v2 = reduce add v1 over r1 : i32
  store y[p0] = v2
}
)");
  std::vector<int32_t> x(24), y(2);
  std::iota(x.begin(), x.end(), 0);
  void* buffers[] = {x.data(), y.data()};
  run(*prepare(kernel), buffers);
  CHECK(y == std::vector<int32_t>{3 + 7 + 11, 15 + 19 + 23});
}

TEST_CASE("softmax of long and short rows sums to one") {
  for (int64_t rows : {1, 7, 300})
    for (int64_t extent : {1, 5, 1000, 1025, 40000}) {
      if (rows * extent > 1000000) continue;
      Builder b("softmax");
      int p = b.add_axis(rows), r = b.add_axis(extent, AxisKind::red);
      int in = b.add_buffer("x", DType::f32, rows * extent);
      int out = b.add_buffer("y", DType::f32, rows * extent, true);
      PolyTable& t = b.polys();
      PolyId index = t.add(t.scale(b.axis(p), extent), b.axis(r));
      S v = b.load(in, index);
      S e = sc::exp(v - b.reduce(Monoid::max, v, 2));
      b.store(out, index, e / b.reduce(Monoid::add, e, 2));
      std::vector<float> x(static_cast<size_t>(rows * extent)), y(x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) - 3;
      void* buffers[] = {x.data(), y.data()};
      run(*prepare(b.finish()), buffers);
      double sum = 0;
      for (int64_t i = 0; i < extent; ++i) sum += y[static_cast<size_t>((rows - 1) * extent + i)];
      CHECK(sum == doctest::Approx(1).epsilon(1e-4));
    }
}
