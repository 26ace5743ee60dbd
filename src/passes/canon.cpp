// One form for ops that give the same bits: every rule is an equation that holds exactly, for -0,
// NaN and infinities too.
//
// Views meet and cancel (canon_views), numbers that change nothing go away (canon_elementwise), and
// views move behind the ops that read them, until they meet another view or a `dot` that takes them
// in (canon_dot). So chains of elementwise ops have one shape, and a reduction keeps its axes.
#include "passes/canon.h"

#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "passes/passes.h"

namespace tn {

Canon::Canon(const Graph& graph) : from_(graph), old_uses_(graph.types.size()) {
  for (Val v : graph.operands) ++old_uses_[static_cast<size_t>(v)];
  for (Val v : graph.outputs) ++old_uses_[static_cast<size_t>(v)];
}

Graph Canon::run() {
  copy_.inputs();
  makers_.assign(graph_.types.size(), -1), uses_.assign(graph_.types.size(), 0);
  for (const GraphOp& op : from_.ops) {
    loc_ = op.loc;
    if (op.outs != 1 || op.op == &scalar_leaf)
      copy_op(op);
    else
      keep(op.out, add({op.op, op.attrs, copy_.in(op), from_.out_types(op)[0], op.loc}));
  }
  graph_.outputs = copy_.all(from_.outputs);
  return std::move(graph_);
}

void Canon::keep(Val old, Val made) {
  copy_[old] = made;
  uses_[static_cast<size_t>(made)] += old_uses_[static_cast<size_t>(old)];
}

/// A number is written in the kind of its type, where that is exact: 0 and 0.0 are one f32.
static Scalar in_kind_of(DType type, const Scalar& s) {
  constexpr int64_t kExact = int64_t{1} << 53;
  bool exact = s.kind == Kind::integer && s.integer >= -kExact && s.integer <= kExact;
  return is_float(type) && exact ? Scalar(static_cast<double>(s.integer)) : s;
}

void Canon::copy_op(const GraphOp& op) {
  copy_.op(op);
  makers_.resize(graph_.types.size(), static_cast<int32_t>(graph_.ops.size()) - 1);
  uses_.resize(graph_.types.size());
  for (Val v = op.out; v < op.out + op.outs; ++v) keep(v, copy_[v]);
  if (op.op == &scalar_leaf)
    graph_.ops.back().scalar = in_kind_of(from_.out_types(op)[0]->dtype, op.scalar);
}

Val Canon::append(const Candidate& op) {
  Val made = graph_.add(*op.op, op.attrs, op.in, {&op.type, 1}, op.loc);
  makers_.push_back(static_cast<int32_t>(graph_.ops.size()) - 1), uses_.push_back(0);
  return made;
}

static std::span<const CanonRule> rules_of(const OpDef& op) {
  if (op.view) return view_rules();
  if (op.is_elementwise()) return elementwise_rules();
  if (op.family == Family::reduction) return reduction_rules();
  if (&op == &ops::dot) return dot_rules();
  return {};
}

Val Canon::add(const Candidate& op) {
  for (CanonRule rule : rules_of(*op.op))
    if (Val v = rule(*this, op); v != kNoVal) return v;
  return append(op);
}

Val Canon::add(const OpDef& op, const Attrs* attrs, std::vector<Val> in) {
  std::vector<TypeRef> types;
  for (Val v : in) types.push_back(type(v));
  TypeRef made = infer_types(op, attrs, types)[0];
  return add({&op, attrs, std::move(in), made, loc_});
}

Val Canon::add_number(const Scalar& value, DType dtype) {
  Val made = append({&scalar_leaf, nullptr, {}, intern(dtype, {}), loc_});
  graph_.ops.back().scalar = value;
  return made;
}

Val Canon::reshape(Val x, const Shape& to) {
  return identical(shape(x), to) ? x : add(ops::reshape, ops::ShapeAttrs{to}, {x});
}

Val Canon::permute(Val x, const Perm& perm) {
  return add(ops::permute_dims, ops::PermAttrs{perm}, {x});
}

Val Canon::repeat(Val x, const Shape& to) {
  x = reshape(x, ops::with_leading_ones(shape(x), to.rank()));
  return identical(shape(x), to) ? x : add(ops::broadcast_to, ops::ShapeAttrs{to}, {x});
}

GraphOp Canon::maker(Val v) const {
  int32_t op = makers_[static_cast<size_t>(v)];
  return op < 0 ? GraphOp{} : graph_.ops[static_cast<size_t>(op)];
}

Val Canon::operand_of(Val v, const OpDef& op) const {
  GraphOp made = maker(v);
  return made.op == &op ? in(made)[0] : kNoVal;
}

Val Canon::repeated_scalar(Val v) const {
  if (Val x = operand_of(v, ops::broadcast_to); x != kNoVal) v = x;
  if (Val x = operand_of(v, ops::reshape); x != kNoVal) v = x;
  return shape(v).rank() == 0 ? v : kNoVal;
}

std::optional<Scalar> Canon::number(Val v) const {
  Val x = repeated_scalar(v);
  if (x == kNoVal || maker(x).op != &scalar_leaf) return {};
  return maker(x).scalar;
}

bool same_but_units(const Shape& a, const Shape& b) {
  auto extents = [](const Shape& shape) {
    Shape kept;
    for (Dim d : shape)
      if (!d.is(1)) kept.push_back(d);
    return kept;
  };
  return identical(extents(a), extents(b));
}

bool is_ascending(const Axes& axes) {
  return std::is_sorted(axes.begin(), axes.end(), [](Axis a, Axis b) { return a.i < b.i; });
}

Graph canonicalise(const Graph& graph, PassContext&) { return prune(Canon(graph).run()); }

}  // namespace tn
