#include "ir/emit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "base/error.h"
#include "ir/arrival.h"
#include "ir/interned.h"
#include "ir/known_call.h"
#include "ir/named_calls.h"
#include "ir/number.h"
#include "ir/precision.h"
#include "ir/sizes.h"
#include "runtime/device.h"

namespace tn {

namespace ops {
extern const OpDef astype, reshape;
}

/// Errors ask for the user's place through base/, which cannot see this layer. Here, because every
/// call of an op comes through this file, so that a linker which takes only what is used takes this
/// too.
[[maybe_unused]] static const bool kPlacesInstalled =
    (user_place = place_of_current_call, user_writes_cpp = is_current_call_cpp, true);

void check_kind(std::string_view op, KindSet accepted, DType type) {
  if (accepts(accepted, type)) return;
  fail(Fault::type, "{}: element type {} is not supported: it takes {} types", op, type,
       to_text(accepted));
}

Tensor cast_to(const Tensor& x, DType type) {
  if (x.dtype() == type && !is_given_number(x)) return x;
  if (is_number(x)) return number_as(x, type);
  return call_with(ops::astype, {x}, &type)[0];
}

DType promote_all(Tensors& in, std::string_view op, KindSet accepted, bool to_inexact_type) {
  bool strong = false;
  DType type = DType::b1;
  Kind widest = Kind::boolean;
  for (const Tensor& t : in) {
    if (!t.defined()) continue;
    if (is_number(t)) {
      widest = std::max(widest, kind_of_number(t));
    } else {
      type = strong ? promote(type, t.dtype()) : t.dtype();
      strong = true;
    }
  }
  type = strong ? promote_weak(type, widest) : default_dtype(widest);
  if (to_inexact_type) type = to_inexact(type);
  check_kind(op, accepted, type);
  for (Tensor& t : in) {
    if (!t.defined() || (t.dtype() == type && !is_number(t))) continue;
    if (is_number(t)) check_fits(op, t, type);
    t = is_number(t) ? number_as(t, type) : cast_to(t, type);
  }
  return type;
}

static void settle_numbers(Tensors& in) {
  for (Tensor& t : in)
    if (is_number(t)) t = settled(t);
}

/// Converts the operands of an elementwise op to what it computes on.
static void convert_operands(const OpDef& op, Tensors& in) {
  switch (op.operands) {
    case Operands::as_given:
      return settle_numbers(in);
    case Operands::same:
      promote_all(in, op.name, op.types);
      return;
    case Operands::inexact:
      promote_all(in, op.name, op.types, true);
      return;
    case Operands::select: {
      Tensors rest(in.begin() + 1, in.end());
      promote_all(rest, op.name, op.types);
      in[0] = cast_to(in[0], DType::b1);
      std::copy(rest.begin(), rest.end(), in.begin() + 1);
    }
  }
}

Device device_of(std::span<const Tensor> in) {
  bool has_host = false;
  for (const Tensor& t : in) {
    if (t.defined() && !t.device().is_host()) return t.device();
    has_host = has_host || (t.defined() && t.rank() > 0);
  }
  return has_host ? Device() : current_device();
}

constinit thread_local Arrival arrival = nullptr;

/// With the single values of the host among them on a device, where they travel as an op that has
/// its derivative. Nothing where there are none but numbers.
static std::optional<Tensors> travelled(std::span<const Tensor> in, Device device) {
  auto stays = [](const Tensor& t) { return is_scalar(*t.node()) || !t.device().is_host(); };
  if (std::ranges::all_of(in, stays)) return {};
  Tensors there(in.begin(), in.end());
  for (Tensor& t : there)
    if (!stays(t)) t = arrival ? arrival(t.to(device)) : t.to(device);
  return there;
}

Tensors emit_all(const OpDef& op, std::span<const Tensor> in, const void* attrs) {
  RecordScope scope;
  const Attrs* interned = intern(*op.attrs, attrs);
  constexpr size_t kFew = 8;
  Edge few_edges[kFew];
  TypeRef few_types[kFew];
  std::vector<Edge> many_edges(in.size() > kFew ? in.size() : 0);
  std::vector<TypeRef> many_types(many_edges.size());
  Edge* edges = in.size() > kFew ? many_edges.data() : few_edges;
  TypeRef* types = in.size() > kFew ? many_types.data() : few_types;
  size_t n = 0;
  bool is_made = true;  // from nothing but numbers
  for (const Tensor& t : in) {
    invariant(t.defined(), "{}: operand {} is missing", op.name, n);
    is_made = is_made && is_scalar(*t.node());
    edges[n] = {t.node(), t.index()};
    types[n++] = type_of(t);
  }
  Types out = infer_types(op, interned, {types, n}, {current_device(), is_made});
  std::vector<TypeRef> kept(out.begin(), out.end());  // recording may flush, and a flush may infer
  if (!op.moves && !kept.empty() && !kept[0]->device.is_host()) [[unlikely]]
    if (std::optional<Tensors> there = travelled(in, kept[0]->device))
      return emit_all(op, *there, attrs);
  Node* node = record(op, interned, {edges, n}, kept);
  Tensors results;
  results.reserve(kept.size());
  for (uint32_t i = 0; i < kept.size(); ++i) {
    if (i) retain(node);
    results.emplace_back(node, i);
  }
  return results;
}

Tensor emit(const OpDef& op, std::initializer_list<Tensor> in) {
  return emit_all(op, {in.begin(), in.size()}, nullptr)[0];
}

Tensor with_unit_axes(const Tensor& x, const Shape& to) {
  if (type_of(x)->elements >= 0) return x;
  Shape shape = x.shape();
  int shift = to.rank() - shape.rank();
  for (int k = 0; k < shape.rank(); ++k) {
    Dim& d = shape[k];
    if (!d.is(1) && !identical(d, to[k + shift]) && !decide_equal(d, to[k + shift])) d = 1;
  }
  return identical(shape, x.shape()) ? x : emit_all(ops::reshape, {&x, 1}, &shape)[0];
}

/// Where broadcasting depends on size hints, makes that explicit in the operands.
static void settle_unit_axes(const OpDef& op, Tensors& in) {
  auto is_open = [](const Tensor& t) { return t.defined() && type_of(t)->elements < 0; };
  if (in.size() < 2 || std::ranges::none_of(in, is_open)) return;
  Shape all = in[0].shape();
  for (const Tensor& t : in)
    if (t.defined() && can_broadcast(all, t.shape())) all = broadcast(all, t.shape(), op.name);
  for (Tensor& t : in)
    if (t.defined() && can_broadcast(all, t.shape())) t = with_unit_axes(t, all);
}

/// Numbers are drawn where the other operands are: a key goes there.
static void move_key(const OpDef& op, Tensors& in) {
  if (in.size() < 2 || op.args[0].name != "key" || !in[0].defined()) return;
  for (size_t i = 1; i < in.size(); ++i)
    if (in[i].defined() && (in[i].rank() > 0 || !in[i].device().is_host())) {
      in[0] = in[0].to(in[i].device());
      return;
    }
}

static Tensors call_prepared(const OpDef& op, Tensors& in, void* attrs) {
  if (is_under_policy(op)) [[unlikely]] {
    apply_policy(op.precision, in);
    AsGiven inside;
    return call_prepared(op, in, attrs);
  }
  move_key(op, in);
  DeviceScope inside(device_of(in));
  if (op.rules->prepare) op.rules->prepare(attrs, in);
  if (!op.recorded) {
    NamedCall named(user_name(op));
    return op.rules->body(attrs, in);
  }
  if (op.is_elementwise()) {
    convert_operands(op, in);
    settle_unit_axes(op, in);
  }
  settle_numbers(in);
  while (!in.empty() && !in.back().defined())
    in.pop_back();  // absent optional operands stand at the end
  return emit_all(op, in, attrs);
}

/// Throws the error again: an error of an op inside by the name that was called, one of this op
/// with the operands' types where it names none of them.
[[noreturn]] static void throw_as_called(const OpDef& op, const Tensors& in,
                                         const UserError& error) {
  std::string text = error.what();
  size_t name = text.find(':');
  if (name == text.npos) throw;
  std::string_view called = user_name(op);
  if (text.substr(0, name) != called) {
    bool is_called = op.surface || called != op.name;
    if (!is_called || !find_op(text.substr(0, name))) throw;
    throw UserError(error.fault(), text.replace(0, name, called));
  }
  std::vector<std::string> types;
  for (const Tensor& t : in) {
    if (!t.defined()) continue;
    types.push_back(to_text(*type_of(t)));
    if (text.find(types.back()) != text.npos) throw;
  }
  if (types.empty()) throw;
  text.insert(std::min(text.find('\n'), text.size()), format(" ({})", join(types, ", ")));
  throw UserError(error.fault(), text);
}

Tensors call_with(const OpDef& op, Tensors in, void* attrs) {
  RecordScope scope;
  for (const Tensor& t : in)
    if (t.defined()) hand_out(type_of(t));  // rules refer to shapes of operands that they replace
  try {
    return call_prepared(op, in, attrs);
  } catch (const RecordedError&) {
    throw;
  } catch (const UserError& error) {
    throw_as_called(op, in, error);
  }
}

/// The handle of an operand. A temporary gives up its own, so that an intermediate value which only
/// later ops see is not taken for one that the program holds.
static Tensor to_tensor(const Operand& operand) {
  if (operand.temporary) return std::move(*const_cast<Tensor*>(operand.tensor));
  if (operand.tensor) return *operand.tensor;
  if (operand.absent) return {};
  return make_scalar(operand.scalar, default_dtype(operand.scalar.kind), true);
}

Tensors call(const OpDef& op, std::span<const Operand* const> in, const void* const* fields) {
  Tensors tensors;
  tensors.reserve(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    tensors.push_back(to_tensor(*in[i]));
    int last = op.args.size() - 1, place = std::min(static_cast<int>(i), last);
    const auto& arg = op.args[place];
    if (!tensors.back().defined() && (arg.list || !arg.optional))
      fail(Fault::type, "{}: operand {} is missing", op.name,
           arg.list ? format("{}[{}]", arg.name, static_cast<int>(i) - last) : arg.name);
  }
  AttrBuffer attrs;
  pack(*op.attrs, attrs.data, fields);
  return call_with(op, std::move(tensors), attrs.data);
}

namespace {

/// What an elementwise call on these operand types records, when nothing has to be converted.
struct alignas(64) Direct {
  const OpDef* op = nullptr;
  const void *a = nullptr, *b = nullptr;  // a type, or the kind of a scalar
  TypeHold out = {};
  DType scalar = DType::f32;  // what scalars become
  TypeHold types[2] = {};     // of operands

