#include "ops/index_bounds.h"

#include <algorithm>

#include "base/error.h"
#include "ir/node.h"
#include "ops/runtime_types.h"
#include "runtime/device.h"

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
  if (!is_integer(indices.dtype())) return;  // the op refuses it
  const Buffer& held = *slot_of(indices).data.load(std::memory_order_acquire);
  // Where other processes hold a part, workers check theirs when the op runs.
  if (!held.device.is_host() && !runtime_of(held.device).is_readable(held)) return;
  Tensor here = indices.to(Device());
  with_element(element_of(indices.dtype()), [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      int64_t least = std::is_unsigned_v<T> ? 0 : low;
      auto* values = static_cast<const T*>(here.data());
      if (const T* found = find_outside(values, indices.size(), least, x.shape[axis].value()))
        fail(Fault::index, "{}: {} {}", op, *found, fact_of(axis, x));
    }
  });
}

}  // namespace tn::ops
