#pragma once
// LAPACK's functions by name, from the library that the system has; loaded on first use.
#include <complex>
#include <cstddef>

namespace tn::lapack {

using Int = int;  // the libraries named in lapack.cpp count in 32 bits

/// The address of a function, by its Fortran name. Fails with what to install.
void* find(const char* name);

template <class T>
constexpr char kPrefix = 0;
template <>
inline constexpr char kPrefix<float> = 's';
template <>
inline constexpr char kPrefix<double> = 'd';
template <>
inline constexpr char kPrefix<std::complex<float>> = 'c';
template <>
inline constexpr char kPrefix<std::complex<double>> = 'z';

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

/// A text argument; its length comes after all arguments, as Fortran passes it.
using Text = const char*;
using Length = size_t;

/// `find` of T's variant of a function: the first letter of `name` is replaced.
template <class T>
void* find_for(const char* name) {
  char full[16];
  size_t i = 0;
  for (; name[i] && i + 2 < sizeof full; ++i) full[i] = name[i];
  full[0] = kPrefix<T>;
  full[i] = '_', full[i + 1] = 0;
  return find(full);
}

}  // namespace tn::lapack
