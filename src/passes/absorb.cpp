// Products and convolutions take factors of their output channels into their weights, and terms
// behind:
//
//     f(x, w) · s = f(x, w · s)                      f is linear in w, and s varies along the axis
//     (f(x, w) + t) · s = f(x, w · s) + t · s        of the result that is an axis of w
//     f(x, w) + t + u = f(x, w) + (t + u)
//
// which rounds otherwise, and so has to be asked for. A batch norm behind a convolution is a term,
// a factor and a term: what is left of it is a bias. With weights that are known, `fold` computes
// the rest ahead; others must be smaller than the result, or it would be more work than before.
#include "ir/rewrite.h"
#include "ops/contract.h"
#include "ops/conv_attrs.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "passes/passes.h"

namespace tn {
namespace {

/// An axis of the result that is an axis of one operand, which the op is linear in.
struct ChannelAxis {
  int operand, axis, of_result;
};

std::vector<ChannelAxis> channel_axes(const Graph& graph, const GraphOp& op) {
  std::vector<ChannelAxis> found;
  if (op.op == &ops::conv) {
    const auto& a = *static_cast<const ops::ConvAttrs*>(op.attr_data());
    int rank = graph.types[static_cast<size_t>(op.out)]->rank();
    found.push_back({1, 0, a.channel_axis(rank)});
  } else if (op.op == &ops::dot) {
    const auto& a = *static_cast<const ops::DotAttrs*>(op.attr_data());
    const Axes* apart[2][2] = {{&a.lhs_batch, &a.lhs_contract}, {&a.rhs_batch, &a.rhs_contract}};
    int next = a.lhs_batch.size();
    for (int k = 0; k < 2; ++k) {
      int rank = graph.types[static_cast<size_t>(graph.in(op)[static_cast<size_t>(k)])]->rank();
      for (int axis = 0; axis < rank; ++axis)
        if (!apart[k][0]->has(axis) && !apart[k][1]->has(axis)) found.push_back({k, axis, next++});
    }
  }
  return found;
}

/// f(x, w) · scale + shift. Values are of the graph that is made.
struct Affine {
  int maker = -1;             // the op f
  int operand = -1;           // w
  int axis = -1, result = 0;  // of w, and of the result; -1: scale and shift have one element
  Val scale = kNoVal, shift = kNoVal;
  Loc loc = {};
};

class Absorber {
 public:
  Absorber(const Graph& graph, PassContext& context)
      : from_(graph),
        context_(context),
        uses_(graph.types.size()),
        makers_(graph.types.size(), -1),
        known_(graph.types.size()),
        affine_(graph.types.size()) {
    for (Val v : graph.operands) ++uses_[index(v)];
    for (Val v : graph.outputs) ++uses_[index(v)];
    for (Val v = context.first_constant(graph); v < graph.inputs(); ++v) known_[index(v)] = true;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const GraphOp& op = graph.ops[i];
      auto in = graph.in(op);
      bool known = std::ranges::all_of(in, [&](Val v) { return known_[index(v)]; });
      for (Val v = op.out; v < op.out + op.outs; ++v)
        makers_[index(v)] = static_cast<int>(i), known_[index(v)] = known;
    }
  }

  Graph run() {
    copy_.inputs();
    for (size_t i = 0; i < from_.ops.size(); ++i) {
      const GraphOp& op = from_.ops[i];
      if (starts(op, static_cast<int>(i)) || goes_on(op)) continue;
      for (Val v : from_.in(op)) settle(v);
      copy_.op(op);
    }
    for (Val v : from_.outputs) settle(v);
    to_.outputs = copy_.all(from_.outputs);
    return std::move(to_);
  }

 private:
  static size_t index(int i) { return static_cast<size_t>(i); }
  TypeRef type(Val v) const { return from_.types[index(v)]; }

  /// A product or convolution that one op reads is added when it is known what it absorbs.
  bool starts(const GraphOp& op, int number) {
    if (channel_axes(from_, op).empty() || uses_[index(op.out)] != 1) return false;
    DType dtype = type(op.out)->dtype;
    if (dtype != DType::f32 && dtype != DType::f64) return false;
    for (Val v : from_.in(op)) settle(v);
    affine_[index(op.out)] = {.maker = number, .loc = op.loc};
    return true;
  }

  /// A factor or term of what is under way, if it is one of channels.
  bool goes_on(const GraphOp& op) {
    bool adds = op.op == &ops::add, multiplies = op.op == &ops::multiply;
    if (!adds && !multiplies && op.op != &ops::subtract && op.op != &ops::divide) return false;
    std::span<const Val> in = from_.in(op);
    size_t side = is_under_way(in[0]) ? 0 : 1;
    bool either = adds || multiplies;
    if (!is_under_way(in[side]) || (side == 1 && !either) || in[0] == in[1]) return false;
    if (type(in[side]) != type(op.out)) return false;
    Affine so_far = affine_[index(in[side])];
    Val other = unrepeated(in[1 - side]);
    if (!fits(so_far, other, multiplies || op.op == &ops::divide)) return false;
    settle(other);
    apply(so_far, *op.op, copy_[other], op.loc);
    affine_[index(in[side])] = {};
    if (uses_[index(op.out)] == 1) {
      affine_[index(op.out)] = so_far;
    } else {
      copy_[op.out] = finished(so_far);
    }
    return true;
  }

