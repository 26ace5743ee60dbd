#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "ir/trace.h"
#include "ops/call.h"
#include "ops/custom.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/ops.h"
#include "transforms/derivative.h"
#include "transforms/sweep.h"

namespace tn {

namespace {

constexpr std::string_view kName = "custom_function";

struct Registry {
  std::mutex mutex;
  std::map<int64_t, std::weak_ptr<const CustomCall>> calls;
  int64_t next = 1000;
};
Registry& registry() {
  static auto& only = *new Registry;
  return only;
}

int64_t next_number() {
  std::lock_guard lock(registry().mutex);
  return registry().next++;
}

/// Derivatives as the rules see them: all there, except those of integers.
Tensors dense(const Tensors& list, const Tensors& like) {
  Tensors made = list;
  for (size_t i = 0; i < made.size(); ++i)
    if (!made[i] && is_differentiable(like[i].dtype())) made[i] = zeros_of(type_of(like[i]));
  return made;
}

Tensors first(const Tensors& list, size_t count) {
  return {list.begin(), list.begin() + static_cast<ptrdiff_t>(count)};
}

/// What a rule returned, of the types of what it belongs to.
Tensors checked(Tensors made, const Tensors& like, std::string_view rule, std::string_view what,
                std::string_view owner) {
  if (made.size() != like.size())
    fail("{}: {} returns {} {}s for {} {}s", kName, rule, made.size(), what, like.size(), owner);
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i]) continue;
    if (made[i].shape() != like[i].shape())
      fail("{}: {} returns {} as the {} of {} {}, which is {}", kName, rule, *type_of(made[i]),
           what, owner, i, *type_of(like[i]));
    made[i] = is_differentiable(like[i].dtype()) ? cast_to(made[i], like[i].dtype()) : Tensor();
  }
  return made;
}

Tensors apply_vjp(const CustomRules& rules, const Tensors& primals, const Tensors& ct,
                  const Tensors& out) {
  return checked(rules.vjp(primals, dense(ct, out), out), primals, "vjp", "cotangent", "argument");
}
Tensors apply_jvp(const CustomRules& rules, const Tensors& primals, const Tensors& t,
                  const Tensors& out) {
  return checked(rules.jvp(primals, dense(t, primals)), out, "jvp", "tangent", "result");
}

/// The transpose of the user's jvp, which is linear in the tangents: its derivative backwards, at
/// tangents of zero.
Tensors transpose_jvp(const CustomRules& rules, const Tensors& primals, const Tensors& out,
                      const Tensors& ct) {
  Trace trace(kName, Trace::Values::known);
  Tensors inputs, tangents(primals.size());
  Mask varying;
  for (size_t i = 0; i < primals.size(); ++i) {
    varying.push_back(is_differentiable(primals[i].dtype()));
    if (varying[i]) inputs.push_back(tangents[i] = taped_copy(zeros_of(type_of(primals[i]))));
  }
  Tensors made = apply_jvp(rules, primals, tangents, out), results, cts;
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i] && ct[i]) results.push_back(made[i]), cts.push_back(ct[i]);
  trace.end();
  return spread(sweep_back(tape_of(inputs, results), inputs, cts), varying);
}

/// Runs `rule` on a batch: `axes` tells which of its arguments are batched. Results that are null
/// in it are null here.
Tensors map_rule(const Function& rule, const Tensors& args, const Mask& batched) {
  Mask has = mask_of(args), out_has;
  Tensors given = chosen(args, has);
  std::vector<Maybe<int>> axes;
  for (size_t i = 0; i < args.size(); ++i)
    if (has[i]) axes.push_back(batched[i] ? Maybe<int>(0) : Maybe<int>());
  Function on_dense = [&](const Tensors& in) {
    Tensors out = rule(spread(in, has));
    out_has = mask_of(out);
    return chosen(out, out_has);
  };
  Tensors made = vmap(on_dense, axes)(given);
  return spread(made, out_has);
}

