// scan: a graph runs for every slice along the first axis of its operands.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/control_flow.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

TypeList infer_scan(const ScanAttrs& a, Types in) {
  std::vector<TypeRef> inner(in.begin(), in.end());
  size_t first = static_cast<size_t>(a.carries), end = first + static_cast<size_t>(a.xs);
  if (end > in.size())
    fail("scan: {} operands for a carry of {} and {} xs", in.size(), first, a.xs);
  for (size_t i = first; i < end; ++i) {
    if (in[i]->rank() == 0 || !decide_equal(in[i]->shape[0], a.length))
      fail("scan: {} has no first axis of {} slices", *in[i], a.length);
    inner[i] = intern(slice_type(*in[i]));
  }
  check_inputs("scan", *a.body, inner);
  std::vector<Type> out = output_types(*a.body);
  for (size_t i = 0; i < out.size(); ++i) {
    if (i >= first)
      out[i].shape.insert(0, a.length);
    else if (!same_type(out[i], *a.body->types[i]))
      fail(Fault::type, "scan: carry {} is {} but the body returns {}", i, *in[i], out[i]);
  }
  return out;
}

/// The operands of a scan, or what belongs to them.
template <class List>
struct Parts {
  List carry, xs, consts;
  Parts(const List& all, const ScanAttrs& a)
      : carry(part(all, 0, static_cast<size_t>(a.carries))),
        xs(part(all, carry.size(), static_cast<size_t>(a.xs))),
        consts(part(all, carry.size() + xs.size(), all.size() - carry.size() - xs.size())) {}
};

/// A scan under construction: parameters of one step, and what is given for them.
struct Made {
  Tensors carry, xs, consts;       // given
  Tensors carry_p, xs_p, const_p;  // parameters

  Made(Tensors c, Tensors x, Tensors k)
      : carry(std::move(c)),
        xs(std::move(x)),
        consts(std::move(k)),
        carry_p(params_like(carry)),
        xs_p(slice_params(xs)),
        const_p(params_like(consts)) {}
  Tensors emit(const ScanAttrs& like, const Tensors& next, const Tensors& ys) const {
    ScanAttrs a = like;
    Closed closed = graphs_between(carry_p + xs_p + const_p, {next + ys});
    a.body = closed.graphs[0];
    a.carries = static_cast<int64_t>(carry.size()), a.xs = static_cast<int64_t>(xs.size());
    return emit_all(scan, carry + xs + consts + closed.leaves, &a);
  }
};

// The body's jvp, with tangents joined to the carry, to xs and to the constants.
Tensors jvp_scan(const ScanAttrs& a, const Primal& p, const Tensors& t) {
  Parts<Tensors> in(p.in, a), tangents(t, a);
  Parts<Mask> wanted(p.wanted, a);
  Mask varying = inexact_mask(in.carry), has = inexact_mask(p.out);
  Derived d = jvp_graph(a.body, varying + wanted.xs + wanted.consts);
  Made made(in.carry + chosen(filled_like(tangents.carry, in.carry, varying), varying),
            in.xs + chosen(tangents.xs, wanted.xs),
            in.consts + chosen(tangents.consts, wanted.consts));
  auto halves = [](const Tensors& list, size_t n) {
    return std::pair(part(list, 0, n), part(list, n, list.size() - n));
  };
  auto [c, ct] = halves(made.carry_p, in.carry.size());
  auto [x, xt] = halves(made.xs_p, in.xs.size());
  auto [k, kt] = halves(made.const_p, in.consts.size());
  auto [out, out_t] = halves(d.on(c + x + k + ct + xt + kt), p.out.size());
  out_t = filled_like(spread(out_t, d.outputs), out, has);
  auto [next, ys] = halves(out, c.size());
  auto [next_t, ys_t] = halves(out_t, c.size());
  auto [next_has, ys_has] = std::pair(part(has, 0, c.size()), part(has, c.size(), ys.size()));
  ScanAttrs plain = a;
  plain.saved = 0;
  Tensors all = made.emit(plain, next + chosen(next_t, varying), ys + chosen(ys_t, ys_has));
  size_t after = made.carry.size() + ys.size();
  return spread(part(all, c.size(), ct.size()), next_has) +
         spread(part(all, after, all.size() - after), ys_has);
}

/// The carry as every step was given it.
Tensors saved_carry(const ScanAttrs& a, const Primal& p) {
  size_t carries = static_cast<size_t>(a.carries);
  if (a.saved) return part(p.out, p.out.size() - carries, carries);
  ScanAttrs saving = a;
  saving.body = saving_carry(without_effects(a.body), a.carries), saving.saved = a.carries;
  Tensors out = emit_all(scan, p.in, &saving);
  return part(out, out.size() - carries, carries);
}

Tensor zeros_in(const Tensor& like, DType type) { return filled(Scalar(0), type, like.shape()); }

