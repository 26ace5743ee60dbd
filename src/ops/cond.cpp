// cond: one of two graphs runs.
#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "ops/call.h"
#include "ops/control_flow.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

TypeList infer_cond(const CondAttrs& a, Types in) {
  if (in[0]->dtype != DType::b1 || in[0]->rank() != 0)
    fail(Fault::type, "cond: the predicate must be one bool, not {}", *in[0]);
  for (GraphRef graph : {a.then, a.otherwise}) check_inputs("cond", *graph, in.subspan(1));
  std::vector<Type> out = output_types(*a.then);
  if (!std::ranges::equal(out, output_types(*a.otherwise), same_type))
    fail(Fault::type, "cond: the graphs give different types");
  return out;
}

/// The predicate and what follows it, with the masks of what follows.
struct Branches {
  const CondAttrs& attrs;
  Tensor pred;
  Tensors in;
  Branches(const CondAttrs& a, const Tensors& operands)
      : attrs(a), pred(operands[0]), in(part(operands, 1, operands.size() - 1)) {}

  /// cond of two graphs made of the derived ones, whose results must agree: those which only one
  /// has are zeros in the other. `like` are the values that derivatives belong to.
  Tensors of_derived(const Derived& then, const Derived& otherwise, const Tensors& further,
                     const Tensors& like) const {
    Mask has = then.outputs;
    for (size_t i = 0; i < has.size(); ++i) has[i] = has[i] || otherwise.outputs[i];
    Tensors all = in + further, results = chosen(like, has);
    if (results.empty()) return Tensors(has.size());
    Tensors params = params_like(all);
    auto padded = [&](const Derived& d) {
      Tensors out = d.on(params);
      size_t primal = out.size() - chosen(like, d.outputs).size();
      Tensors dense = spread(part(out, primal, out.size() - primal), d.outputs);
      return chosen(filled_like(dense, like, has), has);
    };
    Closed closed = graphs_between(params, {padded(then), padded(otherwise)});
    CondAttrs made{closed.graphs[0], closed.graphs[1]};
    return spread(emit_all(cond, Tensors{pred} + all + closed.leaves, &made), has);
  }
};

Tensors jvp_cond(const CondAttrs& a, const Primal& p, const Tensors& t) {
  Branches b(a, p.in);
  Mask given = part(p.wanted, 1, b.in.size());
  return b.of_derived(jvp_graph(a.then, given), jvp_graph(a.otherwise, given),
                      chosen(part(t, 1, b.in.size()), given), p.out);
}

Tensors vjp_cond(const CondAttrs& a, const Primal& p, const Tensors& ct) {
  Branches b(a, p.in);
  Mask wanted = part(p.wanted, 1, b.in.size()), given = mask_of(ct);
  return Tensors{Tensor()} + b.of_derived(vjp_graph(a.then, wanted, given),
                                          vjp_graph(a.otherwise, wanted, given), chosen(ct, given),
                                          b.in);
}

/// The graph's results on a batch, all of them with the batch as axis 0.
Tensors run_batched(const Derived& d, const Tensors& in, Dim size) {
  Tensors out = d.on(in);
  for (size_t i = 0; i < out.size(); ++i)
    if (!d.outputs[i]) out[i] = with_batch(out[i], size);
  return out;
}

Tensors batch_cond(const CondAttrs& a, const BatchCall& call) {
  Branches b(a, call.in);
  Mask batched = part(call.batched, 1, b.in.size());
  Derived then = batch_graph(a.then, batched, call.size);
  Derived otherwise = batch_graph(a.otherwise, batched, call.size);
  if (!call.batched[0]) {
    Tensors params = params_like(b.in);
    Closed closed = graphs_between(
        params, {run_batched(then, params, call.size), run_batched(otherwise, params, call.size)});
    CondAttrs made{closed.graphs[0], closed.graphs[1]};
    return emit_all(cond, call.in + closed.leaves, &made);
  }
  Tensors yes = run_batched(then, b.in, call.size), no = run_batched(otherwise, b.in, call.size);
  for (size_t i = 0; i < yes.size(); ++i)
    yes[i] = tn::where(along_batch(b.pred, yes[i].rank()), yes[i], no[i]);
  return yes;
}

}  // namespace

constexpr auto cond_def = Op<CondAttrs>{
    .doc = "The results of one of two graphs.",
    .args = {"pred", "*operands"},
    .results = {"*"},
    .surface = false,
    .moves = true,
    .infer = rule<infer_cond>,
    .jvp = rule<jvp_cond>,
    .vjp = rule<vjp_cond>,
    .batch_rule = rule<batch_cond>,
};
TN_OP(cond);

}  // namespace tn::ops
