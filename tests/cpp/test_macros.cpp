// Math operations spelled out: the same bits, and nothing but plain operations.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "loop/builder.h"
#include "loop/interpreter.h"
#include "loop/macros.h"

using namespace tn;
using namespace tn::loop;

namespace {

template <class T>
std::vector<T> special_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> values;
  for (T x : {T(0),
              L::denorm_min(),
              L::min(),
              L::epsilon(),
              T(0.5),
              T(1),
              T(1) + L::epsilon(),
              T(1) - L::epsilon(),
              T(2),
              T(3),
              T(11),
              T(88.7),
              T(104),
              T(709.5),
              T(746),
              T(1e5),
              T(1e9),
              T(3e18),
              L::max(),
              L::infinity(),
              L::quiet_NaN()}) {
    values.push_back(x);
    values.push_back(-x);
  }
  return values;
}

/// Special values, then every exponent and a range around 0 where the functions live.
template <class T>
std::vector<T> inputs(size_t count, uint64_t seed) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::mt19937_64 random(seed);
  std::vector<T> values = special_values<T>();
  while (values.size() < count) {
    auto any = std::bit_cast<T>(static_cast<Bits>(random()));
    auto near = static_cast<T>(std::uniform_real_distribution(-1.0, 1.0)(random));
    T scale[] = {any, near, near * 4, near * 30, near * 200, std::round(near * 40)};
    values.push_back(scale[values.size() % 6]);
  }
  return values;
}

template <class T>
std::vector<T> result(const Kernel& kernel, std::vector<T> x, std::vector<T> z) {
  std::vector<T> y(x.size());
  void* buffers[] = {x.data(), z.data(), y.data()};
  run(*prepare(kernel), buffers);
  return y;
}

bool has_math(const Kernel& kernel) {
  return std::any_of(kernel.values.begin(), kernel.values.end(),
                     [](const Value& v) { return facts(v.op).math; });
}

Kernel kernel_of(Op op, DType type, int64_t n, bool narrow = false) {
  Builder b("f");
  if (narrow) b.compute_for(DType::bf16);
  int axis = b.add_axis(n), in = b.add_buffer("x", type, n), in2 = b.add_buffer("z", type, n);
  int out = b.add_buffer("y", type, n, true);
  S x = b.load(in, b.axis(axis)), z = b.load(in2, b.axis(axis));
  b.store(out, b.axis(axis), facts(op).operands == 1 ? b.unary(op, x) : b.binary(op, x, z));
  return b.finish();
}