// A scan the other way. One step: the body's vjp, at the carry and x it was given then. Cotangents
// of the carry are the new carry, those of constants are summed up beside it.
Tensors vjp_scan(const ScanAttrs& a, const Primal& p, const Tensors& ct) {
  Parts<Tensors> in(p.in, a);
  Parts<Mask> wanted(p.wanted, a);
  size_t carries = in.carry.size();
  Mask varying = inexact_mask(in.carry);
  Tensors ys_ct = part(ct, carries, ct.size() - carries);
  Derived d = vjp_graph(a.body, varying + wanted.xs + wanted.consts, varying + mask_of(ys_ct));
  Tensors last = chosen(filled_like(part(ct, 0, carries), in.carry, varying), varying), sums;
  for (const Tensor& k : chosen(in.consts, wanted.consts))
    sums.push_back(zeros_in(k, info(k.dtype()).compute));
  Made made(last + sums, saved_carry(a, p) + in.xs + chosen(ys_ct, mask_of(ys_ct)), in.consts);
  Tensors steps = part(made.xs_p, 0, carries + in.xs.size());
  Tensors cts = part(made.carry_p, 0, last.size()) +
                part(made.xs_p, steps.size(), made.xs_p.size() - steps.size());
  Tensors args = steps + made.const_p;
  Parts<Tensors> back(filled_like(spread(d.on(args + cts), d.outputs), args,
                                  varying + wanted.xs + Mask(in.consts.size())),
                      a);
  Tensors totals, terms = chosen(back.consts, wanted.consts);
  for (size_t i = 0; i < sums.size(); ++i) {
    const Tensor& sum = made.carry_p[last.size() + i];
    totals.push_back(terms[i].defined() ? sum + cast_to(terms[i], sum.dtype()) : sum);
  }
  ScanAttrs other = a;
  other.reverse = !a.reverse, other.saved = 0;
  Tensors out = made.emit(other, chosen(back.carry, varying) + totals, chosen(back.xs, wanted.xs));
  totals = part(out, last.size(), sums.size());
  Tensors for_consts = spread(totals, wanted.consts);
  for (size_t i = 0; i < for_consts.size(); ++i)
    if (for_consts[i].defined()) for_consts[i] = cast_to(for_consts[i], in.consts[i].dtype());
  size_t after = made.carry.size();
  return spread(part(out, 0, last.size()), varying) +
         spread(part(out, after, out.size() - after), wanted.xs) + for_consts;
}

/// Which parts of the carry differ between examples, given that those in `carry` do.
Mask spread_over_carry(const ScanAttrs& a, Mask carry, const Mask& rest, Dim size) {
  for (Mask before; before != carry;) {
    before = carry;
    Mask out = batch_graph(a.body, carry + rest, size).outputs;
    for (size_t i = 0; i < carry.size(); ++i) carry[i] = carry[i] || out[i];
  }
  return carry;
}

Tensors batch_scan(const ScanAttrs& a, const BatchCall& call) {
  Parts<Tensors> in(call.in, a);
  Parts<Mask> batched(call.batched, a);
  Mask carry = spread_over_carry(a, batched.carry, batched.xs + batched.consts, call.size);
  Derived d = batch_graph(a.body, carry + batched.xs + batched.consts, call.size);
  auto widen = [&](Tensors list, const Mask& wide, const Mask& have) {
    for (size_t i = 0; i < list.size(); ++i)
      if (wide[i] && !have[i]) list[i] = with_batch(list[i], call.size);
    return list;
  };
  for (size_t i = 0; i < in.xs.size(); ++i)  // steps go first, examples second
    if (batched.xs[i]) in.xs[i] = tn::moveaxis(in.xs[i], Axes(0), Axes(1));
  Made made(widen(in.carry, carry, batched.carry), in.xs, in.consts);
  Tensors out = d.on(made.carry_p + made.xs_p + made.const_p);
  size_t carries = carry.size();
  out = made.emit(a, widen(part(out, 0, carries), carry, d.outputs),
                  part(out, carries, out.size() - carries));
  for (size_t i = 0; i < out.size(); ++i) {
    bool wide = i < carries ? carry[i] : d.outputs[i];
    if (!wide)
      out[i] = with_batch(out[i], call.size);
    else if (i >= carries)
      out[i] = tn::moveaxis(out[i], Axes(1), Axes(0));
  }
  return out;
}

}  // namespace

constexpr auto scan_def = Op<ScanAttrs>{
    .doc = "What a graph makes of a carry and of slices, one after the other.",
    .args = {"*operands"},
    .results = {"*"},
    .surface = false,
    .moves = true,
    .infer = rule<infer_scan>,
    .jvp = rule<jvp_scan>,
    .vjp = rule<vjp_scan>,
    .batch_rule = rule<batch_scan>,
};
TN_OP(scan);

}  // namespace tn::ops
