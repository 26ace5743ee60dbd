#include "ir/dtype.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tn {

using enum DType;

static constexpr std::array<DTypeInfo, kDTypes> kInfo = {{
    {"bool", "bool", 1, Kind::boolean, b1, i64, b1},
    {"i8", "int8", 1, Kind::integer, i8, i64, i8},
    {"i16", "int16", 2, Kind::integer, i16, i64, i16},
    {"i32", "int32", 4, Kind::integer, i32, i64, i32},
    {"i64", "int64", 8, Kind::integer, i64, i64, i64},
    {"u8", "uint8", 1, Kind::natural, u8, u64, u8},
    {"u16", "uint16", 2, Kind::natural, u16, u64, u16},
    {"u32", "uint32", 4, Kind::natural, u32, u64, u32},
    {"u64", "uint64", 8, Kind::natural, u64, u64, u64},
    {"f8e4m3", "float8_e4m3", 1, Kind::floating, f32, f32, f8e4m3},
    {"f8e5m2", "float8_e5m2", 1, Kind::floating, f32, f32, f8e5m2},
    {"f16", "float16", 2, Kind::floating, f32, f32, f16},
    {"bf16", "bfloat16", 2, Kind::floating, f32, f32, bf16},
    {"f32", "float32", 4, Kind::floating, f32, f32, f32},
    {"f64", "float64", 8, Kind::floating, f64, f64, f64},
    {"c64", "complex64", 8, Kind::complex, c64, c64, f32},
    {"c128", "complex128", 16, Kind::complex, c128, c128, f64},
}};

const DTypeInfo& info(DType type) { return kInfo[static_cast<size_t>(type)]; }
int64_t size_of(DType type) { return info(type).size; }
Kind kind_of(DType type) { return info(type).kind; }
std::string_view name_of(DType type) { return info(type).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypes; ++i)
    if (kInfo[i].text == text || kInfo[i].name == text) return static_cast<DType>(i);
  return {};
}

static DType sized(Kind kind, int size) {
  for (int i = 0; i < kDTypes; ++i)
    if (kInfo[i].kind == kind && kInfo[i].size == size) return static_cast<DType>(i);
  return f32;
}

static DType promote_integers(DType a, DType b) {
  const DTypeInfo &x = info(a), &y = info(b);
  if (x.kind == y.kind) return x.size >= y.size ? a : b;
  const DTypeInfo& sign = x.kind == Kind::integer ? x : y;
  const DTypeInfo& plain = x.kind == Kind::integer ? y : x;
  if (sign.size > plain.size) return sized(Kind::integer, sign.size);
  return plain.size == 8 ? f64 : sized(Kind::integer, plain.size * 2);  // u64 with a sign: f64
}

static DType promote_floats(DType a, DType b) {
  if (is_storage_only(a) || is_storage_only(b)) return is_storage_only(a) ? b : a;
  if (info(a).size == info(b).size) return f32;  // f16 with bf16
  return info(a).size > info(b).size ? a : b;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  Kind ka = kind_of(a), kb = kind_of(b);
  if (kb < ka) return promote(b, a);
  if (ka == Kind::boolean) return b;
  if (is_integer(a) && is_integer(b)) return promote_integers(a, b);
  if (is_integer(a)) return b;
  if (kb == Kind::floating) return promote_floats(a, b);
  if (ka == Kind::floating) return a == f64 ? c128 : b;
  return c128;
}

DType default_dtype(Kind scalar) {
  switch (scalar) {
    case Kind::boolean:
      return b1;
    case Kind::integer:
      return i64;
    case Kind::natural:
      return u64;
    case Kind::floating:
      return f32;
    case Kind::complex:
      return c64;
  }
  return f32;
}

DType promote_weak(DType type, Kind scalar) {
  Kind kind = kind_of(type);
  if (scalar == Kind::natural) scalar = Kind::integer;
  if (kind == Kind::natural) kind = Kind::integer;
  if (!(kind < scalar)) return type;
  if (scalar == Kind::complex && kind == Kind::floating) return complex_of(type);
  return default_dtype(scalar);
}

DType to_inexact(DType type) { return is_inexact(type) ? type : f32; }

bool accepts(KindSet set, DType type) {
  return set.has(kind_of(type)) && (set.storage || !is_storage_only(type));
}

std::string to_text(KindSet set) {
  std::vector<std::string_view> names;
  if (set.has(Kind::boolean)) names.push_back("bool");
  if (set.has(Kind::integer)) names.push_back("integer");
  if (set.has(Kind::floating)) names.push_back("floating");
  if (set.has(Kind::complex)) names.push_back("complex");
  if (names.size() == 1) return std::string(names[0]);
  std::string_view last = names.back();
  names.pop_back();
  return format("{} or {}", join(names, ", "), last);
}

}  // namespace tn