  bool is(const OpDef& of, const void* x, const void* y) const {
    return op == &of && a == x && b == y;
  }
};

constexpr char kScalarKeys[5] = {};  // their addresses stand for "a scalar of this kind"

/// Null where the types do not say what is recorded.
const void* key_of(const Tensor& t) { return is_number(t) ? nullptr : type_of(t); }
const void* key_of(const Operand& operand) {
  if (operand.tensor) return key_of(*operand.tensor);
  return operand.absent ? nullptr : &kScalarKeys[static_cast<int>(operand.scalar.kind)];
}

constexpr size_t kDirects = 512;
constinit thread_local Direct* directs = nullptr;  // kDirects of this thread

[[gnu::noinline]] Direct* make_directs() {
  thread_local const auto owner = std::make_unique<Direct[]>(kDirects);
  return directs = owner.get();
}

Direct& direct_entry(const OpDef& op, const void* a, const void* b) {
  Direct* table = directs ? directs : make_directs();
  auto at = reinterpret_cast<uintptr_t>(&op) / 64 * 31 + reinterpret_cast<uintptr_t>(a) / 16 * 7 +
            reinterpret_cast<uintptr_t>(b) / 16;
  return table[at % kDirects];
}

Tensor record_direct(const Direct& known, std::span<const Edge> edges) {
  return {record(*known.op, nullptr, edges, {&known.out.get(), 1}), 0};
}

Tensor call_direct(const Direct& known, std::span<const Operand* const> in) {
  Edge edges[2];
  Tensor scalars[2];
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i]->tensor) {
      edges[i] = {in[i]->tensor->node(), in[i]->tensor->index()};
    } else {
      scalars[i] = make_scalar(in[i]->scalar, known.scalar, false);
      edges[i] = {scalars[i].node(), 0};
    }
  }
  Tensor result = record_direct(known, {edges, in.size()});
  for (const Operand* operand : in)
    if (operand->temporary) to_tensor(*operand);
  return result;
}

