#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/at_fork.h"
#include "base/error.h"
#include "ir/interned.h"
#include "ir/sizes.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "ops/call.h"
#include "ops/control_flow.h"
#include "ops/custom_call.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/ops.h"
#include "transforms/derivative.h"
#include "transforms/sweep.h"

namespace tn {

namespace {

using flat::CustomRules;
using ops::part;
using ops::operator+;

constexpr std::string_view kName = "custom_function";

/// A number is used again when its call is gone: the graphs that the next step of a training makes
/// are then those of the step before.
struct Registry {
  std::mutex mutex;
  std::map<int64_t, std::weak_ptr<const CustomCall>> calls;
  std::set<int64_t> unused;
  int64_t next = 1000;  // above the numbers that are parts of graphs for their values
};
Registry& registry() {
  static auto& only = guarded_for_process<Registry>(10);
  return only;
}

int64_t lowest_unused() {
  std::lock_guard lock(registry().mutex);
  std::set<int64_t>& unused = registry().unused;
  return unused.empty() ? registry().next++ : unused.extract(unused.begin()).value();
}

/// Derivatives as the rules see them: all there, except those of integers.
Tensors dense(const Tensors& list, const Tensors& like) {
  Tensors made = list;
  for (size_t i = 0; i < made.size(); ++i)
    if (!made[i].defined() && is_differentiable(like[i].dtype()))
      made[i] = zeros_of(type_of(like[i]));
  return made;
}

/// What a rule returned, of the types of what it belongs to.
Tensors checked(Tensors made, const Tensors& like, std::string_view rule, std::string_view what,
                std::string_view owner) {
  if (made.size() != like.size())
    fail("{}: {} returns {} {}s for {} {}s", kName, rule, made.size(), what, like.size(), owner);
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i].defined()) continue;
    if (!decide_equal(made[i].shape(), like[i].shape()))
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
    if (made[i].defined() && ct[i].defined()) results.push_back(made[i]), cts.push_back(ct[i]);
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
  Tensors made = flat::vmap(on_dense, axes)(given);
  return spread(made, out_has);
}

/// The rules of a function that runs on a batch: the same ones, mapped. A cotangent of an argument
/// that all examples share is the sum of theirs.
/// The results of the vmap rule, all with the batch as axis 0, checked against those of one
/// example.
Tensors apply_vmap(const CustomRules& rules, const Tensors& args, const Mask& batched, Dim size,
                   const Graph& example) {
  auto [out, has] = rules.vmap(args, batched, size.value());
  if (out.size() != example.outputs.size() || has.size() != out.size())
    fail("{}: vmap returns {} results and {} flags for {} results", kName, out.size(), has.size(),
         example.outputs.size());
  check_given(out, kName, "result");
  for (size_t i = 0; i < out.size(); ++i) {
    if (!has[i]) out[i] = ops::with_batch(out[i], size);
    Type want = *example.types[static_cast<size_t>(example.outputs[i])];
    want.shape.insert(0, size);
    if (type_of(out[i]) != intern(want))
      fail("{}: vmap returns {} as result {}, which must be {}", kName, *type_of(out[i]), i, want);
  }
  return out;
}

std::shared_ptr<const CustomRules> batched_rules(std::shared_ptr<const CustomRules> rules,
                                                 const Mask& batched) {
  auto made = std::make_shared<CustomRules>();
  made->constants = rules->constants;
  if (rules->vjp)
    made->vjp = [rules, batched](const Tensors& primals, const Tensors& ct, const Tensors& out) {
      size_t n = primals.size(), m = out.size();
      Tensors back = map_rule(
          [&](const Tensors& in) {
            return apply_vjp(*rules, part(in, 0, n), part(in, n, m), part(in, n + m, m));
          },
          primals + ct + out, batched + Mask(2 * m, true));
      for (size_t i = 0; i < n; ++i)
        if (back[i].defined() && !batched[i]) back[i] = tn::sum(back[i], Axes(0));
      return back;
    };
  if (rules->jvp)
    made->jvp = [rules, batched](const Tensors& primals, const Tensors& t) {
      size_t n = primals.size();
      return map_rule([&](const Tensors& in) { return rules->jvp(part(in, 0, n), part(in, n, n)); },
                      primals + t, batched + batched);
    };
  return made;
}

