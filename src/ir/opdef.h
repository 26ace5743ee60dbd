#pragma once
// OpDef and OpRules: everything the library knows about an op, as two constants. Authors write one
// of the five family builders of ops/families.h, which fill both.
#include <memory>
#include <span>

#include "ir/attrs.h"
#include "ir/view.h"
#include "tenon/tensor.h"

namespace tn {

namespace loop {
struct S;
struct Z;
class Lowering;
enum class Monoid : uint8_t;
}  // namespace loop

/// A short constant list.
template <class T, int kMax>
struct List {
  T items[kMax]{};
  int count = 0;
  constexpr List() = default;
  constexpr List(std::initializer_list<T> list) {
    for (const T& item : list) {
      if (count == kMax) throw "list too long";
      items[count++] = item;
    }
  }
  constexpr int size() const { return count; }
  constexpr const T& operator[](int i) const { return items[i]; }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
};

enum class Family : uint8_t { elementwise, reduction, movement, composite, general };

/// "x" is required, "?x" may be left out, "*x" takes a list of tensors.
struct ArgDef {
  std::string_view name;
  bool optional = false, list = false;
  constexpr ArgDef() = default;
  constexpr ArgDef(const char* text) : name(text) {
    optional = name.starts_with('?'), list = name.starts_with('*');
    if (optional || list) name.remove_prefix(1);
  }
};

/// How an elementwise op converts its operands before it computes.
enum class Operands : uint8_t {
  same,      // all to their promoted type
  inexact,   // the same, but bool and integers become f32
  select,    // the first is bool, the others as `same`
  as_given,  // none: one operand, or types that `infer` checks
};

/// The element type of an elementwise result, from the converted operand type.
enum class ResultType : uint8_t { operand, boolean, real, given };  // given: the attribute `dtype`

/// Types and attributes an op is tried with: by the op harness, in every way the op can run.
struct Sample {
  const char* args;        // "f32[2,3], f32[3]": element types vary over what the op accepts
  const char* attrs = "";  // "axis=[1], keepdims=true"
  double lo = -2, hi = 2;  // values are drawn from [lo, hi]
};

using Types = std::span<const TypeRef>;

/// One type or several.
struct TypeList {
  std::vector<Type> items;
  TypeList(Type t) : items{t} {}
  TypeList(std::vector<Type> list) : items(std::move(list)) {}
  TypeList(std::initializer_list<Type> list) : items(list) {}
};

/// Whether derivatives follow from a rule, are zero (floor, argmax: the result moves in steps), or
/// do not exist, so that asking for one is an error.
enum class Gradient : uint8_t { by_rule, zero, none };

/// In its floating operands the op is linear: in each alone (matmul), or in all together (concat).
enum class Linear : uint8_t { no, each, jointly };

/// How vmap runs an op on a batch. Batched operands have the batch as axis 0, and so do results.
enum class Batch : uint8_t {
  family,   // follows from the family
  aligned,  // every operand is given the batch; axes move up by one, shapes grow by it in front
  custom,   // by `batch_rule`
  loop,     // no rule: a scan, one example after the other
};

/// What a policy of mixed precision does with the floating operands of an op.
enum class Precision : uint8_t {
  any,   // nothing: it computes in the type it is given
  low,   // to the policy's narrow type: products, where it is fastest
  full,  // to f32: long sums and quotients, which lose too much in a narrow type
};

/// What a derivative rule sees beside tangents or cotangents, among which null tensors are zeros.
struct Primal {
  const Tensors& in;
  const Tensors& out;
  const std::vector<bool>& wanted;  // operands the derivative is taken in
};

/// Operands of which some are batched, along axis 0.
struct BatchCall {
  const Tensors& in;
  const std::vector<bool>& batched;
  Dim size;
};

/// How an op becomes other ops, loops and derivatives, and what readers are told of it. Apart from
/// OpDef, so that the linker leaves rules out of libtenon_rt, which only runs compiled programs.
struct OpRules {
  std::string_view doc;
  List<std::string_view, 6> aliases;

