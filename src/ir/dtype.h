#pragma once
// Element types: facts, promotion, and the kinds that ops accept.
#include <optional>

#include "base/text.h"
#include "tenon/dtype.h"

namespace tn {

struct DTypeInfo {
  std::string_view text;  // in the IR: "f32"
  std::string_view name;  // to users: "float32"
  int8_t size;
  Kind kind;
  DType compute;     // what arithmetic on it is carried out in: bf16 → f32
  DType accumulate;  // what sums of it are carried out in: bf16 → f32, i8 → i64
  DType real;        // c64 → f32, else itself
};

const DTypeInfo& info(DType type);

/// "f32" or "float32" → the type; nothing when unknown.
std::optional<DType> parse_dtype(std::string_view text);

/// A Python scalar chooses a kind, never a width: f16 with 1.0 stays f16, i32 with 1.5 becomes f32.
DType promote_weak(DType type, Kind scalar);

/// The type a weak scalar has alone: bool, i64 → default int, f32, c64.
DType default_dtype(Kind scalar);

/// What functions defined on reals only (exp, sqrt, mean) make of their operand: bool and ints →
/// f32.
DType to_inexact(DType type);

/// bool, ints → themselves; c64 → f32.
inline DType real_of(DType type) { return info(type).real; }
inline DType complex_of(DType type) {
  return info(type).real == DType::f64 ? DType::c128 : DType::c64;
}

inline bool is_complex(DType t) { return info(t).kind == Kind::complex; }
inline bool is_float(DType t) { return info(t).kind == Kind::floating; }
inline bool is_inexact(DType t) { return info(t).kind >= Kind::floating; }
inline bool is_integer(DType t) {
  return info(t).kind == Kind::integer || info(t).kind == Kind::natural;
}
inline bool is_storage_only(DType t) { return t == DType::f8e4m3 || t == DType::f8e5m2; }

/// A set of element types, by kind: what an op accepts. float8 never computes, so no set holds it
/// but `any_type`.
struct KindSet {
  uint8_t bits = 0;
  bool storage = false;
  constexpr bool has(Kind k) const { return bits >> static_cast<int>(k) & 1; }
  friend constexpr KindSet operator|(KindSet a, KindSet b) {
    return {static_cast<uint8_t>(a.bits | b.bits), a.storage || b.storage};
  }
};
constexpr KindSet set_of(Kind k) { return {static_cast<uint8_t>(1 << static_cast<int>(k))}; }

inline constexpr KindSet booleans = set_of(Kind::boolean);
inline constexpr KindSet integers = set_of(Kind::integer) | set_of(Kind::natural);
inline constexpr KindSet floats = set_of(Kind::floating);
inline constexpr KindSet complexes = set_of(Kind::complex);
inline constexpr KindSet reals = integers | floats;  // ordered numbers
inline constexpr KindSet ordered = booleans | reals;
inline constexpr KindSet inexact = floats | complexes;
inline constexpr KindSet numeric = reals | complexes;
inline constexpr KindSet every_type = booleans | numeric;
inline constexpr KindSet any_type = {every_type.bits, true};  // float8 too: moving data, casting

/// "bool, integer or floating": for messages.
std::string to_text(KindSet set);
bool accepts(KindSet set, DType type);

}  // namespace tn

template <>
struct fmt::formatter<tn::DType> : fmt::formatter<std::string_view> {
  auto format(tn::DType t, fmt::format_context& c) const {
    return fmt::formatter<std::string_view>::format(tn::info(t).text, c);
  }
};