/// Fails when one of the `asked` operands is none that the rules are given.
void check_known(const CustomCall& call, const Tensors& in, const Mask& asked,
                 std::string_view what) {
  for (size_t k = call.args, given = 0; k + 1 < in.size(); ++k, ++given) {
    if (!asked[k]) continue;
    if (const auto& names = call.rules->constants; given < names.size())
      fail(Hint{"pass it by position, or pass stop_gradient of it"},
           "{}: {} {}, which was passed by name: the rules do not cover it", kName, what,
           names[given]);
    fail(Hint{"pass it as an argument, or close over its stop_gradient"},
         "{}: {} {}, which the function closes over: the rules do not cover it", kName, what,
         *type_of(in[k]));
  }
}

constexpr std::string_view kDerivative = "a derivative is being taken of";

}  // namespace

CustomCall::CustomCall(std::shared_ptr<const CustomRules> given, size_t count)
    : rules(std::move(given)), args(count), number(lowest_unused()) {}

CustomCall::~CustomCall() {
  std::lock_guard lock(registry().mutex);
  registry().calls.erase(number);
  registry().unused.insert(number);
}

std::shared_ptr<const CustomCall> CustomCall::find(const Tensor& number) {
  ++rules_asked_for;
  std::shared_ptr<const CustomCall> found;
  if (number.is_evaluated() || is_scalar(*number.node())) {
    int64_t n =
        is_scalar(*number.node()) ? scalar_value(*number.node()).integer : *number.data<int64_t>();
    std::lock_guard lock(registry().mutex);
    auto at = registry().calls.find(n);
    if (at != registry().calls.end()) found = at->second.lock();
  }
  if (!found)
    fail(Hint{"take the derivative inside the function that calls it"},
         "{}: its rules were released when the surrounding transform ended", kName);
  return found;
}

/// Keeps the rules for the traces under way and returns their number. Without a trace only
/// backward() may ask for them: they live as long as the number, which the recorded call holds.
static Tensor keep_rules(std::shared_ptr<const CustomRules> rules, size_t args) {
  using Held = std::shared_ptr<const CustomCall>;
  Held call = std::make_shared<const CustomCall>(std::move(rules), args);
  {
    std::lock_guard lock(registry().mutex);
    registry().calls.emplace(call->number, call);
  }
  for (Trace* trace = Trace::current(); trace; trace = trace->outer) trace->kept.push_back(call);
  if (Trace::current()) return make_scalar(Scalar(call->number), DType::i64, false);
  auto let_go = [](void* held) { delete static_cast<Held*>(held); };
  auto* number = const_cast<int64_t*>(&call->number);
  return from_memory(number, DType::i64, {}, new Held(std::move(call)), let_go, true);
}

Tensors emit_custom(std::shared_ptr<const CustomRules> rules, size_t args, GraphRef graph,
                    const Tensors& in) {
  return ops::emit_call(ops::CallKind::custom, graph,
                        in + Tensors{keep_rules(std::move(rules), args)});
}

Function flat::custom_function(Function f, CustomRules given) {
  auto rules = std::make_shared<const CustomRules>(std::move(given));
  return [f = std::move(f), rules](const Tensors& args) -> Tensors {
    check_given(args, kName, "argument");
    bool derived = std::any_of(args.begin(), args.end(), [](const Tensor& t) {
      return t.node()->traced || watch_bits(*t.node()) & inherited;
    });
    if (!taping && !derived) return f(args);
    Trace trace(kName, Trace::Values::known);
    Tensors copies;
    for (const Tensor& t : args) copies.push_back(taped_copy(t));
    Tensors out = f(copies);
    check_given(out, kName, "result");
    trace.end();
    if (out.empty()) return out;
    invariant(rules->constants.size() <= args.size(), "{}: {} constants of {} arguments", kName,
              rules->constants.size(), args.size());
    RecordScope interning;
    Captured body = capture(tape_of(copies, out), copies, out);
    GraphRef graph = without_effects(intern(std::move(body.graph)));  // they have happened
    return emit_custom(rules, args.size() - rules->constants.size(), graph, args + body.leaves);
  };
}

