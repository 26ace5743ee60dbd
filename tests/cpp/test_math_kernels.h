#pragma once
// Every math function as a block kernel of the level this header is compiled for.

#include "loop/math_block.h"
#include "loop/math_narrow.h"

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

/// The form for results that are rounded to f16 or bf16.
struct NarrowKernel {
  loop::Op op;
  void (*f32)(const float*, float*, int64_t);
};

struct Kernels {
  const UnaryKernel* unary;
  int unary_count;
  const BinaryKernel* binary;
  int binary_count;
  const NarrowKernel* narrow;
  int narrow_count;
};

Kernels kernels_v3();
Kernels kernels_v4();

}  // namespace tn::math_test

namespace tn::TN_LEVEL::math_test {

using tn::math_test::BinaryKernel;
using tn::math_test::NarrowKernel;
using tn::math_test::UnaryKernel;

// Calls visit(name, function) for every function of one argument.
template <class Visit>
void visit_unary(Visit visit) {
  visit("exp", [](auto x) { return math::exp(x); });
  visit("exp2", [](auto x) { return math::exp2(x); });
  visit("expm1", [](auto x) { return math::expm1(x); });
  visit("log", [](auto x) { return math::log(x); });
  visit("log2", [](auto x) { return math::log2(x); });
  visit("log10", [](auto x) { return math::log10(x); });
  visit("log1p", [](auto x) { return math::log1p(x); });
  visit("sqrt", [](auto x) {
    using math::sqrt;
    return sqrt(x);
  });
  visit("rsqrt", [](auto x) { return math::rsqrt(x); });
  visit("cbrt", [](auto x) { return math::cbrt(x); });
  visit("sin", math::Sin{});
  visit("cos", math::Cos{});
  visit("tan", math::Tan{});
  visit("asin", [](auto x) { return math::asin(x); });
  visit("acos", [](auto x) { return math::acos(x); });
  visit("atan", [](auto x) { return math::atan(x); });
  visit("sinh", [](auto x) { return math::sinh(x); });
  visit("cosh", [](auto x) { return math::cosh(x); });
  visit("tanh", [](auto x) { return math::tanh(x); });
  visit("asinh", [](auto x) { return math::asinh(x); });
  visit("acosh", [](auto x) { return math::acosh(x); });
  visit("atanh", [](auto x) { return math::atanh(x); });
  visit("erf", [](auto x) { return math::erf(x); });
  visit("erfc", [](auto x) { return math::erfc(x); });
  visit("erfinv", [](auto x) { return math::erfinv(x); });
  visit("lgamma", [](auto x) { return math::lgamma(x); });
  visit("sigmoid", [](auto x) { return math::sigmoid(x); });
  visit("gelu", [](auto x) { return math::gelu(x); });
  visit("gelu_slope", [](auto x) { return math::gelu_slope(x); });
}

template <class Visit>
void visit_binary(Visit visit) {
  visit("pow", [](auto x, auto y) { return math::pow(x, y); });
  visit("atan2", [](auto y, auto x) { return math::atan2(y, x); });
  visit("hypot", [](auto x, auto y) { return math::hypot(x, y); });
  visit("logaddexp", [](auto a, auto b) { return math::logaddexp(a, b); });
}

inline tn::math_test::Kernels kernels() {
  static UnaryKernel unary[32];
  static BinaryKernel binary[8];
  int unary_count = 0;
  int binary_count = 0;
  visit_unary([&](const char* name, auto f) {
    using F = decltype(f);
    unary[unary_count++] = {
        name, [](const float* in, float* out, int64_t n) { math::block(F{}, in, out, n); },
        [](const double* in, double* out, int64_t n) { math::block(F{}, in, out, n); }};
  });
  visit_binary([&](const char* name, auto f) {
    using F = decltype(f);
    binary[binary_count++] = {name,
                              [](const float* a, const float* b, float* out, int64_t n) {
                                math::block(F{}, a, b, out, n);
                              },
                              [](const double* a, const double* b, double* out, int64_t n) {
                                math::block(F{}, a, b, out, n);
                              }};
  });
  static NarrowKernel narrow[16];
  int narrow_count = 0;
  math::visit_narrow([&](loop::Op op, auto f) {
    using F = decltype(f);
    narrow[narrow_count++] = {
        op, [](const float* in, float* out, int64_t n) { math::block(F{}, in, out, n); }};
  });
  return {unary, unary_count, binary, binary_count, narrow, narrow_count};
}

}  // namespace tn::TN_LEVEL::math_test
