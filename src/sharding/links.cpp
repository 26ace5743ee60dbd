// Links by family, and through the bodies of composites.
#include "sharding/links.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "ir/rewrite.h"
#include "ops/op_decls.h"

namespace tn::sharding {

namespace {

std::vector<Loop> loops_of_elementwise(const OpView& op) {
  std::vector<Loop> loops;
  int rank = op.rank(op.ins);
  for (int d = 0; d < rank; ++d) {
    Loop loop;
    for (int k = 0; k <= op.ins; ++k) {
      int dim = d - (rank - op.rank(k));
      if (dim >= 0 && identical(op.shape(k)[dim], op.shape(op.ins)[d]))
        loop.places.push_back({k, dim});
    }
    loops.push_back(loop);
  }
  return loops;
}

std::vector<Loop> loops_of_reduction(const OpView& op) {
  Axes axes;
  bool keepdims = false;
  op.op.reduce_axes(op.attrs, axes, keepdims);
  std::vector<Loop> loops;
  int to = 0;
  for (int d = 0; d < op.rank(0); ++d) {
    if (axes.has(d)) {
      loops.push_back({{{0, d}}, op.op.monoid});
      to += keepdims;
    } else {
      loops.push_back({{{0, d}, {1, to++}}});
    }
  }
  return loops;
}

/// The product of the extents in front of every dimension; none where one is not a constant.
std::vector<std::optional<int64_t>> sizes_in_front(const Shape& shape) {
  std::vector<std::optional<int64_t>> front(static_cast<size_t>(shape.rank()));
  int64_t product = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    front[static_cast<size_t>(d)] = product;
    if (!shape[d].is_const()) break;
    if (__builtin_mul_overflow(product, shape[d].raw, &product)) break;
  }
  return front;
}

/// Row-major digits stay where they are: position = radix · extents in front, on both sides.
std::vector<Loop> loops_of_reshape(const Shape& from, const Shape& to) {
  std::vector<Loop> loops;
  auto front = sizes_in_front(from), front_to = sizes_in_front(to);
  for (int d = 0; d < from.rank(); ++d)
    for (int e = 0; e < to.rank(); ++e) {
      auto a = front[static_cast<size_t>(d)], b = front_to[static_cast<size_t>(e)];
      if (a && b && *a > 0 && *b > 0) loops.push_back({{{0, d, *a}, {1, e, *b}}});
    }
  return loops;
}

/// One of k equal parts: a digit of radix r in it has radix k·r in the whole.
std::vector<Loop> loops_of_slice(const View& view, const Shape& from) {
  std::vector<Loop> loops;
  for (int d = 0; d < from.rank(); ++d) {
    Dim whole = from[d], part = view.shape[d];
    if (identical(whole, part)) {
      loops.push_back({{{0, d}, {1, d}}});
      continue;
    }
    bool known = whole.is_const() && part.is_const() && view.start[d].is_const();
    if (!known || part.raw == 0 || view.step[d] != 1) continue;
    if (whole.raw % part.raw || view.start[d].raw % part.raw) continue;
    loops.push_back({{{0, d}, {1, d, whole.raw / part.raw}}});
  }
  return loops;
}

std::vector<Loop> loops_of_movement(const OpView& op) {
  View view = op.op.view(op.attrs, *op.types[0]);
  const Shape& from = op.shape(0);
  std::vector<Loop> loops;
  switch (view.kind) {
    case View::Kind::reshape:
      return loops_of_reshape(from, op.shape(1));
    case View::Kind::slice:
      return loops_of_slice(view, from);
    case View::Kind::permute:
      for (int k = 0; k < op.rank(1); ++k) loops.push_back({{{0, view.perm[k].i}, {1, k}}});
      break;
    case View::Kind::broadcast:
      for (int k = 0; k < op.rank(1); ++k) {
        bool repeats = !identical(from[k], op.shape(1)[k]);
        if (repeats && !from[k].is(1)) continue;
        loops.push_back({{{1, k}}});
        if (!repeats) loops.back().places.push_back({0, k});
      }
      break;
    case View::Kind::reverse:
      for (int k = 0; k < op.rank(1); ++k)
        if (!view.axes.has(k)) loops.push_back({{{0, k}, {1, k}}});
      break;
    case View::Kind::window:  // windows overlap; the dimensions in front of them are a batch
      for (int k = 0; k + view.step.size() < from.rank(); ++k) loops.push_back({{{0, k}, {1, k}}});
      break;
  }
  return loops;
}

std::optional<Reach> reach_along(const Loop& loop, const OpView& op, int slot, Digit from,
                                 int64_t parts) {
  auto start = std::ranges::find_if(
      loop.places, [&](const Place& p) { return p.slot == slot && p.dim == from.dim; });
  if (start == loop.places.end()) return {};
  int64_t position = from.radix * start->times;
  if (loop.in_blocks && position != 1) return {};
  Reach reach{std::vector<Digit>(op.types.size()), loop.fold};
  for (const Place& p : loop.places) {
    int64_t radix = position / p.times;
    bool fits = position % p.times == 0 && has_digit(op.shape(p.slot)[p.dim], radix, parts);
    Digit& digit = reach.slots[static_cast<size_t>(p.slot)];
    if (!fits || digit) return {};
    digit = {p.dim, radix};
  }
  return reach;
}

}  // namespace

std::vector<Loop> loops_of(const OpView& op) {
  if (op.op.is_elementwise()) return loops_of_elementwise(op);
  if (op.op.family == Family::reduction) return loops_of_reduction(op);
  if (op.op.family == Family::movement) return loops_of_movement(op);
  return loops_of_general(op);
}

