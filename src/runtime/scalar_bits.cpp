#include "runtime/scalar_bits.h"

#include <cstring>

#include "base/half.h"

namespace tn {

static int64_t to_integer(const Scalar& value, DType type) {
  if (value.is_integral()) return value.integer;
  double x = value.real;
  int bits = static_cast<int>(size_of(type)) * 8;
  bool sign = kind_of(type) == Kind::integer;
  double top = __builtin_ldexp(1.0, sign ? bits - 1 : bits), low = sign ? -top : 0;
  if (x != x) return 0;
  if (x >= top) return static_cast<int64_t>(~uint64_t{0} >> (64 - (sign ? bits - 1 : bits)));
  if (x <= low) return sign ? -static_cast<int64_t>(uint64_t{1} << (bits - 2)) * 2 : 0;
  return x >= 0x1p63 ? static_cast<int64_t>(static_cast<uint64_t>(x)) : static_cast<int64_t>(x);
}

static float to_float(const Scalar& value) {
  if (!value.is_integral()) return static_cast<float>(value.real);
  if (value.kind == Kind::natural) return static_cast<float>(static_cast<uint64_t>(value.integer));
  return static_cast<float>(value.integer);
}

std::array<std::byte, 8> element_bits(const Scalar& value, DType type) {
  std::array<std::byte, 8> bits{};
  auto put = [&](auto x) { std::memcpy(bits.data(), &x, sizeof x); };
  float odd = double_to_float_odd(value.real);
  switch (type) {
    case DType::b1:
      put(static_cast<uint8_t>(value.is_integral() ? value.integer != 0 : value.real != 0));
      break;
    case DType::f32:
      put(to_float(value));
      break;
    case DType::f64:
      put(value.real);
      break;
    case DType::f16:
      put(float_to_float16(odd));
      break;
    case DType::bf16:
      put(float_to_bfloat16(odd));
      break;
    case DType::f8e4m3:
      put(float_to_float8_e4m3fn(odd));
      break;
    case DType::f8e5m2:
      put(float_to_float8_e5m2(odd));
      break;
    default: {
      int64_t x = to_integer(value, type);
      std::memcpy(bits.data(), &x, static_cast<size_t>(size_of(type)));
    }
  }
  return bits;
}

}  // namespace tn