/// Remembers how `in` was recorded if operands went in as they were.
void remember(const OpDef& op, std::span<const Operand* const> in, const void* a, const void* b,
              const Tensor& result) {
  Node* node = result.node();
  if (node->op != &op || node->ins != in.size() || result.index()) return;
  DType scalar = DType::f32;
  TypeRef types[2] = {};
  bool is_made = true;  // from nothing but numbers: the types do not say where
  for (size_t i = 0; i < in.size(); ++i) {
    Edge edge = node->inputs()[i];
    TypeRef type = edge.node->slots()[edge.index].type;
    if (type->elements < 0) return;  // assumptions about sizes are recorded anew
    is_made = is_made && is_scalar(*edge.node);
    if (in[i]->tensor) {
      if (type != (i ? b : a)) return;                      // it was converted
      if (type->device != type_of(result)->device) return;  // others of the type travel
      types[i] = type;
      continue;
    }
    if (is_integer(type->dtype) && type->dtype != DType::i64)
      return;  // numbers must be checked to fit
    scalar = type->dtype;
  }
  if (is_made) return;
  direct_entry(op, a, b) = {
      &op, a, b, TypeHold(type_of(result)), scalar, {TypeHold(types[0]), TypeHold(types[1])}};
}

}  // namespace

Tensor call_known(const OpDef& op, const Tensor& a, const Tensor* b) {
  const void *x = key_of(a), *y = b ? key_of(*b) : &op;
  if (!x || !y) return {};
  const Direct& known = direct_entry(op, x, y);
  if (!known.is(op, x, y) || is_under_policy(op)) return {};
  Edge edges[2] = {{a.node(), a.index()}, {}};
  if (b) edges[1] = {b->node(), b->index()};
  return record_direct(known, {edges, size_t{1} + (b != nullptr)});
}

Tensor call_one(const OpDef& op, std::span<const Operand* const> in, const void* const* fields) {
  bool simple = op.is_elementwise() && op.attrs->fields == 0 && !op.rules->prepare &&
                in.size() <= 2 && !is_under_policy(op);
  const void* a = simple ? key_of(*in[0]) : nullptr;
  const void* b = simple && in.size() == 2 ? key_of(*in[1]) : &op;
  if (!a || !b) return std::move(call(op, in, fields)[0]);
  const Direct& known = direct_entry(op, a, b);
  if (known.is(op, a, b)) return call_direct(known, in);
  Tensor result = std::move(call(op, in, fields)[0]);
  if (result.node()->is_pending()) remember(op, in, a, b, result);
  return result;
}

}  // namespace tn
