// Special values of the math functions, and the same bits from every level and from a builder type.

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "test_math_kernels.h"
#include "test_math_traced.h"

namespace tn::math_test {
namespace {

namespace math = generic::math;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

template <class T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
}

struct Special {
  const char* name;
  double x, want;
};

const Special kSpecial[] = {
    {"exp", 0, 1},
    {"exp", -0.0, 1},
    {"exp", kInfinity, kInfinity},
    {"exp", -kInfinity, 0},
    {"exp", 1e4, kInfinity},
    {"exp", -1e4, 0},
    {"exp", kNotANumber, kNotANumber},
    {"exp2", 10, 1024},
    {"exp2", -126, 0x1p-126},
    {"exp2", -149, 0x1p-149},
    {"exp2", 0, 1},
    {"exp2", kInfinity, kInfinity},
    {"exp2", -kInfinity, 0},
    {"exp2", kNotANumber, kNotANumber},
    {"expm1", 0, 0},
    {"expm1", -0.0, -0.0},
    {"expm1", kInfinity, kInfinity},
    {"expm1", -kInfinity, -1},
    {"expm1", kNotANumber, kNotANumber},
    {"log", 1, 0},
    {"log", 0, -kInfinity},
    {"log", -0.0, -kInfinity},
    {"log", -1, kNotANumber},
    {"log", kInfinity, kInfinity},
    {"log", -kInfinity, kNotANumber},
    {"log", kNotANumber, kNotANumber},
    {"log2", 1, 0},
    {"log2", 8, 3},
    {"log2", 0x1p-149, -149},
    {"log2", 0x1p127, 127},
    {"log2", 0, -kInfinity},
    {"log2", -2, kNotANumber},
    {"log2", kInfinity, kInfinity},
    {"log10", 1, 0},
    {"log10", 1000, 3},
    {"log10", 1e10, 10},
    {"log10", 0, -kInfinity},
    {"log10", -2, kNotANumber},
    {"log10", kInfinity, kInfinity},
    {"log1p", 0, 0},
    {"log1p", -0.0, -0.0},
    {"log1p", -1, -kInfinity},
    {"log1p", -2, kNotANumber},
    {"log1p", kInfinity, kInfinity},
    {"log1p", kNotANumber, kNotANumber},
    {"sqrt", -0.0, -0.0},
    {"sqrt", -1, kNotANumber},
    {"sqrt", kInfinity, kInfinity},
    {"rsqrt", 4, 0.5},
    {"rsqrt", 0, kInfinity},
    {"rsqrt", kInfinity, 0},
    {"cbrt", 27, 3},
    {"cbrt", -8, -2},
    {"cbrt", 0, 0},
    {"cbrt", -0.0, -0.0},
    {"cbrt", kInfinity, kInfinity},
    {"cbrt", -kInfinity, -kInfinity},
    {"cbrt", kNotANumber, kNotANumber},
    {"cbrt", 0x1p-147, 0x1p-49},
    {"sin", 0, 0},
    {"sin", -0.0, -0.0},
    {"sin", kInfinity, kNotANumber},
    {"cos", 0, 1},
    {"cos", -kInfinity, kNotANumber},
    {"tan", -0.0, -0.0},
    {"tan", kInfinity, kNotANumber},
    {"sin", kNotANumber, kNotANumber},
    {"cos", kNotANumber, kNotANumber},
    {"asin", 0, 0},
    {"asin", -0.0, -0.0},
    {"asin", 2, kNotANumber},
    {"acos", 1, 0},
    {"acos", -2, kNotANumber},
    {"asin", kNotANumber, kNotANumber},
    {"atan", -0.0, -0.0},
    {"atan", kNotANumber, kNotANumber},
    {"atan", kInfinity, 1.5707963267948966},
    {"atan", -kInfinity, -1.5707963267948966},
    {"sinh", -0.0, -0.0},
    {"sinh", kInfinity, kInfinity},
    {"sinh", -kInfinity, -kInfinity},
    {"cosh", 0, 1},
    {"cosh", -kInfinity, kInfinity},
    {"cosh", kNotANumber, kNotANumber},
    {"tanh", -0.0, -0.0},
    {"tanh", kInfinity, 1},
    {"tanh", -kInfinity, -1},
    {"tanh", kNotANumber, kNotANumber},
    {"tanh", 0x1p-149, 0x1p-149},
    {"asinh", -0.0, -0.0},
    {"asinh", -kInfinity, -kInfinity},
    {"asinh", kNotANumber, kNotANumber},
    {"acosh", 1, 0},
    {"acosh", 0.5, kNotANumber},
    {"acosh", kInfinity, kInfinity},
    {"acosh", -kInfinity, kNotANumber},
    {"atanh", -0.0, -0.0},
    {"atanh", 1, kInfinity},
    {"atanh", -1, -kInfinity},
    {"atanh", 2, kNotANumber},
    {"atanh", kInfinity, kNotANumber},
    {"erf", -0.0, -0.0},
    {"erf", kInfinity, 1},
    {"erf", -kInfinity, -1},
    {"erf", kNotANumber, kNotANumber},
    {"erfc", 0, 1},
    {"erfc", kInfinity, 0},
    {"erfc", -kInfinity, 2},
    {"erfc", kNotANumber, kNotANumber},
    {"erfinv", -0.0, -0.0},
    {"erfinv", 1, kInfinity},
    {"erfinv", -1, -kInfinity},
    {"erfinv", 1.5, kNotANumber},
    {"erfinv", kNotANumber, kNotANumber},
    {"lgamma", 1, 0},
    {"lgamma", 2, 0},
    {"lgamma", 0, kInfinity},
    {"lgamma", -0.0, kInfinity},
    {"lgamma", -3, kInfinity},
    {"lgamma", kInfinity, kInfinity},
    {"lgamma", -kInfinity, kInfinity},
    {"lgamma", kNotANumber, kNotANumber},
    {"sigmoid", 0, 0.5},
    {"sigmoid", kInfinity, 1},
    {"sigmoid", -kInfinity, 0},
    {"sigmoid", kNotANumber, kNotANumber},
    {"gelu", 0, 0},
    {"gelu", -0.0, -0.0},
    {"gelu", 40, 40},
    {"gelu", -40, -0.0},
    {"gelu", kInfinity, kInfinity},
    {"gelu", -kInfinity, -0.0},
    {"gelu", kNotANumber, kNotANumber},
    {"gelu_slope", 0, 0.5},
    {"gelu_slope", 40, 1},
    {"gelu_slope", kInfinity, 1},
    {"gelu_slope", kNotANumber, kNotANumber},
};

const UnaryKernel& find(const std::string& name) {
  const Kernels kernels = generic::math_test::kernels();
  for (int i = 0; i < kernels.unary_count; ++i) {
    if (name == kernels.unary[i].name) return kernels.unary[i];
  }
  FAIL("no kernel named " << name);
  return kernels.unary[0];
}

TEST_CASE("special values of functions of one argument are exact") {
  for (const Special& s : kSpecial) {
    const float x = static_cast<float>(s.x);
    float y = 0;
    double wide = 0;
    find(s.name).f32(&x, &y, 1);
    find(s.name).f64(&s.x, &wide, 1);
    CHECK_MESSAGE(same(y, static_cast<float>(s.want)), std::string(s.name) << " f32 " << s.x);
    CHECK_MESSAGE(same(wide, s.want), std::string(s.name) << " f64 " << s.x);
  }
  for (int e = -1074; e < 1024; ++e) {
    CHECK(math::exp2(static_cast<double>(e)) == std::ldexp(1.0, e));
    CHECK(math::log2(std::ldexp(1.0, e)) == e);
  }
  double ten = 1;
  for (int e = 0; e <= 22; ++e, ten *= 10) {
    CHECK(math::log10(ten) == e);
    if (e <= 10) CHECK(math::log10(static_cast<float>(ten)) == e);
  }
}

// libm follows C99 in every combination of these.
TEST_CASE("special values of functions of two arguments are those of C99") {
  const double values[] = {0,    -0.0, 1,    -1,   2,     -2,        3,          -3,          0.5,
                           -0.5, 2.5,  -2.5, 4e18, -4e18, kInfinity, -kInfinity, kNotANumber, 1e-3};
  for (const double a : values) {
    for (const double b : values) {
      const float x = static_cast<float>(a);
      const float y = static_cast<float>(b);
      CAPTURE(a);
      CAPTURE(b);
      const bool exact_pow = !std::isfinite(a) || !std::isfinite(b) || a == 0 || std::abs(a) == 1 ||
                             b == 0 || (std::abs(a) == 2 && b == std::trunc(b));
      if (exact_pow) CHECK(same(math::pow(a, b), std::pow(a, b)));
      if (exact_pow) CHECK(same(math::pow(x, y), static_cast<float>(std::pow(x, y))));
      if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) {
        CHECK(same(math::atan2(a, b), std::atan2(a, b)));
        const float angle = static_cast<float>(std::atan2(a, b));
        CHECK(same(math::atan2(x, y), angle));
        CHECK(same(math::hypot(a, b), std::hypot(a, b)));
        CHECK(same(math::hypot(x, y), std::hypot(x, y)));
      }
    }
  }
  CHECK(math::logaddexp(kInfinity, kInfinity) == kInfinity);
  CHECK(math::logaddexp(-kInfinity, -kInfinity) == -kInfinity);
  CHECK(math::logaddexp(kInfinity, -kInfinity) == kInfinity);
  CHECK(math::logaddexp(-kInfinity, 3.0) == 3.0);
  CHECK(math::logaddexp(2.0f, -std::numeric_limits<float>::infinity()) == 2.0f);
  CHECK(std::isnan(math::logaddexp(kNotANumber, 1.0)));
  CHECK(std::isnan(math::logaddexp(1.0f, std::numeric_limits<float>::quiet_NaN())));
}

