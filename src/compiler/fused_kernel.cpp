#include "compiler/fused_kernel.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/function_ref.h"
#include "loop/refine_kernel.h"
#include "plan/library.h"

namespace tn {

using loop::S;
using loop::Z;

/// The real or imaginary part of a number, as `type` holds it. One that is given at run time joins
/// `scalars`. Narrow floats are rounded once, from double.
static S number_part(loop::Builder& b, std::vector<int32_t>& scalars, const Home& home, DType type,
                     bool imaginary) {
  bool narrow = info(type).compute != type;
  DType read_as = narrow ? DType::f64 : type;
  S x;
  if (home.kind == Home::Kind::argument) {
    scalars.push_back(imaginary ? ~home.argument : home.argument);
    x = b.argument(b.add_argument(), read_as);
  } else {
    bool split = imaginary || home.value.kind == Kind::complex;
    x = b.constant(split ? Scalar(imaginary ? home.value.imag : home.value.real) : home.value,
                   read_as);
  }
  return narrow ? b.cast(b.cast(x, type), info(type).compute) : x;
}

loop::Kernel nest_of(const Graph& graph, const GraphOp& op) {
  std::vector<TypeRef> in = graph.in_types(op);
  loop::Lowering lowering(std::string(op.op->name), in, graph.out_types(op));
  op.op->rules->lower(op.attr_data(), lowering);
  return lowering.b.finish();
}

static std::string name_of(const Graph& graph, const Cluster& cluster) {
  if (cluster.members.empty()) return "copy";
  return std::string(graph.ops[static_cast<size_t>(cluster.members.back())].op->name);
}

FusedKernel::FusedKernel(const Graph& graph, const Fusion& fusion, const Cluster& cluster,
                         std::span<const Home> homes)
    : graph_(graph),
      fusion_(fusion),
      cluster_(cluster),
      homes_(homes),
      b_(name_of(graph, cluster)) {}

void FusedKernel::add_loops(const Shape& domain, const Axes& reduced, std::span<const Val> reads) {
  nest_.emplace(domain, reduced);
  for (Val v : reads)
    if (home(v).kind == Home::Kind::buffer) nest_->add(v, home(v).at);
  nest_->build(b_);
  folded_ = nest_->reduced();
}

/// Without the wider forms of narrow floats, at the end, that are only stored.
loop::Kernel FusedKernel::finish() {
  std::vector<loop::Value>& made = b_.kernel().values;
  auto is_last = [&](const loop::Store& s) { return std::cmp_equal(s.value + 1, made.size()); };
  auto is_float_cast = [](const loop::Value& v) {
    return v.op == loop::Op::cast && is_float(v.type);
  };
  while (!made.empty() && is_float_cast(made.back()) &&
         std::ranges::none_of(b_.kernel().stores, is_last))
    made.pop_back();
  return b_.finish();
}

loop::Kernel FusedKernel::whole() {
  if (fusion_.immediate) {
    const GraphOp& end = graph_.ops[static_cast<size_t>(cluster_.members.back())];
    add_loops(domain_of(graph_, end), cluster_.folds ? folding_of(end).axes : Axes(),
              cluster_.reads);
    // In order, so that what a member is made of is there: members are many, and stacks may be
    // small.
    for (int m : cluster_.members) {
      Val v = graph_.ops[static_cast<size_t>(m)].out;
      cluster_.stores.count(v) ? store(v, {}) : static_cast<void>(value(v, {}));
    }
    return finish();
  }
  b_.add_axis(cluster_.points);
  bool folds = std::ranges::any_of(cluster_.members, [&](int m) {
    return graph_.ops[static_cast<size_t>(m)].op->family == Family::reduction;
  });
  if (cluster_.folds)
    b_.add_axis(cluster_.folded, folds ? loop::AxisKind::red : loop::AxisKind::par);
  build({}, kNoVal);
  return loop::refined(finish());
}

std::optional<loop::Kernel> FusedKernel::tile(const Target& target) {
  const GraphOp& hero = graph_.ops[static_cast<size_t>(cluster_.hero)];
  std::vector<TypeRef> in = graph_.in_types(hero);
  TileDomain domain =
      tiled_form(*hero.op, in, target)->domain(hero.attr_data(), in, graph_.out_types(hero));
  PolyTable& t = b_.polys();
  PolyId place = t.constant(0);
  for (Dim extent : {domain.batch, domain.rows, domain.columns}) {
    int axis = b_.add_axis(extent);
    place = t.add(t.mul(place, t.from_dim(extent)), b_.axis(axis));
  }
  PolyTable::AtomMap map;
  PolyId flat = t.axis(0, t.from_dim(cluster_.points));
  if (auto atom = t.as_atom(flat)) map[*atom] = place;
  build(map, hero.out);
  loop::Kernel kernel = finish();
  if (!loop::is_linear(kernel)) return std::nullopt;
  return kernel;
}

loop::Kernel FusedKernel::copy(Val v) {
  if (fusion_.immediate) {
    add_loops(type(v)->shape, {}, {&v, 1});
    store(v, {});
    return finish();
  }
  b_.add_axis(elements_of(*type(v)));
  store(v, point(b_.polys(), type(v)->shape, b_.axis(0)));
  return loop::refined(finish());
}

void FusedKernel::build(const PolyTable::AtomMap& axes, Val there) {
  for (const auto& [v, at] : cluster_.stores) {
    if (v == there) continue;
    Coords here;
    for (PolyId p : at) {
      PolyId copied = b_.polys().copy_from(*fusion_.polys, p);
      here.push_back(axes.empty() ? copied : b_.polys().substitute(copied, axes));
    }
    store(v, here);
  }
}

bool FusedKernel::is_member(int op) const {
  return std::ranges::binary_search(cluster_.members, op);
}

bool FusedKernel::is_transparent(const GraphOp& op) const {
  auto is_stored = [&](const Cluster& c) { return c.stores.contains(op.out); };
  bool is_copy = cluster_.members.empty();
  return op.op->view && !(is_copy && std::ranges::any_of(fusion_.clusters, is_stored));
}

loop::Element FusedKernel::value(Val v, const Coords& at) {
  auto [known, added] = made_.try_emplace({v, at});
  if (!added) return known->second;
  int made_by = fusion_.producer[static_cast<size_t>(v)];
  bool number = home(v).kind == Home::Kind::constant || home(v).kind == Home::Kind::argument;
  loop::Element made;
  if (number) {
    DType dtype = type(v)->dtype;
    made.re = number_part(b_, scalars, home(v), real_of(dtype), false);
    if (is_complex(dtype)) made.im = number_part(b_, scalars, home(v), real_of(dtype), true);
  } else if (made_by < 0 || (nest_ && nest_->reads(v))) {
    made = load(v, at);
  } else {
    const GraphOp& op = graph_.ops[static_cast<size_t>(made_by)];
    if (is_transparent(op)) {
      Val from = graph_.in(op)[0];
      View view = op.op->view(op.attr_data(), *type(from));
      made = value(from, through_view(b_.polys(), view, type(from)->shape, at));
    } else {
      made = is_member(made_by) ? compute(op, at) : load(v, at);
    }
  }
  return known->second = made;
}

Coords FusedKernel::operand_at(Val v, const GraphOp& op, const Coords& at) {
  if (nest_) return {};
  return broadcast_point(b_.polys(), type(v)->shape, at, type(op.out)->shape);
}

loop::Element FusedKernel::compute(const GraphOp& op, const Coords& at) {
  DType dtype = type(op.out)->dtype;
  if (op.op->family == Family::reduction) return rounded(fold(op, at), dtype);
  if (!op.op->is_elementwise()) return nest(op, at);
  std::vector<loop::Element> in;
  in.reserve(static_cast<size_t>(op.ins));
  for (Val v : graph_.in(op)) in.push_back(value(v, operand_at(v, op, at)));
  b_.compute_for(dtype);
  return rounded(applied(op, in), dtype);
}

/// Not inlined: its lists are not to lie on the stack while operands are computed.
[[gnu::noinline]] loop::Element FusedKernel::applied(const GraphOp& op,
                                                     std::span<const loop::Element> in) {
  if (std::ranges::any_of(in, &loop::Element::is_complex)) {
    SmallList<Z> z;
    for (const loop::Element& e : in) z.push_back({e.re, e.im});
    Z made = op.op->rules->complex(op.attr_data(), z.begin());
    return {made.re, made.im};
  }
  SmallList<S> s;
  for (const loop::Element& e : in) s.push_back(e.re);
  return {op.op->rules->scalar(op.attr_data(), s.begin()), {}};
}

loop::Element FusedKernel::fold(const GraphOp& op, const Coords& at) {
  loop::Element x = value(graph_.in(op)[0], folded_at(op, at));
  loop::Element folded{b_.reduce(op.op->monoid, x.re, folded_), {}};
  if (x.is_complex()) folded.im = b_.reduce(op.op->monoid, x.im, folded_);
  return folded;
}

Coords FusedKernel::folded_at(const GraphOp& op, const Coords& at) {
  if (nest_) return {};
  Folding f = folding_of(op);
  const Shape& from = type(graph_.in(op)[0])->shape;
  return reduced_point(b_.polys(), from, f.axes, f.keepdims, at, b_.axis(1));
}

namespace {

/// Copies the values of one kernel into another under construction: `at` for its axes.
class KernelInliner {
 public:
  KernelInliner(const loop::Kernel& from, loop::Builder& to, const Coords& at)
      : from_(from), to_(to), at_(at) {}