  // The surface: makes attributes canonical and converts operands, before anything is recorded.
  void (*prepare)(void* attrs, Tensors& in) = nullptr;
  // Elementwise: the scalar function. Complex operands arrive as pairs.
  loop::S (*scalar)(const void* attrs, const loop::S* in) = nullptr;
  loop::Z (*complex)(const void* attrs, const loop::Z* in) = nullptr;
  // Composites, and every op that is not recorded.
  Tensors (*body)(const void* attrs, const Tensors& in) = nullptr;
  // The rest: a loop nest; without one the op needs a library kernel (plan/library.h).
  void (*lower)(const void* attrs, loop::Lowering& l) = nullptr;

  // Derivatives: one rule per op, from which jvp and vjp follow (transforms/derivative.h).
  // Elementwise: the derivative in operand k applied to `t`; null: zero. It is its own transpose.
  using Partial = Tensor (*)(const void* attrs, const Tensor& t, const Tensors& in,
                             const Tensor& out);
  List<Partial, 4> partials;
  // Linear ops: the cotangent of operand k, from that of the (only) result.
  Tensor (*adjoint)(const void* attrs, const Tensor& ct, const Tensors& in, int k) = nullptr;
  // The rest: tangents of the results. The vjp is its transpose; `vjp` overrides that, for speed or
  // where the attributes make the op linear. An empty list declines.
  Tensors (*jvp)(const void* attrs, const Primal& p, const Tensors& t) = nullptr;
  Tensors (*vjp)(const void* attrs, const Primal& p, const Tensors& ct) = nullptr;
  Tensors (*batch_rule)(const void* attrs, const BatchCall& call) = nullptr;

  List<Sample, 8> samples;
};

inline constexpr OpRules kNoRules;

struct OpDef {
  std::string_view name;
  std::string_view module;  // "fft": where Python has it; empty: in the package itself
  Family family = Family::general;
  bool recorded = true;     // false: a name for other ops, expanded when called
  bool surface = true;      // false: made by functions of the library, not called by name
  bool moves = false;       // `infer` says on which device results are, not the operands
  bool meets = false;       // workers of a group compute it together: see number_meeting in node.h
  std::string_view symbol;  // "+": the operator that calls it
  List<ArgDef, 6> args;
  List<std::string_view, 4> results;  // names when there are several; {"*"}: a list
  const AttrKind* attrs = &attr_kind<NoAttrs>;
  /// Set when the whole library is loaded (op_table.h).
  mutable const OpRules* rules = &kNoRules;

  TypeList (*infer)(const void* attrs, Types in) = nullptr;
  // Elementwise.
  KindSet types = any_type;
  Operands operands = Operands::as_given;
  ResultType result = ResultType::operand;
  // Reductions.
  loop::Monoid monoid{};
  void (*reduce_axes)(const void* attrs, Axes& axes,
                      bool& keepdims) = nullptr;  // of canonical attributes
  // Movement.
  View (*view)(const void* attrs, const Type& in) = nullptr;

  Gradient gradient = Gradient::by_rule;
  Linear linear = Linear::no;
  Precision precision = Precision::any;
  Batch batch = Batch::family;

  bool is_elementwise() const { return family == Family::elementwise; }
  bool has_list() const { return args.size() > 0 && args[args.size() - 1].list; }
};

/// Every op, by name (generated).
std::span<const OpDef* const> op_table();
/// Those that users call by name.
std::span<const OpDef* const> surface_ops();
/// By name or alias; null when unknown.
const OpDef* find_op(std::string_view name);

/// Where results are whose operands are on no device: there are none, or single values of the host.
struct MadeAt {
  Device device = {};
  bool from_numbers = true;  // if not, single values stay on the host
  friend bool operator==(const MadeAt&, const MadeAt&) = default;
};

/// Results of the types in `in`, checked and memoised per thread. They are on the device of the
/// operands.
std::span<const TypeRef> infer_types(const OpDef& op, const Attrs* attrs, Types in,
                                     MadeAt made_at = {});

}  // namespace tn
