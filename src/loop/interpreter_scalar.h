#pragma once
// The scalar operations of LoopIR on native types, inlined into the loops of one CPU level.
//
// Integers compute on unsigned types, so that overflow wraps.
#include <cstdint>
#include <type_traits>

#ifndef TN_LEVEL
#define TN_LEVEL generic
#endif

namespace tn::TN_LEVEL {
namespace {

template <class T>
inline constexpr bool kFloat = std::is_floating_point_v<T>;
template <class T>
inline constexpr bool kSigned = std::is_signed_v<T> && !kFloat<T>;
template <class T, bool floating = kFloat<T>>
struct Wrap {
  // Narrow types promote to int, whose product of two u16 may overflow: compute in 32 bits at
  // least.
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
template <class T>
struct Wrap<T, true> {
  using type = T;
};
template <class T>
using Wide = typename Wrap<T>::type;

struct Add {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  }
};
struct Sub {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b));
  }
};
struct Mul {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  }
};
struct Div {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    if constexpr (kFloat<T>) {
      return a / b;
    } else {
      if (b == 0) return 0;
      if constexpr (kSigned<T>)
        if (b == -1) return Sub::apply(T{0}, a);
      return static_cast<T>(a / b);
    }
  }
};
struct Rem {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    if constexpr (kFloat<T>) {
      if constexpr (sizeof(T) == 4)
        return __builtin_fmodf(a, b);
      else
        return __builtin_fmod(a, b);
    } else {
      if (b == 0) return 0;
      if constexpr (kSigned<T>)
        if (b == -1) return 0;
      return static_cast<T>(a % b);
    }
  }
};
// A NaN operand is the result; of two zeros or two NaNs, max and min differ only in the choice
// below.
struct Max {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    if constexpr (kFloat<T>)
      return ((a > b) | (a != a)) ? a : b;
    else
      return a > b ? a : b;
  }
};
struct Min {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    if constexpr (kFloat<T>)
      return ((a < b) | (a != a)) ? a : b;
    else
      return a < b ? a : b;
  }
};
struct And {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
// A negative count is a large one: both shift everything out.
struct Shl {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    using U = std::make_unsigned_t<T>;
    constexpr U kBits = 8 * sizeof(T);
    U count = static_cast<U>(b);
    auto shifted = static_cast<Wide<T>>(a) << (count & (kBits - 1));
    return count < kBits ? static_cast<T>(shifted) : T{0};
  }
};
struct Shr {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    using U = std::make_unsigned_t<T>;
    constexpr U kBits = 8 * sizeof(T);
    U count = static_cast<U>(b);
    T rest = a < T{0} ? static_cast<T>(-1) : T{0};
    return count < kBits ? static_cast<T>(a >> (count & (kBits - 1))) : rest;
  }
};

/// Neutral elements of reductions. Of float sums it is -0, which changes no operand.
template <class T, class F>
constexpr T identity() {
  if constexpr (std::is_same_v<F, Add>) {
    return kFloat<T> ? static_cast<T>(-0.0) : T{0};
  } else if constexpr (std::is_same_v<F, Mul>) {
    return T{1};
  } else if constexpr (std::is_same_v<F, And>) {
    return static_cast<T>(~T{0});
  } else if constexpr (std::is_same_v<F, Or>) {
    return T{0};
  } else {
    constexpr bool max = std::is_same_v<F, Max>;
    if constexpr (kFloat<T>) {
      return max ? -static_cast<T>(__builtin_inff()) : static_cast<T>(__builtin_inff());
    } else {
      using U = std::make_unsigned_t<T>;
      constexpr T lowest = kSigned<T> ? static_cast<T>(U{1} << (8 * sizeof(T) - 1)) : T{0};
      return max ? lowest : static_cast<T>(~lowest);
    }
  }
}

// The largest T below 2^k, as F: what a float is clamped to before it becomes a T.
template <class T, class F>
[[gnu::always_inline]] inline T saturate(F x) {
  constexpr int kBits = 8 * sizeof(T) - (kSigned<T> ? 1 : 0);
  constexpr F kTop =
      static_cast<F>(uint64_t{1} << (kBits - 1)) * 2;  // 2^kBits: the first too large
  constexpr F kLow = kSigned<T> ? -kTop : F{0};
  constexpr T kMost = static_cast<T>(~uint64_t{0} >> (64 - kBits));
  constexpr T kLeast = kSigned<T> ? static_cast<T>(~kMost) : T{0};
  bool inside = (x > kLow - F{1}) & (x < kTop);
  if constexpr (sizeof(T) * 8 > (sizeof(F) == 4 ? 24 : 53)) inside = (x >= kLow) & (x < kTop);
  F safe = inside ? x : F{0};
  T result;
  if constexpr (sizeof(T) == 8) {
    result = static_cast<T>(safe);
  } else if constexpr (sizeof(T) == 4 && !kSigned<T>) {
    result = static_cast<T>(static_cast<int64_t>(safe));
  } else {
    result = static_cast<T>(static_cast<int32_t>(safe));
  }
  T outside = x >= kTop ? kMost : x < F{0} ? kLeast : T{0};
  return inside ? result : outside;
}

// As a double, of which long integers keep a multiple of 2^11 that is odd when bits were lost: a
// later rounding to fewer bits is then right.
template <class T>
[[gnu::always_inline]] inline double to_double_odd(T x) {
  if constexpr (sizeof(T) == 8) {
    constexpr uint64_t kExact = uint64_t{1} << 53;
    uint64_t bits = static_cast<uint64_t>(x);
    bool exact = kSigned<T> ? bits + kExact <= 2 * kExact : bits <= kExact;
    uint64_t odd = (bits & ~uint64_t{0x7ff}) | (bits & 0x7ff ? 0x800 : 0);
    return static_cast<double>(static_cast<T>(exact ? bits : odd));
  } else {
    return static_cast<double>(x);
  }
}

}  // namespace
}  // namespace tn::TN_LEVEL