  bool is_under_way(Val v) const { return affine_[index(v)].maker >= 0; }

  Val unrepeated(Val v) const {
    int maker = makers_[index(v)];
    bool repeats = maker >= 0 && from_.ops[index(maker)].op == &ops::broadcast_to;
    return repeats ? from_.in(from_.ops[index(maker)])[0] : v;
  }

  /// Whether `other` has one element, or varies along the axis of the affine alone, which it may
  /// choose. A factor must be worth it.
  bool fits(Affine& so_far, Val other, bool is_factor) {
    const GraphOp& maker = from_.ops[index(so_far.maker)];
    const Shape &result = type(maker.out)->shape, &shape = type(other)->shape;
    if (shape.rank() > result.rank() || is_under_way(other)) return false;
    int varies = -1;
    for (int k = 0; k < shape.rank(); ++k) {
      if (shape[k].is(1)) continue;
      if (varies >= 0) return false;
      varies = k + result.rank() - shape.rank();
    }
    if (varies < 0) return !is_factor || (so_far.axis >= 0 && so_far.scale != kNoVal);
    if (so_far.axis >= 0) {
      if (so_far.result != varies) return false;
      return !is_factor || so_far.scale != kNoVal || pays(maker, so_far.operand, other);
    }
    for (const ChannelAxis& c : channel_axes(from_, maker)) {
      if (c.of_result != varies) continue;
      if (is_factor && !pays(maker, c.operand, other)) return false;
      so_far.operand = c.operand, so_far.axis = c.axis, so_far.result = varies;
      return true;
    }
    return false;
  }

  bool pays(const GraphOp& maker, int operand, Val factor) const {
    Val weight = from_.in(maker)[index(operand)];
    if (known_[index(weight)] && known_[index(factor)]) return true;
    return context_.bytes(type(weight)) < context_.bytes(type(maker.out));
  }

  void apply(Affine& so_far, const OpDef& op, Val other, Loc loc) {
    bool is_factor = &op == &ops::multiply || &op == &ops::divide;
    Val& shift = so_far.shift;
    if (shift != kNoVal) {
      shift = add(op, {shift, other}, loc);
    } else if (!is_factor) {
      shift = &op == &ops::add ? other : add(ops::negative, {other}, loc);
    }
    if (!is_factor) return;
    if (so_far.scale != kNoVal)
      so_far.scale = add(op, {so_far.scale, other}, loc);
    else
      so_far.scale = &op == &ops::multiply ? other : add(ops::reciprocal, {other}, loc);
  }

  /// Adds what is under way at `v`, before an op that does not go on with it.
  void settle(Val v) {
    if (!is_under_way(v)) return;
    copy_[v] = finished(affine_[index(v)]);
    affine_[index(v)] = {};
  }

  Val finished(const Affine& a) {
    const GraphOp& maker = from_.ops[index(a.maker)];
    std::vector<Val> in = copy_.in(maker);
    if (a.scale != kNoVal) {
      Val& weight = in[index(a.operand)];
      Shape shape;
      for (int k = 0; k < to_.types[index(weight)]->rank(); ++k) shape.push_back(1);
      shape[a.axis] = from_.types[index(maker.out)]->shape[a.result];
      weight = add(ops::multiply, {weight, reshaped(a.scale, shape, a.loc)}, a.loc);
      context_.decide(
          "absorb", true, maker.loc,
          [&] { return format("factors of {} in its weight", maker.op->name); },
          "what is linear in its weight need not be scaled behind");
    }
    Val made = to_.add(*maker.op, maker.attrs, in, from_.out_types(maker), maker.loc);
    return a.shift == kNoVal ? made : add(ops::add, {made, a.shift}, a.loc);
  }

  Val reshaped(Val v, const Shape& shape, Loc loc) {
    if (identical(to_.types[index(v)]->shape, shape)) return v;
    ops::ShapeAttrs attrs{shape};
    return add(ops::reshape, {v}, loc, intern(*ops::reshape.attrs, &attrs));
  }

  Val add(const OpDef& op, std::vector<Val> in, Loc loc) {
    return add(op, std::move(in), loc, intern(*op.attrs, nullptr));
  }
  Val add(const OpDef& op, std::vector<Val> in, Loc loc, const Attrs* attrs) {
    std::vector<TypeRef> types;
    for (Val v : in) types.push_back(to_.types[index(v)]);
    auto inferred = infer_types(op, attrs, types);
    std::vector<TypeRef> out(inferred.begin(), inferred.end());
    return to_.add(op, attrs, in, out, loc);
  }

  const Graph& from_;
  PassContext& context_;
  Graph to_;
  GraphCopy copy_{from_, to_};
  std::vector<int> uses_, makers_;  // by value
  std::vector<bool> known_;         // by value: follows from constants
  std::vector<Affine> affine_;      // by value: what is not added yet
};

}  // namespace

Graph absorb_factors(const Graph& graph, PassContext& context) {
  return Absorber(graph, context).run();
}

}  // namespace tn
