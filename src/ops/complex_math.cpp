#include "ops/complex_math.h"

#include <cmath>
#include <limits>

namespace tn::ops::cx {

namespace sc = loop::sc;
using loop::constant_like;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// f of `z` in f64, rounded to the type of z's parts.
template <class F>
Z in_double(Z z, F f) {
  DType type = z.re.type();
  if (type == DType::f64) return f(z);
  Z r = f(Z{sc::cast(z.re, DType::f64), sc::cast(z.im, DType::f64)});
  return {sc::cast(r.re, type), sc::cast(r.im, type)};
}

template <class F>
Z in_double(Z a, Z b, F f) {
  DType type = a.re.type();
  if (type == DType::f64) return f(a, b);
  auto wide = [](Z z) { return Z{sc::cast(z.re, DType::f64), sc::cast(z.im, DType::f64)}; };
  Z r = f(wide(a), wide(b));
  return {sc::cast(r.re, type), sc::cast(r.im, type)};
}

/// a·b, but an exact zero stays zero beside an infinity: the imaginary part of a real infinity.
S times(S a, S b) {
  S zero = (b == 0.0) & (sc::abs(a) == kInfinity);
  return sc::select(zero, b, a * b);
}

Z times_i(Z z) { return {-z.im, z.re}; }
Z over_i(Z z) { return {z.im, -z.re}; }
Z conj(Z z) { return {z.re, -z.im}; }
Z one_minus(Z z) { return {1.0 - z.re, -z.im}; }
Z one_plus(Z z) { return {1.0 + z.re, z.im}; }

S is_infinite(Z z) { return (sc::abs(z.re) == kInfinity) | (sc::abs(z.im) == kInfinity); }

/// Where the angle is infinite or NaN, so that sine and cosine say nothing.
S has_no_angle(Z z) { return !(sc::abs(z.im) < kInfinity); }

Z divide_double(Z a, Z b) {
  // Smith: divide both parts by the larger one of the divisor, so that squares never overflow.
  S flip = sc::abs(b.re) < sc::abs(b.im);
  S large = sc::select(flip, b.im, b.re), small = sc::select(flip, b.re, b.im);
  S ratio = sc::select(large == 0.0, small, small / large);
  S scale = large + small * ratio;
  S re = sc::select(flip, a.re * ratio + a.im, a.re + a.im * ratio) / scale;
  S im = sc::select(flip, a.im * ratio - a.re, a.im - a.re * ratio) / scale;
  // A finite number over an infinite one is 0, which the ratio inf/inf would hide.
  S infinite = is_infinite(b);
  S finite = (sc::abs(a.re) < kInfinity) & (sc::abs(a.im) < kInfinity);
  S vanish = infinite & finite;
  return {sc::select(vanish, constant_like(re, 0), re),
          sc::select(vanish, constant_like(im, 0), im)};
}

Z sqrt_double(Z z) {
  // Quarter the huge and blow up the tiny: |x| + |z| must neither overflow nor lose bits.
  S most = sc::max(sc::abs(z.re), sc::abs(z.im));
  S huge = most > 1e300, tiny = most < 1e-290;
  S down = sc::select(huge, constant_like(most, 0x1p-4),
                      sc::select(tiny, constant_like(most, 0x1p108), constant_like(most, 1)));
  S up = sc::select(huge, constant_like(most, 0x1p2),
                    sc::select(tiny, constant_like(most, 0x1p-54), constant_like(most, 1)));
  S x = z.re * down, y = z.im * down;
  S t = sc::sqrt((sc::abs(x) + sc::hypot(x, y)) * 0.5);
  S rest = sc::select(t == 0.0, sc::abs(y), sc::abs(y) / (t * 2.0));
  S right = x >= 0.0;
  S re = sc::select(right, t, rest) * up;
  S im = sc::copysign(sc::select(right, rest, t), y) * up;
  S endless = sc::abs(z.im) == kInfinity;
  S along = sc::abs(z.re) == kInfinity;  // a real infinity: the other part is 0, not inf/inf
  re = sc::select(endless, sc::abs(z.im), sc::select(along & !right, sc::abs(z.im) * 0.0, re));
  im = sc::select(endless, z.im, sc::select(along & right, z.im * 0.0, im));
  return {re, im};
}

Z exp_double(Z z) {
  S e = sc::exp(z.re);
  S none = z.re == -kInfinity;  // whatever the angle is
  S re = times(e, sc::cos(z.im)), im = times(e, sc::sin(z.im));
  im = sc::select(z.im == 0.0, z.im, im);
  re = sc::select((z.re == kInfinity) & has_no_angle(z), e, re);
  S zero = constant_like(e, 0);
  return {sc::select(none, zero, re), sc::select(none, zero, im)};
}

/// log |x + iy|, accurate near 1, without overflow.
S log_abs(S x, S y) {
  S ax = sc::abs(x), ay = sc::abs(y);
  S most = sc::max(ax, ay), least = sc::min(ax, ay);
  S near = sc::log1p((most - 1.0) * (most + 1.0) + least * least) * 0.5;
  S ratio = sc::select((most == 0.0) | (most == kInfinity), constant_like(x, 0), least / most);
  S far = sc::log(most) + sc::log1p(ratio * ratio) * 0.5;
  S result = sc::select((most > 0.5) & (most < 2.0), near, far);
  return sc::select((ax == kInfinity) | (ay == kInfinity), constant_like(x, kInfinity), result);
}

Z log_double(Z z) { return {log_abs(z.re, z.im), sc::atan2(z.im, z.re)}; }

Z log1p_double(Z z) {
  S x = z.re, y = z.im;
  S small = sc::max(sc::abs(x), sc::abs(y)) < 0.5;
  S near = sc::log1p(x * (x + 2.0) + y * y) * 0.5;
  return {sc::select(small, near, log_abs(x + 1.0, y)), sc::atan2(y, x + 1.0)};
}

Z sinh_double(Z z) {
  S re = times(sc::sinh(z.re), sc::cos(z.im));
  S lost = ((z.re == 0.0) | (sc::abs(z.re) == kInfinity)) & has_no_angle(z);
  return {sc::select(lost, z.re, re), times(sc::cosh(z.re), sc::sin(z.im))};
}

Z cosh_double(Z z) {
  S re = times(sc::cosh(z.re), sc::cos(z.im)), im = times(sc::sinh(z.re), sc::sin(z.im));
  S lost = has_no_angle(z), size = sc::abs(z.re);
  return {sc::select((size == kInfinity) & lost, size, re),
          sc::select((size == 0.0) & lost, z.re, im)};
}

Z tanh_double(Z z) {
  S x = z.re, y = z.im;
  S t = sc::tan(y), s = sc::sinh(x);
  S beta = 1.0 + t * t, rho = sc::sqrt(1.0 + s * s), d = 1.0 + beta * s * s;
  S far = sc::abs(x) > 20.0;  // where the real part is ±1 to the last bit
  S far_re = sc::copysign(constant_like(x, 1), x);
  S angle = sc::sin(y) * sc::cos(y) * 4.0;
  S far_im = angle * sc::exp(sc::abs(x) * -2.0);
  return {sc::select(far, far_re, beta * rho * s / d), sc::select(far, far_im, t / d)};
}

Z asin_double(Z z) {
  Z minus = sqrt_double(one_minus(z)), plus = sqrt_double(one_plus(z));
  // At infinity the product of the roots is lost, but its angle is that of z.
  S far = is_infinite(z);
  S across = sc::select(far, sc::abs(z.im), multiply(minus, plus).re);
  S far_im = sc::copysign(constant_like(z.im, kInfinity), z.im);
  S im = sc::select(far, far_im, sc::asinh(multiply(conj(minus), plus).im));
  return {sc::atan2(z.re, across), im};
}

Z acos_double(Z z) {
  Z minus = sqrt_double(one_minus(z)), plus = sqrt_double(one_plus(z));
  S far = is_infinite(z);
  S far_im = -sc::copysign(constant_like(z.im, kInfinity), z.im);
  S re = sc::atan2(minus.re, plus.re) * 2.0, im = sc::asinh(multiply(conj(plus), minus).im);
  return {sc::select(far, sc::atan2(sc::abs(z.im), z.re), re), sc::select(far, far_im, im)};
}

Z acosh_double(Z z) {
  Z minus = sqrt_double({z.re - 1.0, z.im}), plus = sqrt_double(one_plus(z));
  S far = is_infinite(z);
  S re = sc::asinh(multiply(conj(minus), plus).re), im = sc::atan2(minus.im, plus.re) * 2.0;
  return {sc::select(far, constant_like(re, kInfinity), re),
          sc::select(far, sc::atan2(z.im, z.re), im)};
}

Z atanh_double(Z z) {
  S x = sc::abs(z.re), y = z.im;  // odd in z: compute right of the imaginary axis
  S less = 1.0 - x;
  S re = sc::log1p(x * 4.0 / (less * less + y * y)) * 0.25;
  S gap = sc::hypot(less, y);  // to the pole at 1; its square may vanish
  re = sc::select(gap < 1e-100, (M_LN2 - sc::log(gap)) * 0.5, re);
  S far = is_infinite(z);
  re = sc::select(far, constant_like(x, 0), re);
  S left = sc::bitcast(z.re, DType::i64) < 0.0;
  S along = sc::select(left, -y, y);
  S im = sc::atan2(along * 2.0, less * (1.0 + x) - y * y) * 0.5;
  im = sc::select(far, sc::copysign(constant_like(x, M_PI_2), along), im);
  return {sc::copysign(re, z.re), sc::select(left, -im, im)};
}

}  // namespace

