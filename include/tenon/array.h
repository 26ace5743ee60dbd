#pragma once
// Tensors from values of C++: numbers, lists in braces, and ranges such as vectors, arrays, spans.
//
//     tn::Tensor x = tn::array({1.f, 2.f, 3.f}), m = tn::array({{1, 2}, {3, 4}});
//     std::vector<float> v = ...;
//     tn::Tensor a = tn::array(v), b = tn::array(v, {2, 3});
//     tn::Tensor c = tn::array(0.3, tn::float64), d = tn::array({{1, 2}, {3, 4}}, tn::float16);
#include "tenon/tensor.h"

namespace tn {

template <class T>
concept IsElement = std::is_arithmetic_v<T> || IsComplex<T>;

/// Elements in a row in memory.
template <class R>
concept IsRow = requires(const R& r) {
  r.data();
  r.size();
} && IsElement<std::remove_cvref_t<decltype(*std::declval<const R&>().data())>>;
/// Rows of one length.
template <class R>
concept IsRows = requires(const R& r) {
  r.begin()->begin();
  r.size();
};

/// A 0-d tensor: f32 of floating point, i64 of integers, c64 of complex numbers.
template <IsElement T>
Tensor array(T value) {
  return Tensor::from_scalar(Scalar(value));
}

/// Elements in row-major order, as many as the shape has.
template <IsRow R>
Tensor array(const R& values, const Shape& shape,
             std::source_location at = std::source_location::current()) {
  using T = std::remove_cvref_t<decltype(*values.data())>;
  return from_elements(values.data(), values.size(), Tensor::dtype_of<T>(), shape, at);
}
template <IsElement T>
Tensor array(const std::vector<T>& values, const Shape& shape,
             std::source_location at = std::source_location::current()) {
  if constexpr (std::same_as<T, bool>) {
    std::vector<uint8_t> bytes(values.begin(), values.end());
    return from_elements(bytes.data(), bytes.size(), DType::b1, shape, at);
  } else {
    return from_elements(values.data(), values.size(), Tensor::dtype_of<T>(), shape, at);
  }
}
/// With one axis.
template <class R>
  requires(IsRow<R> || std::same_as<R, std::vector<bool>>)
Tensor array(const R& values) {
  return array(values, Shape{static_cast<int64_t>(values.size())});
}
template <IsElement T>
Tensor array(std::initializer_list<T> values, const Shape& shape,
             std::source_location at = std::source_location::current()) {
  return array(std::vector<T>(values), shape, at);
}
template <IsElement T>
Tensor array(std::initializer_list<T> values) {
  return array(std::vector<T>(values));
}

/// Of any other range of numbers, such as a view.
template <class R>
  requires(!IsRow<std::remove_cvref_t<R>> &&
           !std::same_as<std::remove_cvref_t<R>, std::vector<bool>> &&
           IsElement<std::remove_cvref_t<decltype(*std::declval<R&>().begin())>>)
Tensor array(R&& values) {
  std::vector<std::remove_cvref_t<decltype(*values.begin())>> elements;
  for (auto&& value : values) elements.push_back(value);
  return array(elements);
}

[[noreturn]] void fail_uneven_rows(size_t first, size_t other, std::source_location at);

/// The elements of nested rows, and their lengths.
template <class T>
struct Rows {
  std::vector<T> elements;
  Shape shape;
  std::source_location at;

  template <class R>
  Rows(const R& rows, std::source_location place) : at(place) {
    add(rows, 0);
  }
  template <class R>
  void add(const R& row, int depth) {
    auto size = static_cast<int64_t>(row.size());
    if (shape.rank() == depth) shape.push_back(size);
    if (!shape[depth].is(size))
      fail_uneven_rows(static_cast<size_t>(shape[depth].raw), row.size(), at);
    for (const auto& part : row) {
      if constexpr (IsElement<std::remove_cvref_t<decltype(part)>>)
        elements.push_back(part);
      else
        add(part, depth + 1);
    }
  }
};
template <class R>
struct RowsElement {
  using type = R;
};
template <class R>
  requires(requires { typename R::value_type; } && !IsComplex<R>)
struct RowsElement<R> : RowsElement<typename R::value_type> {};

/// One axis a level: rows of rows have the same length.
template <class R>
  requires(IsRows<R> && !IsRow<R>)
Tensor array(const R& rows, std::source_location at = std::source_location::current()) {
  using T = typename RowsElement<R>::type;
  Rows<T> all(rows, at);
  return array(all.elements, all.shape);
}
template <IsElement T>
Tensor array(std::initializer_list<std::initializer_list<T>> rows,
             std::source_location at = std::source_location::current()) {
  Rows<T> all(rows, at);
  return array(all.elements, all.shape);
}
template <IsElement T>
Tensor array(std::initializer_list<std::initializer_list<std::initializer_list<T>>> rows,
             std::source_location at = std::source_location::current()) {
  Rows<T> all(rows, at);
  return array(all.elements, all.shape);
}

template <IsElement T>
Tensor array(
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
        rows,
    std::source_location at = std::source_location::current()) {
  Rows<T> all(rows, at);
  return array(all.elements, all.shape);
}

// For the library.
Tensor array_as(const Scalar& value, DType dtype, const std::source_location& at);
Tensor array_as(const Tensor& values, DType dtype, const std::source_location& at);

/// With elements of another type, as `astype` converts them. An integer that does not fit an
/// integer type is an error.
template <IsElement T, std::same_as<DType> D>
Tensor array(T value, D dtype, std::source_location at = std::source_location::current()) {
  return array_as(Scalar(value), dtype, at);
}
template <class R, std::same_as<DType> D>
  requires(!IsElement<std::remove_cvref_t<R>>)
Tensor array(R&& values, D dtype, std::source_location at = std::source_location::current()) {
  if constexpr (requires { array(values, at); })
    return array_as(array(values, at), dtype, at);
  else
    return array_as(array(values), dtype, at);
}
template <IsElement T, std::same_as<DType> D>
Tensor array(std::initializer_list<T> values, D dtype,
             std::source_location at = std::source_location::current()) {
  return array_as(array(values), dtype, at);
}
template <IsElement T, std::same_as<DType> D>
Tensor array(std::initializer_list<std::initializer_list<T>> rows, D dtype,
             std::source_location at = std::source_location::current()) {
  return array_as(array(rows, at), dtype, at);
}
template <IsElement T, std::same_as<DType> D>
Tensor array(std::initializer_list<std::initializer_list<std::initializer_list<T>>> rows, D dtype,
             std::source_location at = std::source_location::current()) {
  return array_as(array(rows, at), dtype, at);
}

}  // namespace tn
