#include "ir/opdef.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "ir/emit.h"
#include "ir/interned.h"
#include "ir/op_table.h"
#include "ir/precision.h"
#include "runtime/device.h"

namespace tn {

std::span<const OpDef* const> (*further_ops)() = nullptr;

std::span<const OpDef* const> op_table() {
  static const auto& list = *[] {
    auto* made = new std::vector<const OpDef*>(graph_ops().begin(), graph_ops().end());
    if (further_ops) std::ranges::copy(further_ops(), std::back_inserter(*made));
    std::ranges::sort(*made, {}, &OpDef::name);
    return made;
  }();
  return list;
}

std::span<const OpDef* const> surface_ops() {
  static const auto& list = *[] {
    auto* made = new std::vector<const OpDef*>;
    std::ranges::copy_if(op_table(), std::back_inserter(*made),
                         [](const OpDef* op) { return op->surface; });
    return made;
  }();
  return list;
}

const OpDef* find_op(std::string_view name) {
  static const auto& by_name = *[] {
    auto* map = new std::unordered_map<std::string_view, const OpDef*>;
    for (const OpDef* op : op_table()) {
      map->emplace(op->name, op);
      for (std::string_view alias : op->rules->aliases) map->emplace(alias, op);
    }
    map->emplace(scalar_leaf.name, &scalar_leaf);
    return map;
  }();
  auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

/// A reduced axis that should have stayed is the usual reason why shapes do not fit.
static Hint broadcast_hint(const OpDef& op, const Shape& a, const Shape& b) {
  if (op.name == "multiply" && a.rank() == 2 && b.rank() == 2 && identical(a[1], b[0]))
    return {"x1 @ x2 is the product of matrices", "matmul(x1, x2) is the product of matrices"};
  const Shape& longer = a.rank() > b.rank() ? a : b;
  const Shape& shorter = a.rank() > b.rank() ? b : a;
  bool leads = longer.rank() == shorter.rank() + 1;
  for (int i = 0; leads && i < shorter.rank(); ++i) leads = identical(longer[i], shorter[i]);
  if (!leads) return {};
  return {format("{} lines up with the last axes; reduce with keepdims=True, or use x[..., None]",
                 shorter),
          format("{} lines up with the last axes; reduce with keepdims, or use "
                 "x[{{tn::ellipsis, tn::newaxis}}]",
                 shorter)};
}

static Type infer_elementwise(const OpDef& op, const void* attrs, Types in) {
  DType type = in.back()->dtype;
  Shape shape = in[0]->shape;
  for (size_t i = 1; i < in.size(); ++i) {
    if (!can_broadcast(shape, in[i]->shape))
      fail(broadcast_hint(op, shape, in[i]->shape), "{}: shapes do not broadcast: {} and {}",
           op.name, Type{in[0]->dtype, shape}, *in[i]);
    shape = broadcast(shape, in[i]->shape, op.name);
    if (in[i]->dtype != type)
      fail(Fault::type, "{}: operands have different element types: {} and {}", op.name, *in[i],
           *in.back());
  }
  bool selects = op.operands == Operands::select;
  if (in[0]->dtype != (selects ? DType::b1 : type))
    fail(Fault::type, "{}: operands have different element types: {} and {}", op.name, *in[0],
         *in.back());
  check_kind(op.name, op.types, type);
  switch (op.result) {
    case ResultType::operand:
      break;
    case ResultType::boolean:
      type = DType::b1;
      break;
    case ResultType::real:
      type = real_of(type);
      break;
    case ResultType::given:
      for (const Field& f : list_fields(*op.attrs, const_cast<void*>(attrs)).items)
        if (f.kind == FieldKind::dtype) type = *static_cast<DType*>(f.at);
  }
  return {type, shape};
}

static Type infer_reduction(const OpDef& op, const void* attrs, const Type& in) {
  Axes axes;
  bool keepdims;
  op.reduce_axes(attrs, axes, keepdims);
  Type out{in.dtype, {}};
  check_kind(op.name, op.types, in.dtype);
  for (int i = 0; i < in.rank(); ++i) {
    if (!axes.has(i))
      out.shape.push_back(in.shape[i]);
    else if (keepdims)
      out.shape.push_back(1);
  }
  return out;
}

/// Runs the body on parameters of the operand types and reads off the result types.
static TypeList infer_composite(const OpDef& op, const void* attrs, Types in) {
  AsGiven types;
  Tensors params;
  for (TypeRef type : in) params.push_back(type ? make_param(type) : Tensor());
  std::vector<Type> out;
  for (const Tensor& t : op.rules->body(attrs, params)) out.push_back(*type_of(t));
  return out;
}

static TypeList infer(const OpDef& op, const void* attrs, Types in) {
  if (op.infer) return op.infer(attrs, in);
  switch (op.family) {
    case Family::elementwise:
      return infer_elementwise(op, attrs, in);
    case Family::reduction:
      return infer_reduction(op, attrs, *in[0]);
    case Family::movement:
      return Type{in[0]->dtype, op.view(attrs, *in[0]).shape};
    default:
      return infer_composite(op, attrs, in);
  }
}

namespace {

struct MemoEntry {
  const OpDef* op = nullptr;
  const Attrs* attrs = nullptr;
  MadeAt made_at = {};
  std::vector<TypeRef> in, out;
  Held held = {};  // all of these
};

constexpr size_t kMemoSize = 1024;  // direct-mapped

/// Whether a tensor of the host is copied to a device that other operands are on.
bool travels_to(TypeRef type, Device device) {
  return type->device.is_host() && !device.is_host() && runtime_of(device).takes_host_tensors();
}

/// The device that all operands are on, but for single values of the host, which travel. Nothing
/// where there are no others.
std::optional<Device> common_device(const OpDef& op, Types in) {
  TypeRef first = nullptr;
  for (TypeRef type : in) {
    if (!type || (type->device.is_host() && type->rank() == 0)) continue;
    if (!first || travels_to(first, type->device)) first = type;
    if (type->device != first->device && !travels_to(type, first->device))
      fail(Hint{"move one of them with .to(device)"}, "{}: operands are on {} and {}: {} and {}",
           op.name, to_text(first->device), to_text(type->device), *first, *type);
  }
  return first ? std::optional(first->device) : std::nullopt;
}

}  // namespace

std::span<const TypeRef> infer_types(const OpDef& op, const Attrs* attrs, Types in,
                                     MadeAt made_at) {
  thread_local const auto owner = std::make_unique<std::array<MemoEntry, kMemoSize>>();
  thread_local std::vector<TypeRef> kept;
  auto& memo = *owner;
  uint64_t hash = combine(reinterpret_cast<uintptr_t>(&op), reinterpret_cast<uintptr_t>(attrs));
  for (TypeRef type : in) hash = combine(hash, reinterpret_cast<uintptr_t>(type));
  MemoEntry& entry = memo[hash % kMemoSize];
  if (entry.op == &op && entry.attrs == attrs && entry.made_at == made_at &&
      std::equal(in.begin(), in.end(), entry.in.begin(), entry.in.end())) {
    for (TypeRef type : entry.out) hand_out(type);
    return entry.out;
  }
  std::optional<Device> device = op.moves ? std::nullopt : common_device(op, in);
  TypeList types = [&] {
    DeviceScope inside(device.value_or(made_at.device));
    return infer(op, attrs ? attrs->data : nullptr, in);
  }();
  for (Type& type : types.items) {
    if (op.moves) break;
    bool travels = type.rank() == 0 && !made_at.from_numbers;
    type.device = device ? *device : travels ? Device() : made_at.device;
  }
  std::vector<TypeRef> out;
  for (const Type& type : types.items) out.push_back(intern(type));
  auto symbolic = [](TypeRef type) { return type && type->elements < 0; };
  bool guarded = std::ranges::any_of(in, symbolic) || std::ranges::any_of(out, symbolic);
  // Each trace records its own assumptions about sizes.
  if (guarded) return kept = std::move(out);
  // `infer` may have used this entry for ops inside a body: fill it only now.
  Held held;
  held.add(attrs);
  for (TypeRef type : in) held.add(type);
  for (TypeRef type : out) held.add(type);
  entry = {&op, attrs, made_at, {in.begin(), in.end()}, std::move(out), std::move(held)};
  return entry.out;
}

}  // namespace tn
