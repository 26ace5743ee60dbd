#pragma once
// Elements of a tensor by their indices, as mdspan has them.
//
//     tn::Elements<float, 2> m(x);
//     for (int64_t i = 0; i < m.extent(0); ++i) total += m(i, 0);
#include <array>

#include "tenon/tensor.h"

namespace tn {

/// Fails unless `x` has so many axes.
void check_rank(const Tensor& x, int rank);

/// A view of the elements of a tensor with N axes, row-major. It computes them, and keeps them
/// alive; those of another device are copied to the host.
template <class T, size_t N>
class Elements {
 public:
  explicit Elements(const Tensor& x) : held_(x.to(Device())) {
    check_rank(x, static_cast<int>(N));
    data_ = held_.template data<T>();
    for (size_t axis = 0; axis < N; ++axis) extents_[axis] = x.dim(static_cast<int>(axis));
  }

  static constexpr size_t rank() { return N; }
  int64_t extent(size_t axis) const { return extents_[axis]; }
  size_t size() const { return static_cast<size_t>(held_.size()); }
  /// Indices are not checked.
  template <std::integral... I>
    requires(sizeof...(I) == N)
  const T& operator()(I... indices) const {
    int64_t at = 0;
    size_t axis = 0;
    ((at = at * extents_[axis++] + static_cast<int64_t>(indices)), ...);
    return data_[at];
  }
  /// All of them, in row-major order.
  std::span<const T> span() const { return {data_, size()}; }
  auto begin() const { return span().begin(); }
  auto end() const { return span().end(); }

 private:
  Tensor held_;
  const T* data_;
  std::array<int64_t, N> extents_;
};

}  // namespace tn
