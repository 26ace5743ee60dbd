// The math functions stay within their ulp bounds, and their bits do not depend on the CPU level.
//
// All 2^32 inputs of the unary f32 functions: run the executable with
//   --test-case="every f32 input*" --no-skip   (TENON_MATH_FUNCTION=exp limits it to one function).
// TENON_MATH_STEP=256 takes one f32 input in 256 instead of 8192, TENON_MATH_POINTS=200000 that
// many f64 inputs instead of 20,000, and TENON_MATH_REPORT=1 prints the largest errors.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "test_math_kernels.h"
#include "test_math_reference.h"

namespace tn::math_test {
namespace {

using MpfrUnary = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);

struct UnaryCase {
  const char* name;
  double bound_f32, bound_f64;
  double (*reference)(double);
  MpfrUnary mpfr;
  void (*composed)(Big&, const Big&) = nullptr;
};

double rsqrt_reference(double x) { return 1 / std::sqrt(x); }
double sigmoid_reference(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
double lgamma_reference(double x) { return std::lgamma(x); }
// The f64 function is itself tested against MPFR below.
double erfinv_reference(double x) { return generic::math::erfinv(x); }

const UnaryCase kUnary[] = {
    {"exp", 1, 1, std::exp, mpfr_exp},
    {"exp2", 1, 1, std::exp2, mpfr_exp2},
    {"expm1", 2, 2, std::expm1, mpfr_expm1},
    {"log", 1, 1, std::log, mpfr_log},
    {"log2", 2, 2, std::log2, mpfr_log2},
    {"log10", 2, 2, std::log10, mpfr_log10},
    {"log1p", 2, 2, std::log1p, mpfr_log1p},
    {"sqrt", 0.501, 0.501, std::sqrt, mpfr_sqrt},
    {"rsqrt", 2, 2, rsqrt_reference, nullptr, big_rsqrt},
    {"cbrt", 2, 2, std::cbrt, mpfr_cbrt},
    {"sin", 2, 2, std::sin, mpfr_sin},
    {"cos", 2, 2, std::cos, mpfr_cos},
    {"tan", 2, 2, std::tan, mpfr_tan},
    {"asin", 2, 2, std::asin, mpfr_asin},
    {"acos", 2, 2, std::acos, mpfr_acos},
    {"atan", 2, 2, std::atan, mpfr_atan},
    {"sinh", 2, 2, std::sinh, mpfr_sinh},
    {"cosh", 2, 2, std::cosh, mpfr_cosh},
    {"tanh", 2, 2, std::tanh, mpfr_tanh},
    {"asinh", 2, 2, std::asinh, mpfr_asinh},
    {"acosh", 2, 2, std::acosh, mpfr_acosh},
    {"atanh", 2, 2, std::atanh, mpfr_atanh},
    {"erf", 2, 2, std::erf, mpfr_erf},
    {"erfc", 2, 2, std::erfc, mpfr_erfc},
    {"erfinv", 2, 8, erfinv_reference, nullptr, big_erfinv},
    {"lgamma", 2, 8, lgamma_reference, nullptr, big_lgamma},
    {"sigmoid", 2, 2, sigmoid_reference, nullptr, big_sigmoid},
};

const UnaryKernel& find(const Kernels& kernels, const std::string& name) {
  for (int i = 0; i < kernels.unary_count; ++i) {
    if (name == kernels.unary[i].name) return kernels.unary[i];
  }
  FAIL("no kernel named " << name);
  return kernels.unary[0];
}

bool wants_report() { return std::getenv("TENON_MATH_REPORT") != nullptr; }

struct Worst {
  double ulp = 0, at = 0, second = 0;
  void take(double error, double x, double y = 0) {
    if (error > ulp) *this = {error, x, y};
  }
};

void report(const char* name, const char* type, const Worst& worst) {
  if (wants_report()) {
    MESSAGE(std::string(name) << " " << std::string(type) << " max ulp " << worst.ulp << " at "
                              << worst.at << " " << worst.second);
  }
}

// Every exponent and sign with random mantissas, and the edges of each.
std::vector<float> stratified_f32(int step) {
  std::vector<float> x;
  std::mt19937 random(17);
  for (uint64_t b = 0; b < (uint64_t{1} << 32); b += step) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(b + random() % step)));
  }
  for (uint32_t e = 0; e < 512; ++e) {
    for (int d = -2; d <= 2; ++d) x.push_back(std::bit_cast<float>((e << 23) + d));
  }
  return x;
}

