// The graphs that follow from a body: its derivatives, and its run on a batch. Each is made by
// running the body on parameters, transforming that, and capturing what comes of it.
#include <numeric>

#include "ir/body.h"
#include "ir/interned.h"
#include "ir/trace.h"
#include "ops/op_decls.h"
#include "transforms/sweep.h"

namespace tn {

namespace {

enum class What : uint64_t { jvp, vjp, batch, without_effects };

std::vector<uint64_t> key_of(What what, const Mask& a) {
  std::vector<uint64_t> key = {static_cast<uint64_t>(what)};
  add_mask(key, a);
  return key;
}

/// Parameters for `like` where `mask` holds, added to `params`.
Tensors params_like(const Tensors& like, const Mask& mask, Tensors& params) {
  Tensors made;
  for (const Tensor& t : chosen(like, mask)) made.push_back(make_param(type_of(t)));
  params.insert(params.end(), made.begin(), made.end());
  return made;
}

Derived follows(const Tensors& params, const Tensors& out, const Mask& outputs,
                uint64_t start = UINT64_MAX) {
  Closed closed = graphs_between(params, {out}, start);
  return {closed.graphs[0], outputs, closed.leaves};
}

/// The body on parameters.
struct Run {
  Tensors params, out;
  explicit Run(GraphRef graph) : params(params_for(*graph)), out(replay(*graph, params)) {}
  Tape tape(const Mask& inputs) const { return tape_of(chosen(params, inputs), out); }
};

/// Rules of custom functions may print: that is done by the graph made of them, whenever it runs.
struct RuleTrace : Trace {
  RuleTrace(std::string_view by, const Tensors& params) : Trace(by, Values::unknown) {
    if (!params.empty()) hold_by(params[0]);
  }
};

}  // namespace

GraphRef without_effects(GraphRef from) {
  return derived(from, {static_cast<uint64_t>(What::without_effects)},
                 [&]() -> Derived {
                   Graph graph = *from;
                   std::vector<Val> stands_for(graph.types.size());
                   std::iota(stands_for.begin(), stands_for.end(), 0);
                   for (GraphOp& op : graph.ops) {
                     op.attrs =
                         with_bodies(op.attrs, [](GraphRef body) { return without_effects(body); });
                     if (op.op == &ops::after)
                       stands_for[static_cast<size_t>(op.out)] =
                           stands_for[static_cast<size_t>(graph.in(op)[0])];
                   }
                   for (Val& v : graph.operands) v = stands_for[static_cast<size_t>(v)];
                   for (Val& v : graph.outputs) v = stands_for[static_cast<size_t>(v)];
                   return {intern(prune(graph)), {}, {}};
                 })
      .graph;
}

Closed graphs_between(const Tensors& params, std::initializer_list<Tensors> outputs,
                      uint64_t start) {
  Tensors all;
  for (const Tensors& list : outputs) all.insert(all.end(), list.begin(), list.end());
  for (const Tensor& p : params) start = std::min(start, p.node()->sequence);
  Captured joint = capture(tape_since(start, params, all), params, all, Numbers::are_constants);
  Closed closed{{}, std::move(joint.leaves)};
  auto first = joint.graph.outputs.begin();
  for (const Tensors& list : outputs) {
    Graph one = joint.graph;
    one.outputs.assign(first, first + static_cast<ptrdiff_t>(list.size()));
    first += static_cast<ptrdiff_t>(list.size());
    closed.graphs.push_back(intern(outputs.size() == 1 ? std::move(one) : prune(one)));
  }
  return closed;
}

Derived jvp_graph(GraphRef graph, const Mask& given) {
  return derived(graph, key_of(What::jvp, given), [&]() -> Derived {
    Run run(without_effects(graph));
    Tensors params = run.params;
    RuleTrace trace("jvp", params);
    Tensors tangents = sweep_forward(run.tape(given), params_like(run.params, given, params));
    Mask has = mask_of(tangents);
    Tensors out = run.out, dense = tied(chosen(tangents, has), trace.effects);
    out.insert(out.end(), dense.begin(), dense.end());
    return follows(params, out, has);
  });
}

Derived vjp_graph(GraphRef graph, const Mask& wanted, const Mask& given) {
  std::vector<uint64_t> key = key_of(What::vjp, wanted);
  add_mask(key, given);
  return derived(graph, key, [&]() -> Derived {
    Run run(without_effects(graph));
    Tensors params = run.params;
    Tensors cts = spread(params_like(run.out, given, params), given);
    Tensors inputs = chosen(run.params, wanted);
    RuleTrace trace("vjp", params);
    Tensors back = spread(sweep_back(run.tape(wanted), inputs, cts), wanted);
    Mask has = mask_of(back);
    return follows(params, tied(chosen(back, has), trace.effects), has);
  });
}

Derived batch_graph(GraphRef graph, const Mask& batched, Dim size) {
  std::vector<uint64_t> key = key_of(What::batch, batched);
  key.push_back(static_cast<uint64_t>(size.raw));
  return derived(graph, key, [&]() -> Derived {
    uint64_t start = next_sequence();
    Run run(graph);
    Tensors params;
    std::vector<Batched> given;
    for (size_t i = 0; i < run.params.size(); ++i) {
      RecordScope scope;
      Type type = *type_of(run.params[i]);
      if (batched[i]) type.shape.insert(0, size);
      params.push_back(make_param(intern(type)));
      given.push_back({params.back(), batched[i]});
    }
    Mask outputs;
    Tensors out;
    RuleTrace trace("vmap", params);
    // All parameters stand for themselves or their batch, so none of the run's own is left.
    for (Batched& b : sweep_batch(tape_of(run.params, run.out), std::move(given), run.out, size)) {
      out.push_back(std::move(b.value));
      outputs.push_back(b.batched);
    }
    return follows(params, tied(std::move(out), trace.effects), outputs, start);
  });
}

}  // namespace tn
