#pragma once
// The element of a tensor of size 1 as a number of C++.
#include <limits>

#include "tenon/tensor.h"

namespace tn {

Scalar item_of(const Tensor& x, const std::source_location& at = std::source_location::current());
/// Of a real number.
Scalar real_item_of(const Tensor& x, const std::source_location& at);
/// Of a real number between `least` and `greatest`, without its fraction.
int64_t integer_item_of(const Tensor& x, int64_t least, uint64_t greatest,
                        const std::source_location& at);

template <class T>
T Tensor::item(Place at) const {
  if constexpr (std::is_same_v<T, bool>) {
    Scalar s = item_of(*this, at);
    return s.is_integral() ? s.integer != 0 : s.real != 0 || s.imag != 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(real_item_of(*this, at).real);
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    return static_cast<T>(integer_item_of(*this, static_cast<int64_t>(Limits::min()),
                                          static_cast<uint64_t>(Limits::max()), at));
  } else {
    Scalar s = item_of(*this, at);
    return T(static_cast<typename T::value_type>(s.real),
             static_cast<typename T::value_type>(s.imag));
  }
}

}  // namespace tn