// Half over all exponents, half where functions are neither flat nor infinite.
std::vector<double> stratified_f64(int count, unsigned seed) {
  std::vector<double> x;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (int i = 0; i < count; ++i) {
    const double scale = std::ldexp(1.0, static_cast<int>(random() % 16) - 5);
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    switch (i % 4) {
      case 0:
        x.push_back(std::bit_cast<double>(random()));
        break;
      case 1:
        x.push_back(std::copysign(1 - unit * std::ldexp(1.0, -static_cast<int>(random() % 40)),
                                  normal(random)));
        break;
      case 2:
        x.push_back(1 + (unit - 0.5) * scale);
        break;
      default:
        x.push_back(normal(random) * scale);
    }
  }
  for (int e = 0; e < 4096; e += 7) {
    x.push_back(std::bit_cast<double>((static_cast<uint64_t>(e) << 52) + random() % 3));
  }
  return x;
}

// lgamma has zeros of its own below zero, between terms of this size: their last place counts
// there.
double cancellation(const char* name, double x, double want) {
  if (std::string(name) != "lgamma" || x >= 0 || !std::isfinite(want) || want == 0) return 1;
  return std::max(1.0, std::max(std::lgamma(-x), 4.0) / std::abs(want));
}

Worst worst_f32(const UnaryCase& c, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  find(generic::math_test::kernels(), c.name).f32(x.data(), y.data(), x.size());
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) worst.take(ulp_error(y[i], c.reference(x[i])), x[i]);
  return worst;
}

TEST_CASE("f32 math functions are within their bounds over all exponents") {
  const char* step = std::getenv("TENON_MATH_STEP");
  const std::vector<float> x = stratified_f32(step != nullptr ? std::atoi(step) : 1 << 13);
  for (const UnaryCase& c : kUnary) {
    const Worst worst = worst_f32(c, x);
    report(c.name, "f32", worst);
    CHECK_MESSAGE(worst.ulp <= c.bound_f32, std::string(c.name) << " at " << worst.at);
  }
}

TEST_CASE("f64 math functions are within their bounds") {
  const char* points = std::getenv("TENON_MATH_POINTS");
  const int count = points != nullptr ? std::atoi(points) : 20000;
  const std::vector<double> x = stratified_f64(count, 3);
  std::vector<double> y(x.size());
  for (const UnaryCase& c : kUnary) {
    find(generic::math_test::kernels(), c.name).f64(x.data(), y.data(), x.size());
    Worst worst;
    Big result;
    for (size_t i = 0; i < x.size(); ++i) {
      const Big argument(x[i]);
      if (c.mpfr != nullptr) {
        c.mpfr(result.v, argument.v, MPFR_RNDN);
      } else {
        c.composed(result, argument);
      }
      const double want = mpfr_get_d(result.v, MPFR_RNDN);
      worst.take(ulp_error(y[i], result) / cancellation(c.name, x[i], want), x[i]);
    }
    report(c.name, "f64", worst);
    CHECK_MESSAGE(worst.ulp <= c.bound_f64, std::string(c.name) << " at " << worst.at);
  }
}

using MpfrBinary = int (*)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

struct BinaryCase {
  const char* name;
  double (*reference)(double, double);
  MpfrBinary mpfr;
};

double logaddexp_reference(double a, double b) {
  if (a == b) return a + std::log(2.0);
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

int mpfr_logaddexp(mpfr_t r, const mpfr_t a, const mpfr_t b, mpfr_rnd_t) {
  Big result, x, y;
  mpfr_set(x.v, a, MPFR_RNDN);
  mpfr_set(y.v, b, MPFR_RNDN);
  big_logaddexp(result, x, y);
  return mpfr_set(r, result.v, MPFR_RNDN);
}

const BinaryCase kBinary[] = {{"pow", std::pow, mpfr_pow},
                              {"atan2", std::atan2, mpfr_atan2},
                              {"hypot", std::hypot, mpfr_hypot},
                              {"logaddexp", logaddexp_reference, mpfr_logaddexp}};

// Pairs of any two numbers, pairs of like size, and bases near one with large exponents.
template <class T>
void make_pairs(std::vector<T>& a, std::vector<T>& b, int count) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (int i = 0; i < count; ++i) {
    const int shift = static_cast<int>(random() % 40);
    const double x = normal(random) * std::ldexp(1.0, shift % 12 - 4);
    const double y = normal(random) * std::ldexp(1.0, shift / 3 - 4);
    const T any = std::bit_cast<T>(static_cast<Bits>(random()));
    const double up = std::ldexp(1 + x * 0x1p-9, shift);
    switch (i % 5) {
      case 0:
        a.push_back(any), b.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
        break;
      case 1:
        a.push_back(std::abs(x)), b.push_back(y);
        break;
      case 2:
        a.push_back(x), b.push_back(std::round(y));
        break;
      case 3:
        a.push_back(1 + x / up), b.push_back(y * up);
        break;
      default:
        a.push_back(any), b.push_back(any * static_cast<T>(y));
    }
  }
}

