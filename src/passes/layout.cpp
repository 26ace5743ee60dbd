// Convolutions read the channels of a place side by side, so they want their channels last:
//
//     conv(x, w) = from_last(conv_last(to_last(x), to_last(w)))
//
// and what is between convolutions stays in that order, for ops that do not mind in which order
// their axes are:
//
//     f(from_last(x), y) = from_last(f(x, to_last(y)))            elementwise
//     reduce(from_last(x), axes) = from_last(reduce(x, axes'))    where the axes keep their order
//     reshape(from_last(x)) = from_last'(reshape'(x))             of unit axes only
//     pad(from_last(x)) = from_last(pad'(x))                      and ops along one axis
//     windows(from_last(x)) = from_last'(to_last'(windows(from_last(x))))    both are views
//
// with to_last = from_last⁻¹ = permute. So only the ends of a chain are transposed. Bits stay: a
// convolution sums in the same order in both layouts, and so does a reduction.
#include "passes/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn {
namespace {

Perm channels_last_order(int rank) {
  Perm order{0};
  for (int k = 2; k < rank; ++k) order.push_back(k);
  order.push_back(1);
  return order;
}

Perm inverse(const Perm& order) {
  Perm inverse = order;
  for (int k = 0; k < order.size(); ++k) inverse[order[k].i] = k;
  return inverse;
}

/// Axis k is axis outer[k] of what has axis k at inner[k].
Perm composed(const Perm& inner, const Perm& outer) {
  Perm order;
  for (Axis a : outer) order.push_back(inner[a.i]);
  return order;
}

bool is_ascending(const Perm& order) {
  return std::is_sorted(order.begin(), order.end(), [](Axis a, Axis b) { return a.i < b.i; });
}

/// Attributes as bytes that may be changed, field by field.
class ChangedAttrs {
 public:
  explicit ChangedAttrs(const GraphOp& op) : kind_(*op.op->attrs), bytes_(kind_, op.attrs->data) {
    fields_ = list_fields(kind_, bytes_.data);
  }
  /// The only field of its kind, or null.
  template <class T>
  T* find(FieldKind kind) {
    T* found = nullptr;
    for (const Field& f : fields_.items) {
      if (f.kind != kind) continue;
      if (found) return nullptr;
      found = static_cast<T*>(f.at);
    }
    return found;
  }
  bool has(FieldKind kind) const {
    return std::any_of(fields_.items.begin(), fields_.items.end(),
                       [&](const Field& f) { return f.kind == kind; });
  }
  const Attrs* interned() { return intern(kind_, bytes_.data); }

 private:
  const AttrKind& kind_;
  AttrBuffer bytes_;
  FieldList fields_;
};

/// How an op takes part in a chain of convolutions.
enum class Role : uint8_t {
  none,
  conv,
  elementwise,
  reduction,
  permute,
  units,  // a reshape that adds or removes axes of extent 1
  window,
  pad,
  along_axis
};

/// The axes of extent 1, or the others.
Perm axes_of(const Shape& shape, bool units) {
  Perm axes;
  for (int k = 0; k < shape.rank(); ++k)
    if ((shape[k].is(1)) == units) axes.push_back(k);
  return axes;
}

bool moves_units_only(const Shape& from, const Shape& to) {
  Perm left = axes_of(from, false), right = axes_of(to, false);
  bool same = left.size() == right.size();
  for (int k = 0; same && k < left.size(); ++k) same = identical(from[left[k].i], to[right[k].i]);
  return same;
}

/// Whether all that the attributes say about axes is one axis.
bool works_along_axis(const Graph& graph, const GraphOp& op) {
  if (op.op->batch != Batch::aligned || !op.attrs || op.outs != 1 || op.ins == 0) return false;
  ChangedAttrs attrs(op);
  for (FieldKind kind : {FieldKind::axes, FieldKind::perm, FieldKind::shape, FieldKind::ints,
                         FieldKind::offsets, FieldKind::graph})
    if (attrs.has(kind)) return false;
  int rank = graph.types[static_cast<size_t>(op.out)]->rank();
  for (Val v : graph.in(op))
    if (graph.types[static_cast<size_t>(v)]->rank() != rank) return false;
  return attrs.find<Axis>(FieldKind::axis) != nullptr;
}

bool is_conv(const GraphOp& op) { return op.op == &ops::conv || op.op == &ops::conv_weights; }

Role role_of(const Graph& graph, const GraphOp& op) {
  if (is_conv(op)) return Role::conv;
  if (op.op == &ops::pad_with) return Role::pad;
  if (op.op->is_elementwise()) return Role::elementwise;
  if (op.op->family == Family::reduction) return Role::reduction;
  if (op.op->view) {
    if (op.op == &ops::permute_dims) return Role::permute;
    const Shape& from = graph.types[static_cast<size_t>(graph.in(op)[0])]->shape;
    const Shape& to = graph.types[static_cast<size_t>(op.out)]->shape;
    if (op.op == &ops::reshape && moves_units_only(from, to)) return Role::units;
    return op.op == &ops::window ? Role::window : Role::none;
  }
  return works_along_axis(graph, op) ? Role::along_axis : Role::none;
}

/// Which values convolutions hand to each other: sets of values, joined by ops that keep the
/// layout.
class Chains {
 public:
  explicit Chains(const Graph& graph) : graph_(graph), parent_(graph.types.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const GraphOp& op : graph.ops) {
      if (role_of(graph, op) == Role::none) continue;
      for (Val v : graph.in(op))
        if (rank(v) > 2) parent_[at(root(v))] = root(op.out);
    }
    convs_.resize(parent_.size());
    for (const GraphOp& op : graph.ops)
      if (is_conv(op)) ++convs_[at(root(op.out))];
  }
  int convs(Val v) { return convs_[at(root(v))]; }

