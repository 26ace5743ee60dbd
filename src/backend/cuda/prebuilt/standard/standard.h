#pragma once
// What the math functions use of the standard library, for device code: there is none for GPUs.

using int8_t = __INT8_TYPE__;
using int16_t = __INT16_TYPE__;
using int32_t = __INT32_TYPE__;
using int64_t = __INT64_TYPE__;
using uint8_t = __UINT8_TYPE__;
using uint16_t = __UINT16_TYPE__;
using uint32_t = __UINT32_TYPE__;
using uint64_t = __UINT64_TYPE__;

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& x) {
  return __builtin_bit_cast(To, x);
}

template <bool condition, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool condition, class A, class B>
using conditional_t = typename conditional<condition, A, B>::type;

template <class T>
inline constexpr bool is_class_v = __is_class(T);
template <class T>
inline constexpr bool is_arithmetic_v = __is_arithmetic(T);
template <class T>
inline constexpr bool is_floating_point_v = __is_floating_point(T);
template <class T>
inline constexpr bool is_signed_v = __is_signed(T);
template <class A, class B>
inline constexpr bool is_same_v = __is_same(A, B);
template <class T>
using make_unsigned_t = __make_unsigned(T);
template <class T>
T&& declval();

}  // namespace std
