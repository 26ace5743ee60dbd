// The call of a graph. It is one op to transforms, and replaced by the graph when compiled.
#include "ops/call.h"

#include "ops/control_flow.h"
#include "ops/custom_call.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn::ops {

ChoiceNames choice_names(CallKind) {
  static constexpr std::string_view kNames[] = {"plain", "remat", "custom"};
  return kNames;
}

namespace {

/// What the graph takes: all operands, but for the number of the rules.
template <class List>
List inputs_of(const CallAttrs& a, const List& in) {
  return {in.begin(), in.end() - (a.kind == CallKind::custom)};
}

TypeList infer_call(const CallAttrs& a, Types in) {
  check_inputs("call", *a.graph, inputs_of(a, in));
  return output_types(*a.graph);
}

Tensors jvp_call(const CallAttrs& a, const Primal& p, const Tensors& t) {
  if (a.kind == CallKind::custom) return jvp_custom(a.graph, p, t);
  Derived d = jvp_graph(a.graph, p.wanted);
  Tensors out = emit_call(a.kind, d.graph, p.in + chosen(t, p.wanted) + d.leaves);
  size_t primal = p.out.size();
  return spread(part(out, primal, out.size() - primal), d.outputs);
}

Tensors vjp_call(const CallAttrs& a, const Primal& p, const Tensors& ct) {
  if (a.kind == CallKind::custom) return vjp_custom(a.graph, p, ct);
  Mask given = mask_of(ct);
  Derived d = vjp_graph(a.graph, p.wanted, given);
  if (d.graph->outputs.empty()) return Tensors(p.in.size());
  return spread(emit_call(a.kind, d.graph, p.in + chosen(ct, given) + d.leaves), d.outputs);
}

Tensors batch_call(const CallAttrs& a, const BatchCall& call) {
  if (a.kind == CallKind::custom) return batch_custom(a.graph, call);
  Derived d = batch_graph(a.graph, call.batched, call.size);
  Tensors out = emit_call(a.kind, d.graph, call.in + d.leaves);
  for (size_t i = 0; i < out.size(); ++i)
    if (!d.outputs[i]) out[i] = with_batch(out[i], call.size);
  return out;
}

}  // namespace

bool leads_to_rules(const Node& node, int k) {
  if (node.op != &call || k + 1 != node.ins) return false;
  const void* attrs = node.attrs->data;
  return static_cast<const CallAttrs*>(attrs)->kind == CallKind::custom;
}

Tensors emit_call(CallKind kind, GraphRef graph, const Tensors& in) {
  CallAttrs attrs{kind, graph};
  Tensors given = in;  // a number of a derived graph may be on the host, and its cotangent is not
  for (size_t i = 0; i < static_cast<size_t>(graph->inputs()); ++i)
    if (in[i].rank() == 0) given[i] = in[i].to(graph->types[i]->device);
  return emit_all(call, given, &attrs);
}

constexpr auto call_def = Composite<CallAttrs>{
    .doc = "The outputs of a graph.",
    .args = {"*inputs"},
    .results = {"*"},
    .recorded = true,
    .surface = false,
    .moves = true,
    .infer = rule<infer_call>,
    .body = [](const CallAttrs& a,
               const Tensors& in) { return replay(*a.graph, inputs_of(a, in)); },
    .jvp = rule<jvp_call>,
    .vjp = rule<vjp_call>,
    .batch_rule = rule<batch_call>,
};
TN_OP(call);

}  // namespace tn::ops
