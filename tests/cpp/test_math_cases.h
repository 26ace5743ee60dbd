#pragma once
// The unary math functions with their bounds and references.
#include "loop/math.h"
#include "test_math_reference.h"

namespace tn::math_test {

using MpfrUnary = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);

struct UnaryCase {
  const char* name;
  double bound_f32, bound_f64;
  double (*reference)(double);
  MpfrUnary mpfr;
  void (*composed)(Big&, const Big&) = nullptr;

  void exact(Big& result, const Big& x) const {
    if (mpfr != nullptr)
      mpfr(result.v, x.v, MPFR_RNDN);
    else
      composed(result, x);
  }
};

inline double rsqrt_reference(double x) { return 1 / std::sqrt(x); }
inline double sigmoid_reference(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
inline double gelu_reference(double x) {
  return x < -40 ? -0.0 : x / 2 * std::erfc(-x * std::sqrt(0.5));
}
inline double lgamma_reference(double x) { return std::lgamma(x); }
// The f64 function is itself tested against MPFR below.
inline double erfinv_reference(double x) { return generic::math::erfinv(x); }

inline const UnaryCase kUnary[] = {
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
    // In f32 within 4.5 where the result is not tiny (test_math_narrow.cpp). In f64 a subnormal
    // result is x times a subnormal number.
    {"gelu", 11, 64, gelu_reference, nullptr, big_gelu},
};

struct Worst {
  double ulp = 0, at = 0, second = 0;
  void take(double error, double x, double y = 0) {
    if (error > ulp) *this = {error, x, y};
  }
};

}  // namespace tn::math_test
