#include "ops/index_bounds.h"

#include <algorithm>

#include "base/error.h"

namespace tn::ops {
namespace {

std::string fact_of(int axis, const Type& x) {
  return format("is out of bounds for axis {} of extent {} ({})", axis, x.shape[axis], x);
}

/// Numbers beyond 63 bits are negative here, and so outside of a natural type's bounds.
template <class T>
const T* find_outside(const T* begin, int64_t count, int64_t low, int64_t high) {
  auto is_outside = [=](T value) {
    auto wide = static_cast<int64_t>(value);
    return wide < low || wide >= high;
  };
  bool any = false;  // without an early end the loop is vectorised
  for (int64_t i = 0; i < count; ++i) any |= is_outside(begin[i]);
  return any ? std::find_if(begin, begin + count, is_outside) : nullptr;
}

template <class T>
void check_each(std::string_view op, const Tensor& indices, const Type& x, int axis, int64_t low) {
  int64_t extent = x.shape[axis].value();
  Tensor here = indices.to(Device());
  auto* values = static_cast<const T*>(here.data());
  if (const T* found = find_outside(values, indices.size(), low, extent))
    fail(Fault::index, "{}: {} {}", op, *found, fact_of(axis, x));
}

}  // namespace

OutOfBounds::OutOfBounds(int64_t at, int axis, const Type& x, size_t which)
    : UserError(Fault::index, format("index: {} {}", at, fact_of(axis, x))),
      index(at),
      extent(x.shape[axis].value()),
      from_last(which),
      fact(fact_of(axis, x)) {}

void check_bounds(std::string_view op, const Tensor& indices, const Type& x, int axis,
                  Negative negative) {
  if (!indices.is_evaluated() || !x.shape[axis].is_const()) return;
  int64_t low = negative == Negative::wraps ? -x.shape[axis].value() : 0;
  switch (indices.dtype()) {
    case DType::i8:
      return check_each<int8_t>(op, indices, x, axis, low);
    case DType::i16:
      return check_each<int16_t>(op, indices, x, axis, low);
    case DType::i32:
      return check_each<int32_t>(op, indices, x, axis, low);
    case DType::i64:
      return check_each<int64_t>(op, indices, x, axis, low);
    case DType::u8:
      return check_each<uint8_t>(op, indices, x, axis, 0);
    case DType::u16:
      return check_each<uint16_t>(op, indices, x, axis, 0);
    case DType::u32:
      return check_each<uint32_t>(op, indices, x, axis, 0);
    case DType::u64:
      return check_each<uint64_t>(op, indices, x, axis, 0);
    default:
      return;  // the op refuses it
  }
}

}  // namespace tn::ops