const BinaryKernel& find_binary(const Kernels& kernels, const std::string& name) {
  for (int i = 0; i < kernels.binary_count; ++i) {
    if (name == kernels.binary[i].name) return kernels.binary[i];
  }
  FAIL("no kernel named " << name);
  return kernels.binary[0];
}

// logaddexp adds two terms that may cancel: its last place is that of the larger one.
double bound_factor(const char* name, double a, double b, double result) {
  if (std::string(name) != "logaddexp" || std::isinf(result) || result == 0) return 1;
  return std::max(1.0, std::max(a, b) / result);
}

TEST_CASE("f32 functions of two arguments are within 2 ulp") {
  std::vector<float> a, b;
  make_pairs(a, b, 1 << 20);
  std::vector<float> y(a.size());
  for (const BinaryCase& c : kBinary) {
    find_binary(generic::math_test::kernels(), c.name).f32(a.data(), b.data(), y.data(), a.size());
    Worst worst;
    for (size_t i = 0; i < a.size(); ++i) {
      const double want = c.reference(a[i], b[i]);
      if (bound_factor(c.name, a[i], b[i], want) > 1e6) continue;
      worst.take(ulp_error(y[i], want), a[i], b[i]);
    }
    report(c.name, "f32", worst);
    CHECK_MESSAGE(worst.ulp <= 2, std::string(c.name) << " at " << worst.at << " " << worst.second);
  }
}

TEST_CASE("f64 functions of two arguments are within 2 ulp") {
  std::vector<double> a, b;
  make_pairs(a, b, 60000);
  std::vector<double> y(a.size());
  for (const BinaryCase& c : kBinary) {
    find_binary(generic::math_test::kernels(), c.name).f64(a.data(), b.data(), y.data(), a.size());
    Worst worst;
    Big result;
    for (size_t i = 0; i < a.size(); ++i) {
      const Big u(a[i]), v(b[i]);
      c.mpfr(result.v, u.v, v.v, MPFR_RNDN);
      worst.take(ulp_error(y[i], result), a[i], b[i]);
    }
    report(c.name, "f64", worst);
    CHECK_MESSAGE(worst.ulp <= 2, std::string(c.name) << " at " << worst.at << " " << worst.second);
  }
}

Kernels best_kernels() {
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) return kernels_v4();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernels_v3();
  return generic::math_test::kernels();
}

// The f64 functions are the reference: a second, more accurate evaluation, and a vectorised one.
TEST_CASE("every f32 input is within its bound" * doctest::skip()) {
  const char* only = std::getenv("TENON_MATH_FUNCTION");
  constexpr int64_t kBlock = 1 << 14;
  std::vector<float> x(kBlock), y(kBlock);
  std::vector<double> wide(kBlock), want(kBlock);
  for (const UnaryCase& c : kUnary) {
    if (only != nullptr && std::string(only) != c.name) continue;
    const UnaryKernel& kernel = find(best_kernels(), c.name);
    Worst worst;
    for (uint64_t start = 0; start < (uint64_t{1} << 32); start += kBlock) {
      for (int64_t i = 0; i < kBlock; ++i) {
        x[i] = std::bit_cast<float>(static_cast<uint32_t>(start + i));
        wide[i] = x[i];
      }
      kernel.f32(x.data(), y.data(), kBlock);
      kernel.f64(wide.data(), want.data(), kBlock);
      for (int64_t i = 0; i < kBlock; ++i) {
        const float rounded = static_cast<float>(want[i]);
        if (std::bit_cast<uint32_t>(rounded) == std::bit_cast<uint32_t>(y[i])) continue;
        worst.take(ulp_error(y[i], want[i]), x[i]);
      }
    }
    MESSAGE(std::string(c.name) << " max ulp " << worst.ulp << " at " << worst.at);
    CHECK_MESSAGE(worst.ulp <= c.bound_f32, std::string(c.name) << " at " << worst.at);
  }
}

}  // namespace
}  // namespace tn::math_test
