#pragma once
// Attributes: plain structs with one `fields` function, from which equality, hash, text, parsing,
// saving, Python keywords and documentation follow.
//
//     struct SumAttrs {
//       Maybe<Axes> axis;
//       bool keepdims = false;
//       static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis), f("keepdims",
//       a.keepdims); }
//     };
#include <concepts>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/type.h"

namespace tn {

enum class FieldKind : uint8_t {
  boolean,
  integer,
  real,
  axis,
  axes,
  perm,
  size,
  shape,
  ints,
  offsets,
  dtype,
  choice,
  text,
  scalar,
  graph
};

struct Graph;
struct Body;
/// A graph as an attribute: interned, so that equal ones are one pointer (ir/body.h).
struct GraphRef {
  const Body* body = nullptr;
  constexpr GraphRef() = default;
  explicit constexpr GraphRef(const Body* interned) : body(interned) {}
  const Graph& operator*() const;
  const Graph* operator->() const { return &**this; }
  friend bool operator==(GraphRef, GraphRef) = default;
};

/// Names of an enum's values, for text and Python: specialise `choice_names` beside the enum.
using ChoiceNames = std::span<const std::string_view>;

struct Field {
  const char* name;
  FieldKind kind;
  bool required = false;
  bool* set = nullptr;  // of a Maybe: whether it holds a value
  void* at = nullptr;   // the value itself
  ChoiceNames choices = {};
};

struct FieldList {
  std::vector<Field> items;
};

/// Marks a field without a default: `f("shape", a.shape, required)`.
struct Required {};
inline constexpr Required required;

struct AttrKind {
  uint32_t size = 0;
  uint32_t fields = 0;
  void (*init)(void*) = nullptr;
  void (*list)(void*, FieldList&) = nullptr;
};

/// Room for attributes of any kind, on the stack or in a struct.
struct AttrBuffer {
  static constexpr size_t kBytes = 2048;
  alignas(16) char data[kBytes];

  AttrBuffer() {}  // without a value
  /// The defaults of a kind, or a copy.
  explicit AttrBuffer(const AttrKind& kind) { kind.init(data); }
  AttrBuffer(const AttrKind& kind, const void* from) { std::memcpy(data, from, kind.size); }
};

/// Attributes of recorded nodes, interned: equal ones are one pointer.
struct Attrs {
  const AttrKind* kind;
  uint64_t hash;
  alignas(8) char data[];
};

const Attrs* intern(const AttrKind& kind, const void* value);
/// A copy of `text` that lives as long as the process.
std::string_view intern(std::string_view text);

bool equal(const AttrKind& kind, const void* a, const void* b);
uint64_t hash_of(const AttrKind& kind, const void* value);
/// "axis=[1], keepdims=true": every field, in order. Empty for no fields.
std::string to_text(const AttrKind& kind, const void* value);
/// Parses what to_text printed into `value`, which holds defaults; fails by name on unknown fields.
/// Errors inside a graph count lines from `line`.
void parse_attrs(const AttrKind& kind, void* value, std::string_view text, std::string_view op,
                 int line = 1);
/// Fills `value` from pointers to the fields' values, in order, as generated code passes them.
void pack(const AttrKind& kind, void* value, const void* const* fields);

/// The axis in [0, rank), or a failure that names the op.
int normal_axis(Axis axis, int rank, std::string_view op);
int normal_axis(int64_t axis, int rank, std::string_view op);
/// Sorted, distinct, non-negative. Nothing set means every axis.
Axes normal_axes(const Maybe<Axes>& axes, int rank, std::string_view op);
Perm normal_perm(const Perm& perm, int rank, std::string_view op);

template <class T>
struct FieldOf;
template <class T, FieldKind kKind>
struct PlainField {
  static constexpr FieldKind kind = kKind;
};
// clang-format off
template <> struct FieldOf<bool> : PlainField<bool, FieldKind::boolean> {};
template <> struct FieldOf<int64_t> : PlainField<int64_t, FieldKind::integer> {};
template <> struct FieldOf<double> : PlainField<double, FieldKind::real> {};
template <> struct FieldOf<Axis> : PlainField<Axis, FieldKind::axis> {};
template <> struct FieldOf<Axes> : PlainField<Axes, FieldKind::axes> {};
template <> struct FieldOf<Perm> : PlainField<Perm, FieldKind::perm> {};
template <> struct FieldOf<Dim> : PlainField<Dim, FieldKind::size> {};
template <> struct FieldOf<Shape> : PlainField<Shape, FieldKind::shape> {};
template <> struct FieldOf<Ints> : PlainField<Ints, FieldKind::ints> {};
template <> struct FieldOf<Offsets> : PlainField<Offsets, FieldKind::offsets> {};
template <> struct FieldOf<DType> : PlainField<DType, FieldKind::dtype> {};
template <> struct FieldOf<std::string_view> : PlainField<std::string_view, FieldKind::text> {};
template <> struct FieldOf<Scalar> : PlainField<Scalar, FieldKind::scalar> {};
template <> struct FieldOf<GraphRef> : PlainField<GraphRef, FieldKind::graph> {};
// clang-format on

template <class E>
  requires std::is_enum_v<E>
ChoiceNames names_of() {
  return choice_names(E{});
}

struct FieldLister {
  FieldList& out;
  template <class T>
  void operator()(const char* name, T& value, Required) {
    (*this)(name, value);
    out.items.back().required = true;
  }
  template <class T>
  void operator()(const char* name, Maybe<T>& value) {
    (*this)(name, value.value);
    out.items.back().set = &value.set;
  }
  template <class T>
  void operator()(const char* name, T& value) {
    if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
      static_assert(sizeof(T) == 1, "a choice is an enum of one byte");
      out.items.push_back({name, FieldKind::choice, false, nullptr, &value, names_of<T>()});
    } else {
      out.items.push_back({name, FieldOf<T>::kind, false, nullptr, &value, {}});
    }
  }
};

struct FieldCounter {
  int count = 0;
  template <class... A>
  constexpr void operator()(const char*, A&&...) {
    ++count;
  }
};

/// Converts to anything: counts the members of an aggregate.
struct AnyMember {
  template <class T>
  operator T() const;
};
template <class A, class... Members>
constexpr int member_count() {
  if constexpr (requires { A{Members{}..., AnyMember{}}; })
    return member_count<A, Members..., AnyMember>();
  else
    return sizeof...(Members);
}

template <class A>
constexpr int field_count() {
  A value{};
  FieldCounter counter;
  A::fields(value, counter);
  return counter.count;
}

template <class A>
constexpr AttrKind make_attr_kind() {
  static_assert(std::is_trivially_copyable_v<A>, "attributes are plain data");
  static_assert(sizeof(A) <= AttrBuffer::kBytes && alignof(A) <= alignof(AttrBuffer));
  static_assert(field_count<A>() == member_count<A>(), "`fields` must list every member, in order");
  return {sizeof(A), static_cast<uint32_t>(field_count<A>()), [](void* at) { new (at) A{}; },
          [](void* at, FieldList& out) { A::fields(*static_cast<A*>(at), FieldLister{out}); }};
}

/// No attributes at all.
struct NoAttrs {
  static constexpr void fields(auto&, auto&&) {}
};

template <class A>
inline constexpr AttrKind attr_kind = make_attr_kind<A>();

/// The fields of `value` (of a default one when null).
FieldList list_fields(const AttrKind& kind, void* value);

}  // namespace tn