 private:
  static size_t at(Val v) { return static_cast<size_t>(v); }
  int rank(Val v) const { return graph_.types[at(v)]->rank(); }
  Val root(Val v) {
    while (parent_[at(v)] != v) v = parent_[at(v)] = parent_[at(parent_[at(v)])];
    return v;
  }
  const Graph& graph_;
  std::vector<Val> parent_;
  std::vector<int> convs_;
};

class Layout {
 public:
  Layout(const Graph& graph, PassContext& context)
      : from_(graph),
        context_(context),
        chains_(graph),
        wanted_(graph.types.size()),
        plain_(graph.types.size(), kNoVal),
        moved_(graph.types.size()),
        turned_(graph.types.size()) {
    for (size_t i = graph.ops.size(); i-- > 0;) {
      const GraphOp& op = graph.ops[i];
      Role role = role_of(graph, op);
      if (role == Role::none || (role != Role::conv && !wanted_[at(op.out)])) continue;
      for (Val v : graph.in(op)) wanted_[at(v)] = true;
    }
  }

  Graph run() {
    to_.name = from_.name, to_.input_names = from_.input_names;
    to_.types.assign(from_.types.begin(), from_.types.begin() + from_.inputs());
    for (Val v = 0; v < from_.inputs(); ++v) plain_[at(v)] = v;
    for (const GraphOp& op : from_.ops)
      if (!moves(op)) copy(op);
    for (Val v : from_.outputs) to_.outputs.push_back(plain(v));
    return std::move(to_);
  }

 private:
  /// A value in another order: axis k is axis order[k] of the one it stands for.
  struct Moved {
    Val value = kNoVal;
    Perm order;
  };

  static size_t at(Val v) { return static_cast<size_t>(v); }
  TypeRef type(Val v) const { return from_.types[at(v)]; }

  Val add(const OpDef& op, const Attrs* attrs, std::vector<Val> in, Loc loc) {
    std::vector<TypeRef> types;
    for (Val v : in) types.push_back(to_.types[at(v)]);
    std::span<const TypeRef> made = infer_types(op, attrs, types);
    return to_.add(op, attrs, in, std::vector<TypeRef>(made.begin(), made.end()), loc);
  }
  template <class A>
  Val add(const OpDef& op, const A& attrs, std::vector<Val> in, Loc loc) {
    return add(op, intern(*op.attrs, &attrs), std::move(in), loc);
  }
  Val reshape(Val v, const Shape& shape, Loc loc) {
    if (identical(to_.types[at(v)]->shape, shape)) return v;
    return add(ops::reshape, ops::ShapeAttrs{shape}, {v}, loc);
  }
  /// Where only unit axes move, a reshape: that costs nothing.
  Val permute(Val v, const Perm& order, Loc loc) {
    if (is_ascending(order)) return v;
    Perm solid;
    Shape shape;
    for (Axis a : order) {
      shape.push_back(to_.types[at(v)]->shape[a.i]);
      if (!shape.back().is(1)) solid.push_back(a);
    }
    if (is_ascending(solid)) return reshape(v, shape, loc);
    ops::PermAttrs attrs;
    attrs.axes = order;
    return add(ops::permute_dims, attrs, {v}, loc);
  }