template <class T>
std::vector<T> inputs(int count) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::vector<T> x;
  for (int i = 0; i < count; ++i) {
    const T any = std::bit_cast<T>(static_cast<Bits>(random()));
    const int shift = static_cast<int>(random() % 13) - 4;
    x.push_back(i % 3 == 0 ? any : static_cast<T>(std::ldexp(normal(random), shift)));
  }
  return x;
}

template <class T, class F>
void check_same_bits(const Kernels& level, const std::vector<T>& x, F pick) {
  const Kernels base = generic::math_test::kernels();
  std::vector<T> second(x.rbegin(), x.rend()), a(x.size()), b(x.size());
  const auto compare = [&](const char* name) {
    int64_t different = 0;
    for (size_t i = 0; i < x.size(); ++i) different += !same(a[i], b[i]);
    CHECK_MESSAGE(different == 0, std::string(name));
  };
  for (int k = 0; k < base.unary_count; ++k) {
    pick(base.unary[k])(x.data(), a.data(), x.size());
    pick(level.unary[k])(x.data(), b.data(), x.size());
    compare(base.unary[k].name);
  }
  for (int k = 0; k < base.narrow_count; ++k)
    if constexpr (std::is_same_v<T, float>) {
      base.narrow[k].f32(x.data(), a.data(), x.size());
      level.narrow[k].f32(x.data(), b.data(), x.size());
      compare("narrow");
    }
  for (int k = 0; k < base.binary_count; ++k) {
    pick(base.binary[k])(x.data(), second.data(), a.data(), x.size());
    pick(level.binary[k])(x.data(), second.data(), b.data(), x.size());
    compare(base.binary[k].name);
  }
}

