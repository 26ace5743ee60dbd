#pragma once
// Elements as unsigned integers in sorting order, so that every type sorts the same way.
#include <bit>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/element_kind.h"

namespace tn {

using Uint128 = unsigned __int128;

template <size_t Bytes>
using UintOf = std::conditional_t<
    Bytes == 1, uint8_t,
    std::conditional_t<Bytes == 2, uint16_t,
                       std::conditional_t<Bytes == 4, uint32_t,
                                          std::conditional_t<Bytes == 8, uint64_t, Uint128>>>>;

template <class T>
using KeyOf = UintOf<sizeof(T)>;

template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<std::complex<T>> = true;
template <class T>
constexpr bool kIsReal = !std::is_integral_v<T> && !kIsComplex<T>;  // a floating type, not complex

/// The bits of positive infinity of a floating type: magnitudes above it are NaN.
template <class T>
constexpr KeyOf<T> kInfinityBits =
    static_cast<KeyOf<T>>(std::is_same_v<T, double>        ? 0x7ff0000000000000u
                          : std::is_same_v<T, float>       ? 0x7f800000u
                          : std::is_same_v<T, Float16Bits> ? 0x7c00u
                                                           : 0x7f80u);

template <class T>
constexpr KeyOf<T> kSignBit = static_cast<KeyOf<T>>(KeyOf<T>{1} << (8 * sizeof(T) - 1));

template <class T>
constexpr bool is_nan(T value) {
  if constexpr (kIsComplex<T>)
    return value != value;
  else if constexpr (kIsReal<T>)
    return (std::bit_cast<KeyOf<T>>(value) & ~kSignBit<T>) > kInfinityBits<T>;
  else
    return false;
}

/// A bijection from numbers to keys: -0 comes right before +0. NaN must be kept out.
template <class T>
constexpr KeyOf<T> exact_key(T value) {
  auto bits = std::bit_cast<KeyOf<T>>(value);
  if constexpr (std::is_unsigned_v<T>) return bits;
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) return bits ^ kSignBit<T>;
  return static_cast<KeyOf<T>>(bits & kSignBit<T> ? ~bits : bits | kSignBit<T>);
}

template <class T>
constexpr T from_exact_key(KeyOf<T> key) {
  if constexpr (std::is_unsigned_v<T>) return key;
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
    return std::bit_cast<T>(static_cast<KeyOf<T>>(key ^ kSignBit<T>));
  else
    return std::bit_cast<T>(static_cast<KeyOf<T>>(key & kSignBit<T> ? key ^ kSignBit<T> : ~key));
}

template <class Key>
constexpr Key kNanKey = static_cast<Key>(~Key{0});

/// Equal elements have equal keys: -0 is 0, and NaN is above all, in either direction.
template <class T>
constexpr KeyOf<T> order_key(T value, bool descending = false) {
  using Key = KeyOf<T>;
  if (is_nan(value)) return kNanKey<Key>;
  Key key;
  if constexpr (kIsComplex<T>) {
    key =
        static_cast<Key>(Key{order_key(value.real())} << (4 * sizeof(T)) | order_key(value.imag()));
  } else {
    bool minus_zero = kIsReal<T> && std::bit_cast<Key>(value) == kSignBit<T>;
    key = exact_key(minus_zero ? T{} : value);
  }
  return static_cast<Key>(descending ? ~key : key);
}

}  // namespace tn
