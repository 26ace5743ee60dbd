#pragma once
// sin, cos and tan as the pieces a block driver needs: huge arguments take a rare, costly
// reduction.

#include "loop/math_f32_trig.h"

namespace tn::TN_LEVEL::math {

template <class V>
inline constexpr bool is_f32 = bit_width<V>() == 32;

enum class Ratio { kSin, kCos, kTan };

// The value is common(x), except where is_rare(x): there it is rare(x).
template <Ratio ratio>
struct Trigonometric {
  template <class V>
  [[gnu::always_inline]] static inline V common(V x) {
    const V value = [&] {
      if constexpr (is_f32<V>) {
        return of_f32(f32::reduce_angle(widen(x)));
      } else {
        return of_f64(f64::reduce_angle(x));
      }
    }();
    return ratio == Ratio::kCos ? value : f64::keep_tiny(x, value);
  }

  template <class V>
  [[gnu::always_inline]] static inline auto is_rare(V x) {
    return !(abs(x) < constant<V>(f64::kHugeAngle));
  }

  template <class V>
  [[gnu::always_inline]] static inline V rare(V x) {
    const V value = [&] {
      if constexpr (is_f32<V>) {
        return of_f32(f64::reduce_huge_angle(widen(x)));
      } else {
        return of_f64(f64::reduce_huge_angle(x));
      }
    }();
    return select(abs(x) < constant<V>(f64::kInf), value, constant<V>(f64::kNan));
  }

  template <class V>
  [[gnu::always_inline]] inline V operator()(V x) const {
    return rarely(is_rare(x), [&] { return rare(x); }, common(x));
  }

 private:
  template <class W>
  [[gnu::always_inline]] static inline auto of_f32(f64::Angle<W> angle) {
    if constexpr (ratio == Ratio::kTan) {
      return f32::tan_of(angle);
    } else {
      return f32::sin_of(angle, ratio == Ratio::kCos);
    }
  }

  template <class V>
  [[gnu::always_inline]] static inline V of_f64(f64::Angle<V> angle) {
    if constexpr (ratio == Ratio::kTan) {
      return f64::tan_of(angle);
    } else {
      return f64::sin_of(angle, ratio == Ratio::kCos);
    }
  }
};

using Sin = Trigonometric<Ratio::kSin>;
using Cos = Trigonometric<Ratio::kCos>;
using Tan = Trigonometric<Ratio::kTan>;

template <class V>
[[gnu::always_inline]] inline V sin(V x) {
  return Sin{}(x);
}
template <class V>
[[gnu::always_inline]] inline V cos(V x) {
  return Cos{}(x);
}
template <class V>
[[gnu::always_inline]] inline V tan(V x) {
  return Tan{}(x);
}

}  // namespace tn::TN_LEVEL::math