Tensors jvp_custom(GraphRef graph, const Primal& p, const Tensors& t) {
  auto call = CustomCall::find(p.in.back());
  const CustomRules& rules = *call->rules;
  if (rules.jvp) {
    check_known(*call, p.in, p.wanted, kDerivative);
    return apply_jvp(rules, part(p.in, 0, call->args), part(t, 0, call->args), p.out);
  }
  if (rules.vjp)
    fail(Hint{"give it a jvp; vjp follows from that"},
         "{}: forward-mode differentiation needs a jvp rule, only vjp is given", kName);
  Mask given(p.wanted.begin(), p.wanted.end() - 1);
  Derived d = jvp_graph(graph, given);
  Tensors out = ops::emit_call(ops::CallKind::plain, d.graph,
                               part(p.in, 0, given.size()) + chosen(t, given) + d.leaves);
  return spread(part(out, p.out.size(), out.size() - p.out.size()), d.outputs);
}

Tensors vjp_custom(GraphRef graph, const Primal& p, const Tensors& ct) {
  auto call = CustomCall::find(p.in.back());
  const CustomRules& rules = *call->rules;
  Tensors primals = part(p.in, 0, call->args), back;
  if (rules.vjp || rules.jvp) {
    check_known(*call, p.in, p.wanted, kDerivative);
    back =
        rules.vjp ? apply_vjp(rules, primals, ct, p.out) : transpose_jvp(rules, primals, p.out, ct);
  } else {
    Mask wanted(p.wanted.begin(), p.wanted.end() - 1), given = mask_of(ct);
    Derived d = vjp_graph(graph, wanted, given);
    if (!d.graph->outputs.empty())
      back = spread(ops::emit_call(ops::CallKind::plain, d.graph,
                                   part(p.in, 0, wanted.size()) + chosen(ct, given) + d.leaves),
                    d.outputs);
  }
  for (size_t i = 0; i < back.size(); ++i)  // a rule may have computed it elsewhere
    if (back[i].defined()) back[i] = back[i].to(p.in[i].device());
  back.resize(p.in.size());
  return back;
}

Tensors batch_custom(GraphRef graph, const BatchCall& b) {
  auto call = CustomCall::find(b.in.back());
  size_t inputs = b.in.size() - 1;
  Mask batched = part(b.batched, 0, inputs), of_args = part(batched, 0, call->args);
  if (call->rules->vmap) {
    check_known(*call, b.in, b.batched, "vmap is given a rule, but maps over");
    // With rules for derivatives it is a custom function of the batch, which they still belong to.
    bool has_derivatives = call->rules->vjp || call->rules->jvp;
    Tensors args = part(b.in, 0, call->args);
    Tensors params = has_derivatives ? ops::params_like(args) : args;
    Tensors out = apply_vmap(*call->rules, params, of_args, b.size, *graph);
    if (!has_derivatives) return out;
    Closed closed = graphs_between(params, {out});
    return emit_custom(batched_rules(call->rules, of_args), call->args, closed.graphs[0],
                       args + closed.leaves);
  }
  Derived d = batch_graph(graph, batched, b.size);
  Tensors params = params_for(*d.graph), out = replay(*d.graph, params);  // leaves among them
  for (size_t i = 0; i < out.size(); ++i)
    if (!d.outputs[i]) out[i] = ops::with_batch(out[i], b.size);
  return emit_custom(batched_rules(call->rules, of_args), call->args,
                     graphs_between(params, {out}).graphs[0], part(b.in, 0, inputs) + d.leaves);
}

}  // namespace tn