std::vector<std::vector<int>> ops_at_values(const Graph& graph) {
  std::vector<std::vector<int>> at(graph.types.size());
  auto add = [&](Val v, int op) {
    auto& list = at[static_cast<size_t>(v)];
    if (list.empty() || list.back() != op) list.push_back(op);
  };
  for (int i = 0; i < static_cast<int>(graph.ops.size()); ++i) {
    const GraphOp& op = graph.ops[static_cast<size_t>(i)];
    for (Val v : graph.in(op)) add(v, i);
    for (Val v = op.out; v < op.out + op.outs; ++v) add(v, i);
  }
  return at;
}

struct Links::Inside {
  InnerGraph inner;
  Links links;
  std::vector<std::vector<int>> ops_at;
  std::vector<std::vector<Val>> alike;
  explicit Inside(InnerGraph graph)
      : inner(std::move(graph)),
        links(inner.graph),
        ops_at(ops_at_values(inner.graph)),
        alike(inner.neighbours()) {}

  /// Digits of all values when one axis divides those given and nothing is folded, gathered or in
  /// conflict; nothing when that cannot be.
  std::optional<std::vector<Digit>> spread(const std::vector<Val>& seeds, Digit from,
                                           int64_t parts) {
    std::vector<Digit> digits(inner.graph.types.size());
    std::deque<Val> waiting;
    auto place = [&](Val v, Digit digit) {
      Digit& now = digits[static_cast<size_t>(v)];
      if (now || !digit) return now == digit;
      now = digit;
      waiting.push_back(v);
      return true;
    };
    for (Val v : seeds)
      if (!place(v, from)) return {};
    for (; !waiting.empty(); waiting.pop_front()) {
      Val v = waiting.front();
      Digit here = digits[static_cast<size_t>(v)];
      for (Val other : alike[static_cast<size_t>(v)])
        if (!place(other, here)) return {};
      for (int op : ops_at[static_cast<size_t>(v)])
        for (int slot = 0; slot < links.slots(op); ++slot) {
          if (links.value(op, slot) != v) continue;
          auto reach = links.follow(op, slot, here, parts);
          if (!reach || reach->fold) return {};
          for (int k = 0; k < links.slots(op); ++k)
            if (!place(links.value(op, k), reach->slots[static_cast<size_t>(k)])) return {};
        }
    }
    return digits;
  }
};

Links::Links(const Graph& graph)
    : graph_(graph), known_(graph.ops.size()), makers_(graph.types.size(), -1) {
  for (size_t i = 0; i < graph.ops.size(); ++i)
    for (int k = 0; k < graph.ops[i].outs; ++k)
      makers_[static_cast<size_t>(graph.ops[i].out + k)] = static_cast<int>(i);
}

Links::~Links() = default;

Val Links::value(int op, int slot) const {
  const GraphOp& one = op_at(op);
  return slot < one.ins ? graph_.in(one)[static_cast<size_t>(slot)] : one.out + slot - one.ins;
}

OpView Links::view(int op) const {
  const GraphOp& one = op_at(op);
  OpView made{*one.op, one.attr_data(), graph_.in_types(one), one.ins};
  for (TypeRef type : graph_.out_types(one)) made.types.push_back(type);
  made.adds_to_zeros = one.ins > 0 && is_zero(graph_.in(one)[0]);
  return made;
}

/// Whether a value repeats the constant +0.
bool Links::is_zero(Val v) const {
  while (makers_[static_cast<size_t>(v)] >= 0) {
    const GraphOp& maker = op_at(makers_[static_cast<size_t>(v)]);
    if (maker.op == &scalar_leaf) {
      const Scalar& s = maker.scalar;
      return s.integer == 0 && s.real == 0 && s.imag == 0 && !std::signbit(s.real);
    }
    if (maker.op->family != Family::movement) return false;
    v = graph_.in(maker)[0];
  }
  return false;
}

Links::Known& Links::known(int op) {
  Known& known = known_[static_cast<size_t>(op)];
  if (known.is_made) return known;
  known.is_made = true;
  const GraphOp& one = op_at(op);
  if (one.op == &scalar_leaf) return known;
  if (auto inner = inner_graph(graph_, one))
    known.inside = std::make_unique<Inside>(std::move(*inner));
  else
    known.loops = loops_of(view(op));
  return known;
}

const InnerGraph* Links::inner(int op) {
  Known& links = known(op);
  return links.inside ? &links.inside->inner : nullptr;
}

std::optional<Reach> Links::follow(int op, int slot, Digit from, int64_t parts) {
  Known& links = known(op);
  if (links.inside) return follow_inside(op, slot, from, parts);
  OpView made = view(op);
  for (const Loop& loop : links.loops)
    if (auto reach = reach_along(loop, made, slot, from, parts)) return reach;
  return {};
}

std::optional<Reach> Links::follow_inside(int op, int slot, Digit from, int64_t parts) {
  Inside& inside = *known(op).inside;
  const InnerSlot& start = inside.inner.slots[static_cast<size_t>(slot)];
  if (from.dim < start.steps || start.values.empty()) return {};
  auto digits = inside.spread(start.values, {from.dim - start.steps, from.radix}, parts);
  if (!digits) return {};
  Reach reach{{}, {}, std::move(*digits)};
  for (const InnerSlot& at : inside.inner.slots) {
    Digit digit = at.values.empty() ? Digit{} : reach.inside[static_cast<size_t>(at.values[0])];
    if (digit) digit.dim += at.steps;
    reach.slots.push_back(digit);
  }
  return reach;
}

}  // namespace tn::sharding