TEST_CASE("the bits do not depend on the CPU level") {
  const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  const auto f32 = [](const auto& kernel) { return kernel.f32; };
  const auto f64 = [](const auto& kernel) { return kernel.f64; };
  if (has_v3) check_same_bits(kernels_v3(), inputs<float>(200001), f32);
  if (has_v3) check_same_bits(kernels_v3(), inputs<double>(50001), f64);
  if (has_v4) check_same_bits(kernels_v4(), inputs<float>(200001), f32);
  if (has_v4) check_same_bits(kernels_v4(), inputs<double>(50001), f64);
}

template <class T, class F>
void check_traced(const char* name, F f, const std::vector<T>& x) {
  int64_t different = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    if constexpr (std::is_invocable_v<F, T, T>) {
      different += !same(f(x[i], x[i + 1]), f(Traced<T>(x[i]), Traced<T>(x[i + 1])).v);
    } else {
      different += !same(f(x[i]), f(Traced<T>(x[i])).v);
    }
  }
  CHECK_MESSAGE(different == 0, std::string(name));
}

TEST_CASE("a builder type sees only the listed primitives and gives the native bits") {
  const std::vector<float> x = inputs<float>(3000);
  const std::vector<double> y = inputs<double>(3000);
  const auto check = [&](const char* name, auto f) {
    check_traced(name, f, x);
    check_traced(name, f, y);
  };
  const auto both = [&](const char* name, auto f) {
    check_traced<float>(name, f, x);
    check_traced<double>(name, f, y);
  };
  generic::math_test::visit_unary(check);
  generic::math_test::visit_binary(both);
  math::visit_narrow([&](loop::Op, auto f) { check_traced("narrow", f, x); });
}

}  // namespace
}  // namespace tn::math_test
