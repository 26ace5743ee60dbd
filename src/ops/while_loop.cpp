// while_loop: a graph runs until another says that it is enough.
#include "base/error.h"
#include "ops/control_flow.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

TypeList infer_while(const WhileAttrs& a, Types in) {
  for (GraphRef graph : {a.go_on, a.body}) check_inputs("while_loop", *graph, in);
  std::vector<Type> carry = output_types(*a.body), pred = output_types(*a.go_on);
  if (pred.size() != 1 || pred[0].dtype != DType::b1 || pred[0].rank() != 0)
    fail(Fault::type, "while_loop: the condition must return one bool");
  for (size_t i = 0; i < carry.size(); ++i)
    if (i >= in.size() || !same_type(carry[i], *a.body->types[i]))
      fail(Fault::type, "while_loop: the body returns {} as carry {}, and takes another type",
           carry[i], i);
  return carry;
}

/// The carry and the constants of operands, or of what belongs to them.
template <class List>
struct Split {
  List carry, consts;
  Split(const List& all, const WhileAttrs& a)
      : carry(part(all, 0, a.body->outputs.size())),
        consts(part(all, carry.size(), all.size() - carry.size())) {}
};

// The carry is joined by the tangents of its floating parts, the constants by theirs.
Tensors jvp_while(const WhileAttrs& a, const Primal& p, const Tensors& t) {
  Split<Tensors> in(p.in, a), tangents(t, a);
  Split<Mask> wanted(p.wanted, a);
  Mask varying = inexact_mask(in.carry);
  Derived d = jvp_graph(a.body, varying + wanted.consts);
  Tensors carry_t = chosen(filled_like(tangents.carry, in.carry, varying), varying);
  Tensors consts_t = chosen(tangents.consts, wanted.consts);
  Tensors c = params_like(in.carry), k = params_like(in.consts);
  Tensors ct = params_like(carry_t), kt = params_like(consts_t), params = c + ct + k + kt;
  Tensors out = d.on(c + k + ct + kt);
  Tensors made = spread(part(out, c.size(), out.size() - c.size()), d.outputs);
  Tensors next = part(out, 0, c.size()) + chosen(filled_like(made, in.carry, varying), varying);
  Closed closed = graphs_between(params, {replay(*without_effects(a.go_on), c + k), next});
  WhileAttrs joint{closed.graphs[0], closed.graphs[1]};
  out = emit_all(while_loop, in.carry + carry_t + in.consts + consts_t + closed.leaves, &joint);
  return spread(part(out, c.size(), ct.size()), varying);
}

Tensors vjp_while(const WhileAttrs&, const Primal&, const Tensors&) {
  unsupported({"scan, over the largest number of steps, has derivatives in both directions"},
              "while_loop: no reverse-mode derivative: the number of iterations is not known in "
              "advance");
}

/// Which parts of the carry differ between examples, given that those in `carry` do.
struct Spreading {
  Mask carry;
  bool pred = false;
  Spreading(const WhileAttrs& a, const Mask& given, const Mask& consts, Dim size) : carry(given) {
    for (Mask before; before != carry;) {
      before = carry;
      pred = batch_graph(a.go_on, carry + consts, size).outputs[0];
      Mask out = batch_graph(a.body, carry + consts, size).outputs;
      for (size_t i = 0; i < carry.size(); ++i) carry[i] = carry[i] || out[i] || pred;
    }
  }
};

// Examples that are done keep their carry; the loop ends with the last.
Tensors batch_while(const WhileAttrs& a, const BatchCall& call) {
  Split<Tensors> in(call.in, a);
  Split<Mask> batched(call.batched, a);
  Spreading spreads(a, batched.carry, batched.consts, call.size);
  Mask mask = spreads.carry + batched.consts;
  for (size_t i = 0; i < in.carry.size(); ++i)
    if (spreads.carry[i] && !batched.carry[i]) in.carry[i] = with_batch(in.carry[i], call.size);
  Tensors all = in.carry + in.consts, params = params_like(all);
  Tensor pred = batch_graph(a.go_on, mask, call.size).on(params)[0];
  Derived d = batch_graph(a.body, mask, call.size);
  Tensors next = d.on(params);
  Tensor running = batch_graph(without_effects(a.go_on), mask, call.size).on(params)[0];
  for (size_t i = 0; i < next.size(); ++i) {
    if (spreads.carry[i] && !d.outputs[i]) next[i] = with_batch(next[i], call.size);
    if (spreads.pred) next[i] = tn::where(along_batch(running, next[i].rank()), next[i], params[i]);
  }
  Closed closed = graphs_between(params, {{spreads.pred ? tn::any(pred) : pred}, next});
  WhileAttrs made{closed.graphs[0], closed.graphs[1]};
  Tensors out = emit_all(while_loop, all + closed.leaves, &made);
  for (size_t i = 0; i < out.size(); ++i)
    if (!spreads.carry[i]) out[i] = with_batch(out[i], call.size);
  return out;
}

}  // namespace

constexpr auto while_loop_def = Op<WhileAttrs>{
    .doc = "What a graph makes of the carry, again and again, while another says to go on.",
    .args = {"*carry"},
    .results = {"*"},
    .surface = false,
    .moves = true,
    .infer = rule<infer_while>,
    .jvp = rule<jvp_while>,
    .vjp = rule<vjp_while>,
    .batch_rule = rule<batch_while>,
};
TN_OP(while_loop);

}  // namespace tn::ops
