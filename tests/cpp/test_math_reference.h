#pragma once
// References for the math tests: libm in double for f32, MPFR for f64.

#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tn::math_test {

// The error reported for a wrong sign, NaN or infinity.
inline constexpr double kWrong = 1e30;

// Error of `got` against the exact `want` in units of the last f32 place of `want`.
inline double ulp_error(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : kWrong;
  if (std::signbit(want) != std::signbit(got)) return kWrong;
  const double size = std::abs(want);
  if (size >= 0x1.ffffffp127) return std::isinf(got) ? 0 : kWrong;
  const double value = std::isinf(got) ? 0x1p128 : std::abs(got);
  const int64_t exponent = std::max<int64_t>(std::bit_cast<int64_t>(size) >> 52, 1023 - 126);
  return std::abs(value - size) * std::bit_cast<double>((2046 + 23 - exponent) << 52);
}

// A number of 160 bits that frees itself.
struct Big {
  Big() { mpfr_init2(v, 160); }
  explicit Big(double x) : Big() { mpfr_set_d(v, x, MPFR_RNDN); }
  Big(const Big&) = delete;
  Big& operator=(const Big&) = delete;
  ~Big() { mpfr_clear(v); }
  mpfr_t v;
};

inline double ulp_error(double got, const Big& want) {
  if (mpfr_nan_p(want.v) || std::isnan(got))
    return mpfr_nan_p(want.v) && std::isnan(got) ? 0 : kWrong;
  const double rounded = mpfr_get_d(want.v, MPFR_RNDN);
  if (got == rounded && (std::isinf(got) || got == 0)) {
    return std::signbit(got) == std::signbit(rounded) ? 0 : kWrong;
  }
  Big difference(std::isinf(got) ? 0 : got);
  if (std::isinf(got)) mpfr_set_si_2exp(difference.v, got > 0 ? 1 : -1, 1024, MPFR_RNDN);
  mpfr_sub(difference.v, difference.v, want.v, MPFR_RNDN);
  const bool zero = mpfr_zero_p(want.v);
  const long exponent = zero ? -1022 : std::max<long>(mpfr_get_exp(want.v) - 1, -1022);
  mpfr_mul_2si(difference.v, difference.v, -(std::min<long>(exponent, 1023) - 52), MPFR_RNDN);
  return std::abs(mpfr_get_d(difference.v, MPFR_RNDN));
}

inline void big_rsqrt(Big& r, const Big& x) {
  mpfr_sqrt(r.v, x.v, MPFR_RNDN);
  mpfr_ui_div(r.v, 1, r.v, MPFR_RNDN);
}

inline void big_sigmoid(Big& r, const Big& x) {
  mpfr_neg(r.v, x.v, MPFR_RNDN);
  mpfr_exp(r.v, r.v, MPFR_RNDN);
  mpfr_add_ui(r.v, r.v, 1, MPFR_RNDN);
  mpfr_ui_div(r.v, 1, r.v, MPFR_RNDN);
}

inline void big_gelu(Big& r, const Big& x) {
  if (mpfr_inf_p(x.v) && mpfr_signbit(x.v)) {
    mpfr_set_zero(r.v, -1);
    return;
  }
  mpfr_sqrt_ui(r.v, 2, MPFR_RNDN);
  mpfr_div(r.v, x.v, r.v, MPFR_RNDN);
  mpfr_neg(r.v, r.v, MPFR_RNDN);
  mpfr_erfc(r.v, r.v, MPFR_RNDN);
  mpfr_mul(r.v, r.v, x.v, MPFR_RNDN);
  mpfr_div_2ui(r.v, r.v, 1, MPFR_RNDN);
}

// Newton's iteration on erf(r) = x, on erfc for the digits near 1.
inline void big_erfinv(Big& r, const Big& x) {
  if (mpfr_cmpabs_ui(x.v, 1) >= 0 || mpfr_zero_p(x.v) || mpfr_nan_p(x.v)) {
    const double edge = mpfr_get_d(x.v, MPFR_RNDN);
    const double inf = std::numeric_limits<double>::infinity();
    const double value = std::abs(edge) == 1 ? std::copysign(inf, edge) : std::nan("");
    mpfr_set_d(r.v, edge == 0 ? edge : value, MPFR_RNDN);
    return;
  }
  Big rest, f, slope;
  mpfr_abs(rest.v, x.v, MPFR_RNDN);
  mpfr_ui_sub(rest.v, 1, rest.v, MPFR_RNDN);
  const double c = mpfr_get_d(rest.v, MPFR_RNDN);
  const double w = std::sqrt(-std::log(c));
  const double a = 1 - c;
  mpfr_set_d(r.v, a < 0.7 ? a * 0.9 : w - 0.3 / w, MPFR_RNDN);
  for (int i = 0; i < 9; ++i) {
    if (a < 0.7) {
      mpfr_erf(f.v, r.v, MPFR_RNDN);
      mpfr_abs(slope.v, x.v, MPFR_RNDN);
      mpfr_sub(f.v, f.v, slope.v, MPFR_RNDN);
    } else {
      mpfr_erfc(f.v, r.v, MPFR_RNDN);
      mpfr_sub(f.v, rest.v, f.v, MPFR_RNDN);
    }
    mpfr_sqr(slope.v, r.v, MPFR_RNDN);
    mpfr_exp(slope.v, slope.v, MPFR_RNDN);
    mpfr_mul(f.v, f.v, slope.v, MPFR_RNDN);
    mpfr_mul_d(f.v, f.v, 0.886226925452758, MPFR_RNDN);
    mpfr_sub(r.v, r.v, f.v, MPFR_RNDN);
  }
  if (mpfr_signbit(x.v)) mpfr_neg(r.v, r.v, MPFR_RNDN);
}

inline void big_lgamma(Big& r, const Big& x) {
  int sign = 0;
  mpfr_lgamma(r.v, &sign, x.v, MPFR_RNDN);
}

inline void big_logaddexp(Big& r, const Big& a, const Big& b) {
  Big d;
  const bool a_first = mpfr_cmp(a.v, b.v) >= 0;
  const Big& high = a_first ? a : b;
  mpfr_sub(d.v, a_first ? b.v : a.v, high.v, MPFR_RNDN);
  mpfr_exp(d.v, d.v, MPFR_RNDN);
  mpfr_log1p(d.v, d.v, MPFR_RNDN);
  mpfr_add(r.v, high.v, d.v, MPFR_RNDN);
}

}  // namespace tn::math_test