template <class T>
void compare(Op op, DType type, bool narrow = false) {
  CAPTURE(facts(op).name);
  CAPTURE(narrow);
  CAPTURE(size_of(type));
  // The second operand meets every special value of the first.
  std::vector<T> x = inputs<T>(4000, 1), z = inputs<T>(4000, 2), special = special_values<T>();
  for (T a : special)
    for (T b : special) {
      x.push_back(a);
      z.push_back(b);
    }
  Kernel kernel = kernel_of(op, type, static_cast<int64_t>(x.size()), narrow);
  CHECK(to_text(parse_kernel(to_text(kernel))) == to_text(kernel));
  Kernel plain = expand_math(kernel);
  CHECK_FALSE(has_math(plain));
  CHECK(to_text(parse_kernel(to_text(plain))) == to_text(plain));
  std::vector<T> expected = result(kernel, x, z), got = result(plain, x, z);
  std::vector<T> parsed = result(parse_kernel(to_text(plain)), x, z);
  int wrong = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    bool nan = std::isnan(expected[i]);
    bool same = nan ? std::isnan(got[i]) && std::isnan(parsed[i])
                    : std::memcmp(&expected[i], &got[i], sizeof(T)) == 0 &&
                          std::memcmp(&expected[i], &parsed[i], sizeof(T)) == 0;
    if (!same && wrong++ < 3) {
      CAPTURE(x[i]);
      CAPTURE(z[i]);
      CHECK(expected[i] == got[i]);
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("expanded math has the bits of the macros") {
  int count = 0;
  for (int i = 0; i < kOps; ++i) {
    Op op = static_cast<Op>(i);
    if (!facts(op).math) continue;
    compare<float>(op, DType::f32);
    compare<double>(op, DType::f64);
    if (facts(op).narrow) compare<float>(op, DType::f32, true);
    ++count;
  }
  CHECK(count == 33);
}

TEST_CASE("the operations of math functions that bound a GPU") {
  // Without what costs nothing there: leaves, bits taken as numbers, and signs.
  auto operations = [](Op op, bool narrow) {
    Kernel plain = expand_math(kernel_of(op, DType::f32, 8, narrow));
    return std::ranges::count_if(plain.values, [](const Value& v) {
      CHECK(v.op != Op::div);
      CHECK(v.op != Op::round);
      return facts(v.op).operands > 0 && v.op != Op::bitcast && v.op != Op::neg && v.op != Op::abs;
    });
  };
  CHECK(operations(Op::gelu, false) == 41);
  CHECK(operations(Op::gelu_slope, false) == 44);
  struct Narrow {
    Op op;
    int count;
  };
  constexpr Narrow kNarrow[] = {{Op::exp, 14},  {Op::sigmoid, 21}, {Op::tanh, 22}, {Op::erf, 20},
                                {Op::gelu, 24}, {Op::log, 26},     {Op::log1p, 25}};
  for (Narrow n : kNarrow) {
    CAPTURE(facts(n.op).name);
    CHECK(operations(n.op, true) == n.count);
  }
}

TEST_CASE("math of ops on narrow floats has the narrow form") {
  Builder b("f");
  int axis = b.add_axis(8), in = b.add_buffer("x", DType::f32, 8);
  S x = b.load(in, b.axis(axis));
  auto is_narrow = [&](S s) { return b.value(s).narrow; };
  CHECK_FALSE(is_narrow(sc::exp(x)));
  for (DType type : {DType::f16, DType::bf16}) {
    b.compute_for(type);
    CHECK(is_narrow(sc::exp(x)));
    CHECK(is_narrow(sc::gelu(x)));
    CHECK_FALSE(is_narrow(sc::sin(x)));  // there is none
    CHECK_FALSE(is_narrow(sc::exp(sc::cast(x, DType::f64))));
  }
  b.compute_for(DType::f32);
  CHECK_FALSE(is_narrow(sc::exp(x)));
}

TEST_CASE("indices, masks and stores follow their values through an expansion") {
  Builder b("gather");
  int axis = b.add_axis(100), row = b.add_axis(7, AxisKind::red);
  int in = b.add_buffer("x", DType::f32, 700), at = b.add_buffer("i", DType::i64, 100);
  int out = b.add_buffer("y", DType::f32, 100, true);
  PolyTable& t = b.polys();
  S scale = sc::exp(b.constant(0.25, DType::f32));  // moves the numbers of everything after it
  S place = b.load(at, b.axis(axis));
  PolyId gathered = t.add(t.scale(b.value_index(place, 100), 7), b.axis(row));
  PolyId conditions[] = {t.sub(t.constant(50), t.mod(b.value_index(place, 100), t.constant(64)))};
  S x = b.load(in, gathered, b.mask(conditions));
  S sum = b.reduce(Monoid::add, sc::sin(x) * scale, AxisSet{1} << row);
  b.store(out, b.value_index(place, 100), sc::tanh(sum));
  Kernel kernel = b.finish(), plain = expand_math(kernel);
  CHECK_FALSE(has_math(plain));
  CHECK(plain.stores[0].scattered);
  CHECK(to_text(parse_kernel(to_text(plain))) == to_text(plain));

  std::vector<float> values = inputs<float>(700, 3), expected(100), got(100);
  std::vector<int64_t> places(100);
  for (size_t i = 0; i < 100; ++i) places[i] = static_cast<int64_t>(i * 37 % 100);
  for (float& v : values) v = std::isnan(v) ? 1 : v;
  void* before[] = {values.data(), places.data(), expected.data()};
  void* after[] = {values.data(), places.data(), got.data()};
  run(*prepare(kernel), before);
  run(*prepare(plain), after);
  for (size_t i = 0; i < 100; ++i)
    CHECK((std::isnan(expected[i]) ? std::isnan(got[i]) : expected[i] == got[i]));
}

TEST_CASE("equal parts of two expansions are one value") {
  Builder b("both");
  int axis = b.add_axis(8), in = b.add_buffer("x", DType::f64, 8);
  int out = b.add_buffer("y", DType::f64, 8, true);
  S x = b.load(in, b.axis(axis));
  b.store(out, b.axis(axis), sc::sin(x) + sc::cos(x));
  size_t one = expand_math(kernel_of(Op::sin, DType::f64, 8)).values.size();
  CHECK(expand_math(b.finish()).values.size() < one * 3 / 2);
}

TEST_CASE("a kernel without math stays as it is") {
  Kernel kernel = kernel_of(Op::add, DType::f32, 8);
  CHECK(to_text(expand_math(kernel)) == to_text(kernel));
}