Z multiply(Z a, Z b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

Z divide(Z a, Z b) {
  return in_double(a, b, [](Z p, Z q) { return divide_double(p, q); });
}

Z reciprocal(Z z) {
  return in_double(
      z, [](Z p) { return divide_double({constant_like(p.re, 1), constant_like(p.re, 0)}, p); });
}

S abs(Z z) { return sc::hypot(z.re, z.im); }

Z sign(Z z) {
  return in_double(z, [](Z p) {
    S size = sc::hypot(p.re, p.im);
    S none = size == 0.0;
    return Z{sc::select(none, size, p.re / size), sc::select(none, size, p.im / size)};
  });
}

Z sqrt(Z z) { return in_double(z, sqrt_double); }
Z exp(Z z) { return in_double(z, exp_double); }

Z expm1(Z z) {
  return in_double(z, [](Z p) {
    S half = sc::sin(p.im * 0.5);
    S re = sc::expm1(p.re) * sc::cos(p.im) - half * half * 2.0;
    re = sc::select((p.re == kInfinity) & has_no_angle(p), p.re, re);
    return Z{re, times(sc::exp(p.re), sc::sin(p.im))};
  });
}

Z log(Z z) { return in_double(z, log_double); }

Z log(Z z, double scale) {
  return in_double(z, [scale](Z p) {
    Z r = log_double(p);
    return Z{r.re * scale, r.im * scale};
  });
}

Z log1p(Z z) { return in_double(z, log1p_double); }

Z pow(Z z, Z w) {
  return in_double(z, w, [](Z p, Z q) {
    Z r = exp_double(multiply(q, log_double(p)));
    S zero = constant_like(p.re, 0);
    S no_base = (p.re == 0.0) & (p.im == 0.0);
    S no_power = (q.re == 0.0) & (q.im == 0.0);
    S re = sc::select(no_base, zero, r.re), im = sc::select(no_base, zero, r.im);
    return Z{sc::select(no_power, constant_like(p.re, 1), re), sc::select(no_power, zero, im)};
  });
}

Z sinh(Z z) { return in_double(z, sinh_double); }
Z cosh(Z z) { return in_double(z, cosh_double); }
Z tanh(Z z) { return in_double(z, tanh_double); }
Z sin(Z z) {
  return in_double(z, [](Z p) { return over_i(sinh_double(times_i(p))); });
}
Z cos(Z z) {
  return in_double(z, [](Z p) { return cosh_double(times_i(p)); });
}
Z tan(Z z) {
  return in_double(z, [](Z p) { return over_i(tanh_double(times_i(p))); });
}
Z asin(Z z) { return in_double(z, asin_double); }
Z acos(Z z) { return in_double(z, acos_double); }
Z acosh(Z z) { return in_double(z, acosh_double); }
Z atanh(Z z) { return in_double(z, atanh_double); }
Z asinh(Z z) {
  return in_double(z, [](Z p) { return over_i(asin_double(times_i(p))); });
}
Z atan(Z z) {
  return in_double(z, [](Z p) { return over_i(atanh_double(times_i(p))); });
}

}  // namespace tn::ops::cx