  /// The value as it was, made where it is first wanted.
  Val plain(Val v, Loc loc = {}) {
    Val& made = plain_[at(v)];
    if (made == kNoVal) made = permute(moved_[at(v)].value, inverse(moved_[at(v)].order), loc);
    return made;
  }
  Val in_order(Val v, const Perm& order, Loc loc) {
    if (type(v)->rank() == 0) return plain(v, loc);
    if (type(v)->rank() < order.size())
      return permute(
          reshape(plain(v, loc), ops::with_leading_ones(type(v)->shape, order.size()), loc), order,
          loc);
    const Moved& moved = moved_[at(v)];
    Moved& turned = turned_[at(v)];
    if (moved.value != kNoVal && moved.order == order) return moved.value;
    if (turned.value == kNoVal || turned.order != order)
      turned = {permute(plain(v, loc), order, loc), order};
    return turned.value;
  }
  void give(Val v, Val value, const Perm& order) {
    if (is_ascending(order))
      plain_[at(v)] = value;
    else
      moved_[at(v)] = {value, order};
  }
  bool is_moved(Val v) const { return moved_[at(v)].value != kNoVal; }

  bool moves(const GraphOp& op);
  bool convolve(const GraphOp& op);
  bool elementwise(const GraphOp& op);
  bool reduce(const GraphOp& op, const Moved& x);
  bool permuted(const GraphOp& op, const Moved& x);
  bool change_units(const GraphOp& op, const Moved& x);
  bool windows(const GraphOp& op, const Moved& x);
  bool pad(const GraphOp& op, const Moved& x);
  bool along_axis(const GraphOp& op);
  std::optional<Perm> common_order(const GraphOp& op) const;
  void copy(const GraphOp& op);
  void decide(const GraphOp& op, bool made, std::string_view reason) {
    auto what = [&] {
      return format("{} of {}, channels last", op.op->name, *type(from_.in(op)[0]));
    };
    context_.decide("layout", made, op.loc, what, reason);
  }

  const Graph& from_;
  PassContext& context_;
  Graph to_;
  Chains chains_;
  std::vector<bool> wanted_;  // by convolutions, on the way or later
  std::vector<Val> plain_;
  std::vector<Moved> moved_;
  std::vector<Moved> turned_;  // the last other order a value was wanted in
};

bool Layout::moves(const GraphOp& op) {
  Role role = role_of(from_, op);
  if (role == Role::none) return false;
  if (role == Role::conv) return convolve(op);
  if (role == Role::elementwise) return elementwise(op);
  if (role == Role::along_axis) return along_axis(op);
  Val in = from_.in(op)[0];
  if (!is_moved(in)) return false;
  Moved x = moved_[at(in)];
  switch (role) {
    case Role::reduction:
      return reduce(op, x);
    case Role::permute:
      return permuted(op, x);
    case Role::units:
      return change_units(op, x);
    case Role::window:
      return windows(op, x);
    default:
      return pad(op, x);
  }
}

/// All operands and the result of a convolution, or of its adjoint in the weights, have their
/// channels in the same place.
bool Layout::convolve(const GraphOp& op) {
  ChangedAttrs attrs(op);
  bool& channels_last = *attrs.find<bool>(FieldKind::boolean);
  if (channels_last) return false;
  if (chains_.convs(op.out) < 2) {
    decide(op, false, "no other convolution shares its layout; it turns its operands itself");
    return false;
  }
  channels_last = true;
  Perm order = channels_last_order(type(op.out)->rank());
  std::vector<Val> in;
  for (Val v : from_.in(op)) in.push_back(in_order(v, order, op.loc));
  give(op.out, add(*op.op, attrs.interned(), in, op.loc), order);
  decide(op, true, format("one of {} that hand on their results", chains_.convs(op.out)));
  return true;
}

/// The order in which an op on several operands is computed: that of a moved one, if nothing large
/// is turned for it, or if a convolution wants the result.
std::optional<Perm> Layout::common_order(const GraphOp& op) const {
  std::optional<Perm> order;
  bool turns = false;
  for (Val v : from_.in(op)) {
    if (is_moved(v) && type(v)->rank() == type(op.out)->rank()) {
      if (!order) order = moved_[at(v)].order;
    } else {
      turns |= identical(type(v)->shape, type(op.out)->shape);
    }
  }
  return turns && !wanted_[at(op.out)] ? std::nullopt : order;
}

