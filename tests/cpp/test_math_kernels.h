#pragma once
// Every math function as a block kernel of the level this header is compiled for.

#include <iterator>

#include "loop/math_block.h"

namespace tn::math_test {

struct UnaryKernel {
  const char* name;
  void (*f32)(const float*, float*, int64_t);
  void (*f64)(const double*, double*, int64_t);
};

struct BinaryKernel {
  const char* name;
  void (*f32)(const float*, const float*, float*, int64_t);
  void (*f64)(const double*, const double*, double*, int64_t);
};

struct Kernels {
  const UnaryKernel* unary;
  int unary_count;
  const BinaryKernel* binary;
  int binary_count;
};

Kernels kernels_v3();
Kernels kernels_v4();

}  // namespace tn::math_test

namespace tn::TN_LEVEL::math_test {

using tn::math_test::BinaryKernel;
using tn::math_test::UnaryKernel;

template <class F>
constexpr UnaryKernel unary(const char* name, F) {
  return {name, [](const float* in, float* out, int64_t n) { math::block(F{}, in, out, n); },
          [](const double* in, double* out, int64_t n) { math::block(F{}, in, out, n); }};
}

template <class F>
constexpr BinaryKernel binary(const char* name, F) {
  return {name,
          [](const float* a, const float* b, float* out, int64_t n) {
            math::block(F{}, a, b, out, n);
          },
          [](const double* a, const double* b, double* out, int64_t n) {
            math::block(F{}, a, b, out, n);
          }};
}

inline tn::math_test::Kernels kernels() {
  static const UnaryKernel unary_kernels[] = {
      unary("exp", [](auto x) { return math::exp(x); }),
      unary("exp2", [](auto x) { return math::exp2(x); }),
      unary("expm1", [](auto x) { return math::expm1(x); }),
      unary("log", [](auto x) { return math::log(x); }),
      unary("log2", [](auto x) { return math::log2(x); }),
      unary("log10", [](auto x) { return math::log10(x); }),
      unary("log1p", [](auto x) { return math::log1p(x); }),
      unary("sqrt", [](auto x) { return math::sqrt(x); }),
      unary("rsqrt", [](auto x) { return math::rsqrt(x); }),
      unary("cbrt", [](auto x) { return math::cbrt(x); }),
      unary("sin", math::Sin{}),
      unary("cos", math::Cos{}),
      unary("tan", math::Tan{}),
      unary("asin", [](auto x) { return math::asin(x); }),
      unary("acos", [](auto x) { return math::acos(x); }),
      unary("atan", [](auto x) { return math::atan(x); }),
      unary("sinh", [](auto x) { return math::sinh(x); }),
      unary("cosh", [](auto x) { return math::cosh(x); }),
      unary("tanh", [](auto x) { return math::tanh(x); }),
      unary("asinh", [](auto x) { return math::asinh(x); }),
      unary("acosh", [](auto x) { return math::acosh(x); }),
      unary("atanh", [](auto x) { return math::atanh(x); }),
      unary("erf", [](auto x) { return math::erf(x); }),
      unary("erfc", [](auto x) { return math::erfc(x); }),
      unary("erfinv", [](auto x) { return math::erfinv(x); }),
      unary("sigmoid", [](auto x) { return math::sigmoid(x); }),
  };
  static const BinaryKernel binary_kernels[] = {
      binary("pow", [](auto x, auto y) { return math::pow(x, y); }),
      binary("atan2", [](auto y, auto x) { return math::atan2(y, x); }),
      binary("hypot", [](auto x, auto y) { return math::hypot(x, y); }),
      binary("logaddexp", [](auto a, auto b) { return math::logaddexp(a, b); }),
  };
  return {unary_kernels, static_cast<int>(std::size(unary_kernels)), binary_kernels,
          static_cast<int>(std::size(binary_kernels))};
}

}  // namespace tn::TN_LEVEL::math_test
