// The call of a graph. It is one op to transforms, and replaced by the graph when compiled.
#include "ops/call.h"

#include "base/error.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn::ops {

static ChoiceNames choice_names(CallKind) {
  static constexpr std::string_view kNames[] = {"plain", "remat", "custom"};
  return kNames;
}

namespace {

struct CallAttrs {
  CallKind kind = CallKind::plain;
  GraphRef graph;
  static constexpr void fields(auto& a, auto&& f) {
    f("kind", a.kind), f("graph", a.graph, required);
  }
};

TypeList infer_call(const CallAttrs& a, Types in) {
  const Graph& graph = *a.graph;
  if (static_cast<int>(in.size()) != graph.inputs())
    fail("call: {} operands for a graph of {} inputs", in.size(), graph.inputs());
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] != graph.types[i])
      fail(Fault::type, "call: operand {} is {} but the graph takes {}", i, *in[i],
           *graph.types[i]);
  std::vector<Type> out;
  for (Val v : graph.outputs) out.push_back(*graph.types[static_cast<size_t>(v)]);
  return out;
}

Tensors joined(const Tensors& a, const Tensors& b) {
  Tensors all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Tensors jvp_call(const CallAttrs& a, const Primal& p, const Tensors& t) {
  const Derived& d = jvp_graph(a.graph, p.wanted);
  Tensors out = emit_call(a.kind, d.graph, joined(p.in, chosen(t, p.wanted)));
  out.erase(out.begin(), out.begin() + static_cast<ptrdiff_t>(p.out.size()));
  return spread(out, d.outputs);
}

Tensors vjp_call(const CallAttrs& a, const Primal& p, const Tensors& ct) {
  Mask given = mask_of(ct);
  const Derived& d = vjp_graph(a.graph, p.wanted, given);
  if (d.graph->outputs.empty()) return Tensors(p.in.size());
  return spread(emit_call(a.kind, d.graph, joined(p.in, chosen(ct, given))), d.outputs);
}

Tensors batch_call(const CallAttrs& a, const BatchCall& call) {
  const Derived& d = batch_graph(a.graph, call.batched, call.size);
  Tensors out = emit_call(a.kind, d.graph, call.in);
  for (size_t i = 0; i < out.size(); ++i)
    if (!d.outputs[i]) out[i] = with_batch(out[i], call.size);
  return out;
}

}  // namespace

Tensors emit_call(CallKind kind, GraphRef graph, const Tensors& in) {
  CallAttrs attrs{kind, graph};
  return emit_all(call, in, &attrs);
}

constinit const OpDef call = Composite<CallAttrs>{
    .name = "call",
    .doc = "The outputs of a graph.",
    .args = {"*inputs"},
    .results = {"*"},
    .recorded = true,
    .surface = false,
    .infer = rule<infer_call>,
    .body = [](const CallAttrs& a, const Tensors& in) { return replay(*a.graph, in); },
    .jvp = rule<jvp_call>,
    .vjp = rule<vjp_call>,
    .batch_rule = rule<batch_call>,
};

}  // namespace tn::ops