bool Layout::elementwise(const GraphOp& op) {
  std::optional<Perm> order = common_order(op);
  if (!order) return false;
  std::vector<Val> in;
  for (Val v : from_.in(op)) in.push_back(in_order(v, *order, op.loc));
  give(op.out, add(*op.op, op.attrs, in, op.loc), *order);
  return true;
}

bool Layout::along_axis(const GraphOp& op) {
  std::optional<Perm> order = common_order(op);
  if (!order) return false;
  ChangedAttrs attrs(op);
  Axis& axis = *attrs.find<Axis>(FieldKind::axis);
  axis = inverse(*order)[axis.i];
  std::vector<Val> in;
  for (Val v : from_.in(op)) in.push_back(in_order(v, *order, op.loc));
  give(op.out, add(*op.op, attrs.interned(), in, op.loc), *order);
  return true;
}

bool Layout::reduce(const GraphOp& op, const Moved& x) {
  Axes axes, moved;
  bool keepdims;
  op.op->reduce_axes(op.attr_data(), axes, keepdims);
  Perm folded, kept;
  for (int k = 0; k < x.order.size(); ++k) {
    if (axes.has(x.order[k].i)) moved.push_back(k), folded.push_back(x.order[k]);
    if (!axes.has(x.order[k].i)) kept.push_back(x.order[k]);
  }
  ChangedAttrs attrs(op);
  Axes* field = attrs.find<Axes>(FieldKind::axes);
  if (!field || !is_ascending(folded)) return false;
  *field = moved;
  Val made = add(*op.op, attrs.interned(), {x.value}, op.loc);
  if (keepdims) return give(op.out, made, x.order), true;
  Perm order;
  for (Axis a : kept) {
    auto before = [&](Axis b) { return b.i < a.i; };
    order.push_back(static_cast<int>(std::count_if(kept.begin(), kept.end(), before)));
  }
  give(op.out, made, order);
  return true;
}

bool Layout::permuted(const GraphOp& op, const Moved& x) {
  const Perm& axes = *static_cast<const ops::PermAttrs*>(op.attr_data())->axes;
  give(op.out, x.value, composed(inverse(axes), x.order));
  return true;
}

/// Axes of extent 1 stand in front: where they are does not matter.
bool Layout::change_units(const GraphOp& op, const Moved& x) {
  const Shape& to = type(op.out)->shape;
  Perm before = axes_of(type(from_.in(op)[0])->shape, false), after = axes_of(to, false);
  Perm order = axes_of(to, true);
  for (Axis a : x.order)
    for (int k = 0; k < before.size(); ++k)
      if (before[k].i == a.i) order.push_back(after[k]);
  Shape shape;
  for (Axis a : order) shape.push_back(to[a.i]);
  give(op.out, reshape(x.value, shape, op.loc), order);
  return true;
}

/// Windows are over the last axes, so they are taken of x as it was: that is a view of a view.
bool Layout::windows(const GraphOp& op, const Moved& x) {
  plain_[at(op.out)] = add(*op.op, op.attrs, {plain(from_.in(op)[0], op.loc)}, op.loc);
  Perm order = x.order;
  for (int k = order.size(); k < type(op.out)->rank(); ++k) order.push_back(k);
  moved_[at(op.out)] = {permute(plain_[at(op.out)], order, op.loc), order};
  return true;
}

bool Layout::pad(const GraphOp& op, const Moved& x) {
  ChangedAttrs attrs(op);
  Offsets& widths = *attrs.find<Offsets>(FieldKind::offsets);
  Offsets given = widths;
  for (int k = 0; k < x.order.size(); ++k)
    for (int side = 0; side < 2; ++side) widths[2 * k + side] = given[2 * x.order[k].i + side];
  std::vector<Val> in{x.value, plain(from_.in(op)[1], op.loc)};
  give(op.out, add(*op.op, attrs.interned(), in, op.loc), x.order);
  return true;
}

void Layout::copy(const GraphOp& op) {
  std::vector<Val> in;
  for (Val v : from_.in(op)) in.push_back(plain(v, op.loc));
  Val first = to_.add(*op.op, op.attrs, in, from_.out_types(op), op.loc);
  to_.ops.back().scalar = op.scalar;
  for (int i = 0; i < op.outs; ++i) plain_[at(op.out + i)] = first + i;
}

}  // namespace

Graph put_channels_last(const Graph& graph, PassContext& context) {
  return costs_of(context.target).channels_last ? Layout(graph, context).run() : graph;
}

}  // namespace tn
