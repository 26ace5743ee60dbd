// The math functions stay within their ulp bounds, and their bits do not depend on the CPU level.
//
// TENON_MATH_STEP=256 takes one f32 input in 256 instead of 4096, TENON_MATH_POINTS=200000 that
// many f64 inputs instead of 20,000, and TENON_MATH_REPORT=1 prints the largest errors.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "test_math_cases.h"
#include "test_math_kernels.h"

namespace tn::math_test {
namespace {

const UnaryKernel& find(const Kernels& kernels, const std::string& name) {
  for (int i = 0; i < kernels.unary_count; ++i) {
    if (name == kernels.unary[i].name) return kernels.unary[i];
  }
  FAIL("no kernel named " << name);
  return kernels.unary[0];
}

bool wants_report() { return std::getenv("TENON_MATH_REPORT") != nullptr; }

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

// A double has 29 bits more than a float, so libm decides where it is right: on a part of the
// points MPFR says whether it is, and MPFR decides where libm sees an error near the bound.
Worst worst_f32(const UnaryCase& c, const std::vector<float>& x) {
  constexpr size_t kChecked = 128;
  std::vector<float> y(x.size());
  find(generic::math_test::kernels(), c.name).f32(x.data(), y.data(), x.size());
  Worst worst;
  Big exact;
  double doubt = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double error = ulp_error(y[i], c.reference(x[i]));
    if (i % kChecked == 0 || error > 0.99 * c.bound_f32) {
      c.exact(exact, Big(x[i]));
      const double known = error;
      error = ulp_error(y[i], mpfr_get_d(exact.v, MPFR_RNDN));
      doubt = std::max(doubt, std::abs(known - error));
    }
    worst.take(error, x[i]);
  }
  CHECK_MESSAGE(doubt < 0.01, std::string(c.name) << ": libm is no reference");
  return worst;
}

TEST_CASE("f32 math functions are within their bounds over all exponents") {
  const char* step = std::getenv("TENON_MATH_STEP");
  const std::vector<float> x = stratified_f32(step != nullptr ? std::atoi(step) : 1 << 12);
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
      c.exact(result, Big(x[i]));
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

}  // namespace
}  // namespace tn::math_test
