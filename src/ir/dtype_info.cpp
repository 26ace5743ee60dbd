#include "tenon/dtype_info.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/type.h"

namespace tn {
namespace {

/// Bits of the mantissa, least and largest exponent of a normal number.
struct FloatFormat {
  DType type;
  int mantissa, low, high;
};
constexpr FloatFormat kFormats[] = {
    {DType::f8e4m3, 3, -6, 8},   {DType::f8e5m2, 2, -14, 15}, {DType::f16, 10, -14, 15},
    {DType::bf16, 7, -126, 127}, {DType::f32, 23, -126, 127}, {DType::f64, 52, -1022, 1023},
};

DType part_of(DType type) {
  return type == DType::c64 ? DType::f32 : type == DType::c128 ? DType::f64 : type;
}

}  // namespace

FloatInfo finfo(DType type) {
  DType part = part_of(type);
  const FloatFormat* found = std::ranges::find(kFormats, part, &FloatFormat::type);
  if (found == std::end(kFormats))
    fail(Fault::type, "finfo: not a floating-point type: {}", name_of(type));
  double eps = std::ldexp(1.0, -found->mantissa);
  // e4m3 gives its last pattern to NaN, the others a whole exponent to infinities.
  int steps = part == DType::f8e4m3 ? 2 : 1;
  double max = std::ldexp(2.0 - steps * eps, found->high);
  return {static_cast<int>(8 * size_of(part)), eps, max, -max, std::ldexp(1.0, found->low), part};
}

IntegerInfo iinfo(DType type) {
  if (!isdtype(type, {Kind::integer, Kind::natural}))
    fail(Fault::type, "iinfo: not an integer type: {}", name_of(type));
  int bits = static_cast<int>(8 * size_of(type));
  bool is_signed = kind_of(type) == Kind::integer;
  uint64_t max = ~uint64_t{0} >> (64 - bits + is_signed);
  return {bits, is_signed ? -static_cast<int64_t>(max) - 1 : 0, max, type};
}

bool isdtype(DType type, std::initializer_list<Kind> kinds) {
  return std::ranges::find(kinds, kind_of(type)) != kinds.end();
}

bool can_cast(DType from, DType to) { return promote(from, to) == to; }

DType result_type(std::initializer_list<DType> types) {
  if (types.size() == 0) fail("result_type: there are no types");
  DType all = *types.begin();
  for (DType type : types) all = promote(all, type);
  return all;
}

Shape broadcast_shapes(std::initializer_list<Shape> shapes) {
  Shape all;
  for (const Shape& shape : shapes) all = broadcast(all, shape, "broadcast_shapes");
  return all;
}

}  // namespace tn
