#pragma once
// Types of tensors: element type, shape and device, interned, so that equal types are one pointer.
#include "ir/dim.h"
#include "ir/dtype.h"
#include "tenon/device.h"
#include "tenon/shape.h"

namespace tn {

#ifndef TENON_COMPARES_VALUES
bool operator==(const Shape& a, const Shape& b) = delete;  // as of sizes: ir/dim.h
#endif

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  Device device = {};  // compiled graphs know none: the plan has it
  int rank() const { return shape.rank(); }
  friend bool operator==(const Type& a, const Type& b) {
    return a.dtype == b.dtype && a.device == b.device && identical(a.shape, b.shape);
  }
};

/// An interned type. Compare by pointer.
struct InternedType : Type {
  uint64_t hash = 0;
  int64_t elements = -1;  // -1: symbolic
  int64_t bytes() const { return elements * size_of(dtype); }
};
using TypeRef = const InternedType*;

TypeRef intern(const Type& type);
inline TypeRef intern(DType dtype, const Shape& shape) { return intern(Type{dtype, shape}); }
/// The same on another device.
TypeRef on_device(TypeRef type, Device device);

/// "f32[8,16]"; a scalar prints as "f32[]", one that is not on the CPU as "f32[8]@cuda:0".
std::string to_text(const Type& type);
std::string to_text(const Shape& shape);  // "[8,16]"

/// Parses "f32[8,B]" at the front of `text` and advances past it; nothing when it is not a type.
std::optional<Type> parse_type(std::string_view& text);

uint64_t hash_of(const Shape& shape, uint64_t seed = 0);

bool can_broadcast(const Shape& a, const Shape& b);
/// The shape both broadcast to, or a failure that names `op` and both shapes.
Shape broadcast(const Shape& a, const Shape& b, std::string_view op);

}  // namespace tn

template <>
struct fmt::formatter<tn::Type> : fmt::formatter<std::string_view> {
  auto format(const tn::Type& t, fmt::format_context& c) const {
    return fmt::formatter<std::string_view>::format(tn::to_text(t), c);
  }
};
template <>
struct fmt::formatter<tn::InternedType> : fmt::formatter<tn::Type> {};
template <>
struct fmt::formatter<tn::Shape> : fmt::formatter<std::string_view> {
  auto format(const tn::Shape& s, fmt::format_context& c) const {
    return fmt::formatter<std::string_view>::format(tn::to_text(s), c);
  }
};