Mask joined(std::initializer_list<Mask> masks) {
  Mask all;
  for (const Mask& m : masks) all.insert(all.end(), m.begin(), m.end());
  return all;
}

Tensors joined(std::initializer_list<Tensors> lists) {
  Tensors all;
  for (const Tensors& l : lists) all.insert(all.end(), l.begin(), l.end());
  return all;
}

Tensors slice(const Tensors& list, size_t from, size_t count) {
  auto at = list.begin() + static_cast<ptrdiff_t>(from);
  return {at, at + static_cast<ptrdiff_t>(count)};
}

/// The rules of a function that runs on a batch: the same ones, mapped. A cotangent of an argument
/// that all examples share is the sum of theirs.
std::shared_ptr<const CustomRules> batched_rules(std::shared_ptr<const CustomRules> rules,
                                                 const Mask& batched) {
  auto made = std::make_shared<CustomRules>();
  if (rules->vjp)
    made->vjp = [rules, batched](const Tensors& primals, const Tensors& ct, const Tensors& out) {
      size_t n = primals.size(), m = out.size();
      Tensors back = map_rule(
          [&](const Tensors& in) {
            return apply_vjp(*rules, first(in, n), slice(in, n, m), slice(in, n + m, m));
          },
          joined({primals, ct, out}), joined({batched, Mask(m, true), Mask(m, true)}));
      for (size_t i = 0; i < n; ++i)
        if (back[i] && !batched[i]) back[i] = tn::sum(back[i], Axes(0));
      return back;
    };
  if (rules->jvp)
    made->jvp = [rules, batched](const Tensors& primals, const Tensors& t) {
      size_t n = primals.size();
      return map_rule([&](const Tensors& in) { return rules->jvp(first(in, n), slice(in, n, n)); },
                      joined({primals, t}), joined({batched, batched}));
    };
  return made;
}

bool is_taped(const Tensor& t) {
  const Node& node = *t.node();
  bool constant = node.op && node.op->gradient == Gradient::zero;
  return (node.taped || node.traced) && !constant && is_differentiable(t.dtype());
}

}  // namespace

CustomCall::CustomCall(std::shared_ptr<const CustomRules> given, size_t count)
    : rules(std::move(given)), args(count), number(next_number()) {}

CustomCall::~CustomCall() {
  std::lock_guard lock(registry().mutex);
  registry().calls.erase(number);
}

std::shared_ptr<const CustomCall> CustomCall::find(const Tensor& number) {
  std::shared_ptr<const CustomCall> found;
  if (is_scalar(*number.node())) {
    std::lock_guard lock(registry().mutex);
    auto at = registry().calls.find(scalar_value(*number.node()).integer);
    if (at != registry().calls.end()) found = at->second.lock();
  }
  if (!found)
    fail(Hint{"take the derivative inside the function that calls it"},
         "{}: its rules are gone: they are kept until the surrounding transform ends", kName);
  return found;
}

Tensors emit_custom(std::shared_ptr<const CustomRules> rules, size_t args, GraphRef graph,
                    const Tensors& in) {
  auto call = std::make_shared<const CustomCall>(std::move(rules), args);
  {
    std::lock_guard lock(registry().mutex);
    registry().calls.emplace(call->number, call);
  }
  for (Trace* trace = Trace::current(); trace; trace = trace->outer) trace->kept.push_back(call);
  Tensors all = in;
  all.push_back(make_scalar(Scalar(call->number), DType::i64, false));
  return ops::emit_call(ops::CallKind::custom, graph, all);
}