  /// `target(buffer)` is the buffer in the target.
  void run(FunctionRef<int(int buffer)> target) {
    for (const loop::Value& old : from_.values) {
      loop::Value v = old;
      int operands = facts(v.op).operands;
      if (operands > 0) v.a = number(v.a);
      if (operands > 1) v.b = number(v.b);
      if (operands > 2) v.c = number(v.c);
      if (v.op == loop::Op::load) {
        int buffer = target(v.buffer);
        PolyId index = moved(v.index);
        numbers_.push_back(to_.load(buffer, index, mask(v.mask)).id);
      } else if (v.op == loop::Op::index) {
        numbers_.push_back(to_.index(moved(v.index)).id);
      } else {
        v.axes = 0;
        for (int k = 0; k < operands; ++k)
          v.axes |= to_.value({&to_, k == 0 ? v.a : k == 1 ? v.b : v.c}).axes;
        to_.kernel().values.push_back(v);
        numbers_.push_back(static_cast<loop::ValueId>(to_.kernel().values.size()) - 1);
      }
    }
  }
  S result(size_t store) { return {&to_, number(from_.stores[store].value)}; }

 private:
  loop::ValueId number(loop::ValueId old) const { return numbers_[static_cast<size_t>(old)]; }

  loop::MaskId mask(loop::MaskId old) {
    if (old == loop::kNone) return old;
    loop::Mask conditions;
    for (PolyId p : from_.masks[static_cast<size_t>(old)]) conditions.push_back(moved(p));
    return to_.mask(conditions);
  }

