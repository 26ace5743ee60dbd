#pragma once
// Element types.
#include <cstdint>
#include <string_view>

namespace tn {

/// The element types, named as in the IR text. The float8 types are storage types: they convert,
/// but do not compute.
enum class DType : uint8_t {
  b1,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f8e4m3,
  f8e5m2,
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128,
};
inline constexpr int kDTypes = 17;

inline constexpr DType boolean = DType::b1;
inline constexpr DType int8 = DType::i8, int16 = DType::i16, int32 = DType::i32, int64 = DType::i64;
inline constexpr DType uint8 = DType::u8, uint16 = DType::u16, uint32 = DType::u32,
                       uint64 = DType::u64;
inline constexpr DType float8_e4m3 = DType::f8e4m3, float8_e5m2 = DType::f8e5m2;
inline constexpr DType float16 = DType::f16, bfloat16 = DType::bf16;
inline constexpr DType float32 = DType::f32, float64 = DType::f64;
inline constexpr DType complex64 = DType::c64, complex128 = DType::c128;

/// The kind of an element, without its width.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // a name of an enumerator is no name of its own
enum class Kind : uint8_t { boolean, integer, natural, floating, complex };
#pragma GCC diagnostic pop

constexpr bool operator<(Kind a, Kind b) { return static_cast<int>(a) < static_cast<int>(b); }

/// Size of one element in bytes.
int64_t size_of(DType type);
Kind kind_of(DType type);
/// The name users see: "float32".
std::string_view name_of(DType type);

/// The type that both operands promote to (see docs/design/002-promotion.md).
DType promote(DType a, DType b);

}  // namespace tn
