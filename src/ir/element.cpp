#include "ir/element.h"

#include <cmath>
#include <complex>
#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "base/text.h"

namespace tn {

static std::string real_text(double v, int digits) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  if (v == std::trunc(v) && std::fabs(v) < 1e15) return format("{:.0f}", v);
  return format("{:.{}g}", v, digits);
}

Scalar element_at(DType dtype, const void* at) {
  auto read = [&]<class T>(T) {
    T v;
    std::memcpy(&v, at, sizeof v);
    return v;
  };
  switch (dtype) {
    case DType::b1:
      return Scalar(read(uint8_t{}) != 0);
    case DType::i8:
      return Scalar(int64_t{read(int8_t{})});
    case DType::i16:
      return Scalar(int64_t{read(int16_t{})});
    case DType::i32:
      return Scalar(int64_t{read(int32_t{})});
    case DType::i64:
      return Scalar(read(int64_t{}));
    case DType::u8:
      return Scalar(int64_t{read(uint8_t{})});
    case DType::u16:
      return Scalar(int64_t{read(uint16_t{})});
    case DType::u32:
      return Scalar(int64_t{read(uint32_t{})});
    case DType::u64:
      return Scalar(read(uint64_t{}));
    case DType::f32:
      return Scalar(double{read(float{})});
    case DType::f64:
      return Scalar(read(double{}));
    case DType::c64:
      return Scalar(std::complex<double>(read(std::complex<float>{})));
    case DType::c128:
      return Scalar(read(std::complex<double>{}));
    case DType::f16:
      return Scalar(double{float16_to_float(read(uint16_t{}))});
    case DType::bf16:
      return Scalar(double{bfloat16_to_float(read(uint16_t{}))});
    case DType::f8e4m3:
      return Scalar(double{float8_e4m3fn_to_float(read(uint8_t{}))});
    case DType::f8e5m2:
      return Scalar(double{float8_e5m2_to_float(read(uint8_t{}))});
  }
  return {};
}

bool fits(const Scalar& number, DType type) {
  if (!is_integer(type) || !number.is_integral()) return true;
  int bits = static_cast<int>(size_of(type)) * 8;
  bool natural = kind_of(type) == Kind::natural;
  int64_t value = number.integer;
  if (number.kind == Kind::natural) return natural && bits == 64;
  if (natural) return value >= 0 && (bits == 64 || value >> bits == 0);
  return bits == 64 || value >> (bits - 1) == 0 || value >> (bits - 1) == -1;
}

void check_fits(std::string_view op, const Scalar& number, DType type) {
  if (!fits(number, type)) fail("{}: the number {} does not fit {}", op, to_text(number, 17), type);
}

std::string to_text(const Scalar& s, int digits) {
  switch (s.kind) {
    case Kind::boolean:
      return s.integer ? "True" : "False";
    case Kind::integer:
      return format("{}", s.integer);
    case Kind::natural:
      return format("{}", static_cast<uint64_t>(s.integer));
    case Kind::floating:
      return real_text(s.real, digits);
    case Kind::complex:
      break;
  }
  bool negative = std::signbit(s.imag) && !std::isnan(s.imag);
  return format("{}{}{}j", real_text(s.real, digits), negative ? "-" : "+",
                real_text(std::fabs(s.imag), digits));
}

}  // namespace tn