  PolyId moved(PolyId old) {
    PolyId p = to_.polys().copy_from(from_.polys, old);
    PolyTable::AtomMap map;
    collect(p, map);
    return to_.polys().substitute(p, map);
  }

  void collect(PolyId poly, PolyTable::AtomMap& map) {
    PolyTable& t = to_.polys();
    for (const Term& term : std::vector<Term>(t[poly].terms))
      for (AtomId id : std::vector<AtomId>(t.atoms_of(term.mono))) {
        const Atom atom = t.atom(id);
        if (atom.kind == AtomKind::axis) {
          map[id] = at_[atom.a];
        } else if (atom.kind == AtomKind::value) {
          auto now = static_cast<uint32_t>(number(static_cast<loop::ValueId>(atom.a)));
          map[id] = t.value(now, atom.range.lo, atom.range.hi);
        } else if (atom.kind != AtomKind::symbol) {
          collect(atom.a, map);
          collect(atom.b, map);
        }
      }
  }

  const loop::Kernel& from_;
  loop::Builder& to_;
  const Coords& at_;
  std::vector<loop::ValueId> numbers_;
};

}  // namespace

/// The op's own loops, which make each element by itself, at one point. Its operands lie in memory,
/// row-major.
loop::Element FusedKernel::nest(const GraphOp& op, const Coords& at) {
  loop::Kernel kernel = nest_of(graph_, op);
  KernelInliner inliner(kernel, b_, at);
  inliner.run(
      [&](int buffer) { return parameter(graph_.in(op)[static_cast<size_t>(buffer)], false); });
  DType real = real_of(type(op.out)->dtype);
  loop::Element made{b_.cast(inliner.result(0), info(real).compute), {}};
  if (is_complex(type(op.out)->dtype)) made.im = inliner.result(1);
  return made;
}

/// Every op's result is rounded to its type, so that fusing changes no bits.
loop::Element FusedKernel::rounded(const loop::Element& made, DType dtype) {
  DType real = real_of(dtype), wide = info(real).compute;
  S narrow = b_.rounded(made.re, real);
  const loop::Value& given = b_.value(made.re);
  bool widens = given.op == loop::Op::cast && given.a == narrow.id;  // it was rounded before
  loop::Element kept{widens ? made.re : b_.cast(narrow, wide), {}};
  if (!is_complex(dtype)) return kept;
  kept.im = made.is_complex() ? b_.cast(made.im, real) : b_.constant(Scalar(0.0), real);
  return kept;
}

int FusedKernel::parameter(Val v, bool written) {
  if (cluster_.hero >= 0 && v == graph_.ops[static_cast<size_t>(cluster_.hero)].out)
    v = cluster_.sums == kNoVal ? v : cluster_.sums;
  auto known = std::ranges::find(values, v);
  if (known != values.end()) return static_cast<int>(known - values.begin());
  DType dtype = type(v)->dtype;
  std::string name = (written ? "y" : "x") + std::to_string(values.size());
  values.push_back(v);
  Dim size = elements_of(*type(v));
  return b_.add_buffer(name, real_of(dtype), is_complex(dtype) ? size * Dim(2) : size, written);
}

loop::Element FusedKernel::load(Val v, const Coords& at) {
  int buffer = parameter(nest_ ? home(v).owner : v, false);
  PolyId place = nest_ ? nest_->position(b_, v) : position(b_.polys(), type(v)->shape, at);
  DType dtype = type(v)->dtype;
  if (!is_complex(dtype)) return {b_.cast(b_.load(buffer, place), info(dtype).compute), {}};
  PolyId re = b_.polys().scale(place, 2);
  return {b_.load(buffer, re), b_.load(buffer, b_.polys().add_constant(re, 1))};
}

void FusedKernel::store(Val v, const Coords& at) {
  loop::Element made = value(v, at);
  DType dtype = type(v)->dtype;
  int buffer = parameter(v, true);
  PolyId place = nest_ ? nest_->result(b_) : position(b_.polys(), type(v)->shape, at);
  if (!is_complex(dtype)) return b_.store(buffer, place, b_.rounded(made.re, dtype));
  PolyId re = b_.polys().scale(place, 2);
  b_.store(buffer, re, b_.cast(made.re, real_of(dtype)));
  b_.store(buffer, b_.polys().add_constant(re, 1), b_.cast(made.im, real_of(dtype)));
}

}  // namespace tn