Function custom_function(Function f, CustomRules given) {
  auto rules = std::make_shared<const CustomRules>(std::move(given));
  return [f = std::move(f), rules](const Tensors& args) -> Tensors {
    bool traced =
        std::any_of(args.begin(), args.end(), [](const Tensor& t) { return t.node()->traced; });
    if (!taping && !traced) return f(args);
    Trace trace(kName, Trace::Values::known);
    Tensors copies;
    for (const Tensor& t : args) copies.push_back(taped_copy(t));
    Tensors out = f(copies);
    trace.end();
    if (out.empty()) return out;
    Captured body = graph_of(tape_of(copies, out), copies, out);
    bool own = rules->vjp || rules->jvp;
    for (const Tensor& t : body.leaves)
      if (own && is_taped(t))
        fail(Hint{"pass it as an argument, or close over its stop_gradient"},
             "{}: it closes over {}, which a derivative is being taken of: its rules know nothing "
             "of that",
             kName, *type_of(t));
    return emit_custom(rules, args.size(), intern(std::move(body.graph)),
                       joined({args, body.leaves}));
  };
}

Tensors jvp_custom(GraphRef graph, const Primal& p, const Tensors& t) {
  auto call = CustomCall::find(p.in.back());
  const CustomRules& rules = *call->rules;
  if (rules.jvp) return apply_jvp(rules, first(p.in, call->args), first(t, call->args), p.out);
  if (rules.vjp)
    fail(Hint{"give it a jvp; vjp follows from that"},
         "{}: a derivative forwards was asked for, but only vjp is given", kName);
  Mask given(p.wanted.begin(), p.wanted.end() - 1);
  Derived d = jvp_graph(graph, given);
  Tensors out = ops::emit_call(ops::CallKind::plain, d.graph,
                               joined({first(p.in, given.size()), chosen(t, given), d.leaves}));
  return spread(slice(out, p.out.size(), out.size() - p.out.size()), d.outputs);
}

Tensors vjp_custom(GraphRef graph, const Primal& p, const Tensors& ct) {
  auto call = CustomCall::find(p.in.back());
  Tensors primals = first(p.in, call->args), back;
  if (call->rules->vjp) {
    back = apply_vjp(*call->rules, primals, ct, p.out);
  } else if (call->rules->jvp) {
    back = transpose_jvp(*call->rules, primals, p.out, ct);
  } else {
    Mask wanted(p.wanted.begin(), p.wanted.end() - 1), given = mask_of(ct);
    Derived d = vjp_graph(graph, wanted, given);
    if (!d.graph->outputs.empty())
      back =
          spread(ops::emit_call(ops::CallKind::plain, d.graph,
                                joined({first(p.in, wanted.size()), chosen(ct, given), d.leaves})),
                 d.outputs);
  }
  back.resize(p.in.size());
  return back;
}

Tensors batch_custom(GraphRef graph, const BatchCall& b) {
  auto call = CustomCall::find(b.in.back());
  size_t inputs = b.in.size() - 1;
  Mask batched(b.batched.begin(), b.batched.end() - 1);
  Mask of_args(batched.begin(), batched.begin() + static_cast<ptrdiff_t>(call->args));
  if (call->rules->vmap) {
    auto [out, has] = call->rules->vmap(first(b.in, call->args), of_args, b.size.value());
    if (out.size() != graph->outputs.size() || has.size() != out.size())
      fail("{}: vmap returns {} results and {} flags for {} results", kName, out.size(), has.size(),
           graph->outputs.size());
    for (size_t i = 0; i < out.size(); ++i)
      if (!has[i]) out[i] = ops::with_batch(out[i], b.size);
    return out;
  }
  Derived d = batch_graph(graph, batched, b.size);
  Tensors params = params_for(*d.graph), out = replay(*d.graph, params);  // leaves among them
  for (size_t i = 0; i < out.size(); ++i)
    if (!d.outputs[i]) out[i] = ops::with_batch(out[i], b.size);
  return emit_custom(batched_rules(call->rules, of_args), call->args,
                     graphs_between(params, {out}).graphs[0],
                     joined({first(b.in, inputs), d.leaves}));
}

}  // namespace tn
