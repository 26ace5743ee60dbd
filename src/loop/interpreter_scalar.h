#pragma once
// The scalar operations of LoopIR on native types, inlined into the loops of one CPU level.
//
// Integers compute on unsigned types, so that overflow wraps.
#include <cstdint>
#include <type_traits>

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
      return (a > b) | (a != a) ? a : b;
    else
      return a > b ? a : b;
  }
};
struct Min {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    if constexpr (kFloat<T>)
      return (a < b) | (a != a) ? a : b;
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

}  // namespace
}  // namespace tn::TN_LEVEL
