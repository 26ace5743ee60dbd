#pragma once
// Indexed: a vector whose elements are numbered by integers of any type.
#include <concepts>
#include <cstddef>
#include <vector>

namespace tn {

template <class T>
struct Indexed : std::vector<T> {
  using std::vector<T>::vector;

  decltype(auto) operator[](std::integral auto i) {
    return std::vector<T>::operator[](static_cast<size_t>(i));
  }
  decltype(auto) operator[](std::integral auto i) const {
    return std::vector<T>::operator[](static_cast<size_t>(i));
  }
};

}  // namespace tn
