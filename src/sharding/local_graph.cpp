#include "sharding/local_graph.h"

#include <bit>

#include "base/error.h"
#include "ops/collectives.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/slice_attrs.h"

namespace tn::sharding {

using loop::Monoid;

Val LocalGraph::add(const OpDef& op, const Attrs* attrs, std::span<const Val> in) {
  std::vector<TypeRef> types;
  for (Val v : in) types.push_back(type(v));
  return graph.add(op, attrs, in, infer_types(op, attrs, types), loc);
}

Val LocalGraph::add_all(const Graph& from, std::span<const Val> in) {
  std::vector<Val> now(in.begin(), in.end());
  for (const GraphOp& op : from.ops) {
    if (op.op == &scalar_leaf) {
      now.push_back(graph.add_constant(op.scalar, from.types[static_cast<size_t>(op.out)], loc));
      continue;
    }
    std::vector<Val> operands;
    for (Val v : from.in(op)) operands.push_back(now[static_cast<size_t>(v)]);
    Val first = graph.add(*op.op, op.attrs, operands, from.out_types(op), loc);
    for (int k = 0; k < op.outs; ++k) now.push_back(first + k);
  }
  return now[static_cast<size_t>(from.outputs[0])];
}

Val LocalGraph::reshape(Val x, const Shape& to) {
  return identical(shape(x), to) ? x : add(ops::reshape, ops::ShapeAttrs{to}, {x});
}

Val LocalGraph::take_part(Val x, Digit digit, int64_t count, int64_t index) {
  if (count == 1) return x;
  Shape whole = shape(x), split = whole;
  Dim rest = floor_div(whole[digit.dim], digit.radix * count);
  split[digit.dim] = Dim(digit.radix);
  split.insert(digit.dim + 1, rest * count);
  ops::SliceAttrs slice{{}, {}, Ints{1}, Axes(digit.dim + 1)};
  slice.start.push_back(rest * index), slice.stop.push_back(rest * (index + 1));
  whole[digit.dim] = rest * digit.radix;
  if (digit.radix > 1) return reshape(add(ops::slice, slice, {reshape(x, split)}), whole);
  slice.axis = Axes(digit.dim);
  return add(ops::slice, slice, {x});
}

void LocalGraph::report(const OpDef& op, int axis, Val v) {
  if (!decisions_) return;
  decisions_->push_back({"shard", true,
                         format("{} of {} along '{}'", op.name, *type(v), mesh_[axis].name),
                         format("for {}", reader), loc});
}

Form LocalGraph::each(Form form, const OpDef& op, const Attrs* attrs) {
  for (Val& v : form.parts) v = add(op, attrs, {&v, 1});
  return form;
}

/// With an op that leaves each worker its part.
Form LocalGraph::divided(Form form, const OpDef& op, int axis, Digit digit) {
  ops::DigitAttrs attrs{intern(mesh_[axis].name), mesh_[axis].size, Axis(digit.dim),
                        local_radix(mesh_, form.layout, axis, digit)};
  if (&op != &ops::slice_of_worker) ++transitions, report(op, axis, form.parts[0]);
  if (mesh_[axis].size > 1) form = each(std::move(form), op, intern(*op.attrs, &attrs));
  form.layout[axis] = digit;
  return form;
}

Form LocalGraph::gathered(Form form, int axis) {
  Digit digit = form.layout[axis];
  ops::DigitAttrs attrs{intern(mesh_[axis].name), mesh_[axis].size, Axis(digit.dim),
                        local_radix(mesh_, form.layout, axis, digit), use};
  ++transitions, report(ops::all_gather, axis, form.parts[0]);
  if (mesh_[axis].size > 1)
    form = each(std::move(form), ops::all_gather, intern(*ops::all_gather.attrs, &attrs));
  form.layout[axis] = {};
  return form;
}

Form LocalGraph::exchanged(Form form, int axis, Digit to) {
  Digit from = form.layout[axis];
  ops::ExchangeAttrs attrs{intern(mesh_[axis].name),
                           mesh_[axis].size,
                           Axis(from.dim),
                           local_radix(mesh_, form.layout, axis, from),
                           Axis(to.dim),
                           local_radix(mesh_, form.layout, axis, to)};
  ++transitions, report(ops::all_to_all, axis, form.parts[0]);
  if (mesh_[axis].size > 1)
    form = each(std::move(form), ops::all_to_all, intern(*ops::all_to_all.attrs, &attrs));
  form.layout[axis] = to;
  return form;
}

static const OpDef& fold_op(Monoid monoid) {
  switch (monoid) {
    case Monoid::mul:
      return ops::multiply;
    case Monoid::max:
      return ops::maximum;
    case Monoid::min:
      return ops::minimum;
    case Monoid::and_:
      return ops::logical_and;
    case Monoid::or_:
      return ops::logical_or;
    default:
      invariant(monoid == Monoid::add, "shard: positions of extremes are not folded");
      return ops::add;
  }
}

static ops::AllFold fold_mode(Monoid monoid) {
  switch (monoid) {
    case Monoid::mul:
      return ops::AllFold::prod;
    case Monoid::max:
      return ops::AllFold::max;
    case Monoid::min:
      return ops::AllFold::min;
    case Monoid::and_:
      return ops::AllFold::all;
    default:
      return ops::AllFold::any;
  }
}

/// A binary tree over aligned ranges, whatever the number of terms: pairs of neighbours, then pairs
/// of pairs; one that is left over joins the last pair.
Val LocalGraph::folded(std::vector<Val> terms, Monoid monoid) {
  while (terms.size() > 1) {
    std::vector<Val> pairs;
    for (size_t i = 0; i + 1 < terms.size(); i += 2)
      pairs.push_back(add(fold_op(monoid), nullptr, std::array{terms[i], terms[i + 1]}));
    if (terms.size() % 2) pairs.push_back(terms.back());
    terms = std::move(pairs);
  }
  return terms[0];
}

Form LocalGraph::resolved(const Form& form, int axis, const Shape& shape, Digit to) {
  Form made{form.layout, form.monoid, {}};
  made.layout.partial &= ~(1u << axis);
  size_t own = static_cast<size_t>(mesh_[axis].parts_per_worker()), inner = 1;
  for (int u = axis + 1; u < mesh_.count(); ++u)
    if (form.layout.is_partial(u)) inner *= static_cast<size_t>(mesh_[u].parts_per_worker());
  // Ranges of a power of two of parts begin at a multiple of it, so they are subtrees.
  size_t range = mesh_[axis].size == 1 ? own : size_t{1} << std::countr_zero(own);
  for (size_t outer = 0; outer < form.parts.size() / (own * inner); ++outer)
    for (size_t i = 0; i < inner; ++i) {
      std::vector<Val> roots;
      for (size_t first = 0; first < own; first += range) {
        std::vector<Val> terms;
        for (size_t k = first; k < first + range; ++k)
          terms.push_back(form.parts[(outer * own + k) * inner + i]);
        roots.push_back(folded(std::move(terms), form.monoid));
      }
      if (range < own) roots = roots_of_all(roots, axis);
      made.parts.push_back(folded(std::move(roots), form.monoid));
    }
  if (range == own) return folded_by_all(std::move(made), axis, shape, to);
  ++transitions;
  return made;
}

std::vector<Val> LocalGraph::roots_of_all(std::span<const Val> roots, int axis) {
  Shape row = shape(roots[0]);
  row.insert(0, Dim(1));
  std::vector<Val> rows, all;
  for (Val root : roots) rows.push_back(reshape(root, row));
  ops::ConcatAttrs joined{.axis = Axis(0)};
  Val own = add(ops::concat, intern(*ops::concat.attrs, &joined), rows);
  report(ops::all_gather, axis, own);
  ops::DigitAttrs attrs{intern(mesh_[axis].name), mesh_[axis].size, Axis(0), 1};
  Val gathered = add(ops::all_gather, attrs, {own});
  auto count = static_cast<int64_t>(roots.size()) * mesh_[axis].size;
  for (int64_t k = 0; k < count; ++k)
    all.push_back(reshape(take_part(gathered, {0, 1}, count, k), shape(roots[0])));
  return all;
}

Val LocalGraph::as_type(Val v, DType dtype) {
  return add(ops::astype, intern(*ops::astype.attrs, &dtype), std::array{v});
}

Form LocalGraph::folded_by_all(Form made, int axis, const Shape& shape, Digit to) {
  bool scatters = to && has_room(mesh_, made.layout, shape, axis, to);
  if (made.monoid == Monoid::add) {
    if (scatters) return divided(std::move(made), ops::reduce_scatter, axis, to);
    ops::GroupAttrs attrs{intern(mesh_[axis].name), mesh_[axis].size};
    ++transitions, report(ops::all_sum, axis, made.parts[0]);
    if (mesh_[axis].size == 1) return made;
    return each(std::move(made), ops::all_sum, intern(*ops::all_sum.attrs, &attrs));
  }
  ops::AllFoldAttrs attrs{intern(mesh_[axis].name), mesh_[axis].size, fold_mode(made.monoid)};
  ++transitions, report(ops::all_fold, axis, made.parts[0]);
  if (mesh_[axis].size == 1) return made;
  return each(std::move(made), ops::all_fold, intern(*ops::all_fold.attrs, &attrs));
}

int LocalGraph::distance(const Form& form, const Layout& target) const {
  int count = 0;
  for (int t = 0; t < mesh_.count(); ++t) {
    bool resolves = form.layout.is_partial(t) && !target.is_partial(t);
    count += resolves || (form.layout[t] && form.layout[t] != target[t]);
  }
  return count;
}

Form LocalGraph::moved(const Form& form, TypeRef whole, const Layout& target) {
  Form now = form;
  const Shape& shape = whole->shape;
  auto fits = [&](int t) {
    Layout others = now.layout;
    others[t] = {};
    return has_room(mesh_, others, shape, t, target[t]);
  };
  for (bool done = false; !done;) {
    done = true;
    for (int t = 0; t < mesh_.count(); ++t)  // cutting is free, and makes the rest smaller
      if (target[t] && !now.layout[t] && !now.layout.is_partial(t) && fits(t))
        now = divided(std::move(now), ops::slice_of_worker, t, target[t]), done = false;
    for (int t = 0; t < mesh_.count(); ++t) {
      if (now.layout.is_partial(t) && !target.is_partial(t))
        now = resolved(now, t, shape, target[t]), done = false;
      if (!now.layout[t] || now.layout[t] == target[t]) continue;
      // Between two places of one dimension it is gathered: an exchange there would have to leave
      // room for the digits of other axes in between.
      bool moves = target[t] && fits(t) && now.layout[t].dim != target[t].dim;
      now = moves ? exchanged(std::move(now), t, target[t]) : gathered(std::move(now), t);
      done = false;
    }
  }
  for (Val& v : now.parts)
    if (!now.layout.partial && type(v)->dtype != whole->dtype) v = as_type(v, whole->dtype);
  return now;
}

}  // namespace tn::sharding
