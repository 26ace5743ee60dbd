// cond, while_loop and scan: functions traced on parameters become graphs, and what they close over
// further operands.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ir/interned.h"
#include "ir/number.h"
#include "ir/sizes.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "ops/control_flow.h"
#include "ops/op_decls.h"
#include "ops/random_state.h"
#include "ops/shapes.h"
#include "tenon/flat.h"
#include "tenon/ops.h"
#include "tenon/random.h"
#include "transforms/tape.h"

namespace tn::flat {

namespace {

using ops::part;
using ops::operator+;

/// Numbers take the type that is expected where they can, and single values of the host go where
/// they are expected.
void settle(Tensor& t, TypeRef expected) {
  bool is_single = expected && expected->rank() == 0 && t.rank() == 0;
  if (is_number(t)) {
    bool fits = is_single && kind_of(t.dtype()) <= kind_of(expected->dtype);
    t = cast_to(t, fits ? expected->dtype : default_dtype(kind_of_number(t)));
  }
  if (is_single && t.device().is_host()) t = t.to(expected->device);
}

/// Operands of the traced function: numbers have a type of their own from here on.
Tensors operands_for(const Tensors& given, std::string_view by) {
  check_given(given, by, "operand");
  Tensors made = given;
  for (Tensor& t : made) settle(t, nullptr);
  return made;
}

/// One or several functions of the same parameters.
struct Bodies {
  std::string_view by;
  Tensors params;
  bool in_loop;  // only what depends on parameters is inside: the rest is computed once
  std::vector<Tensors> outs = {}, effects = {};
  uint64_t start = next_sequence();

  template <class F>
  Tensors& run(F&& f, std::string_view result) {
    Trace trace(by, Trace::Values::unknown);
    if (in_loop) trace.hold_by(params[0]);
    Tensors out = f();
    check_given(out, by, result);
    effects.push_back(trace.effects);
    return outs.emplace_back(std::move(out));
  }
  bool have_effects() const {
    return std::any_of(effects.begin(), effects.end(), [](auto& done) { return !done.empty(); });
  }
  /// What they do happens even if a derivative needs none of the results, or there are none. Those
  /// of an op outside all traces wait until they are asked for.
  void perform(const Tensors& results, bool used) const {
    if (have_effects() && (Trace::current() || !used)) Trace::perform(results[0]);
  }

  struct Graphs {
    std::vector<GraphRef> graphs;
    Tensors closed_over;
  };
  Graphs finish() {
    Tensors all;
    for (size_t i = 0; i < outs.size(); ++i) {
      Tensors& out = outs[i];
      for (Tensor& t : out) settle(t, nullptr);
      if (out.empty() && have_effects()) out = {ops::filled(Scalar(false), DType::b1, {Dim(0)})};
      out = tied(std::move(out), effects[i]);
      all = all + out;
    }
    Captured joint =
        capture(in_loop ? tape_of(params, all) : tape_since(start, params, all), params, all);
    Graphs made{{}, std::move(joint.leaves)};
    std::vector<Val> results = std::move(joint.graph.outputs);
    auto next = results.begin();
    for (const Tensors& out : outs) {
      joint.graph.outputs.assign(next, next + static_cast<ptrdiff_t>(out.size()));
      next += static_cast<ptrdiff_t>(out.size());
      made.graphs.push_back(intern(prune(joint.graph)));
    }
    return made;
  }
};

Tensor one_bool(const Tensor& t, std::string_view by, std::string_view what) {
  if (t.dtype() != DType::b1 || !t.shape().is_const() || t.size() != 1)
    fail(Fault::type, Hint{"compare, and reduce with any or all"},
         "{}: {} must be one bool, not {}", by, what, *type_of(t));
  return t.rank() == 0 ? t : tn::reshape(t, {});
}

void check_carry(const Tensors& carry, Tensors& next, std::string_view by) {
  if (next.size() != carry.size())
    fail("{}: the body returns a carry of {} tensors, it was given {}", by, next.size(),
         carry.size());
  for (size_t i = 0; i < carry.size(); ++i) {
    settle(next[i], type_of(carry[i]));
    if (!ops::same_type(*type_of(next[i]), *type_of(carry[i])))
      fail(Fault::type,
           Hint{"start with a carry of the type that the body makes, or convert there"},
           "{}: carry {} is {} but the body returns {}", by, i, *type_of(carry[i]),
           *type_of(next[i]));
  }
}

/// The carry with numbers as the body makes them; nothing where they are so.
std::optional<Tensors> fitted(const Tensors& carry, const Tensors& next) {
  Tensors made = carry;
  bool any = false;
  for (size_t i = 0; i < std::min(carry.size(), next.size()); ++i) {
    if (is_number(next[i])) continue;
    settle(made[i], type_of(next[i]));
    any |= type_of(made[i]) != type_of(carry[i]);
  }
  return any ? std::optional(made) : std::nullopt;
}

/// The random state of the thread while a loop is traced. A body that draws from it gets a key of
/// its own among the carry, so that every step draws other numbers.
class LoopState {
 public:
  /// Whether something was drawn. Takes it back then, and draws a key for the loop.
  std::optional<Tensor> key() {
    if (same(before_, random::state())) return {};
    ops::exchange_state(before_);
    return ops::take_key();
  }

  /// What `f` returns with `key` as the state. `left` is the state in the end.
  template <class F>
  static auto run(const Tensor& key, Tensor& left, F&& f) {
    struct Restored {
      Tensor before;
      ~Restored() { ops::exchange_state(std::move(before)); }
    } restored{ops::exchange_state(key)};
    auto made = f();
    left = random::state();
    return made;
  }

 private:
  static bool same(const Tensor& a, const Tensor& b) { return &slot_of(a) == &slot_of(b); }

  Tensor before_ = random::state();
};

}  // namespace

Tensors cond(const Operand& pred, const Function& then, const Function& otherwise,
             const Tensors& operands) {
  LocScope scope(pred.place);
  Tensor decision = pred.tensor ? *pred.tensor : Tensor::from_scalar(pred.scalar);
  decision = one_bool(decision, "cond", "the predicate");
  Tensors in = operands_for(operands, "cond");
  Bodies bodies{"cond", ops::params_like(in), false};
  Tensors yes = bodies.run([&] { return then(bodies.params); }, "result");
  Tensors& no = bodies.run([&] { return otherwise(bodies.params); }, "result");
  if (yes.size() != no.size())
    fail("cond: the branches return {} and {} results", yes.size(), no.size());
  for (size_t i = 0; i < yes.size(); ++i) {
    settle(bodies.outs[0][i], type_of(no[i])), settle(no[i], type_of(bodies.outs[0][i]));
    if (TypeRef a = type_of(bodies.outs[0][i]), b = type_of(no[i]); !ops::same_type(*a, *b))
      fail(Fault::type, Hint{"convert one of them in its branch"},
           "cond: result {} is {} in one branch and {} in the other", i, *a, *b);
  }
  if (yes.empty() && !bodies.have_effects()) return {};
  RecordScope interning;
  auto [graphs, closed_over] = bodies.finish();
  ops::CondAttrs attrs{graphs[0], graphs[1]};
  Tensors out = emit_all(ops::cond, Tensors{decision} + in + closed_over, &attrs);
  bodies.perform(out, !yes.empty());
  return part(out, 0, yes.size());
}

static Tensors while_with_key(const Function& go_on, const Function& body, const Tensors& carry,
                              const Tensor& key) {
  size_t count = carry.size();
  Tensor left;
  // The condition draws from one half of the key, the body goes on with the other.
  auto half = [&](const Tensors& now, size_t i) {
    return tn::unstack(tn::random_split(now[count], {2}))[i];
  };
  auto decide = [&](const Tensors& now) {
    return LoopState::run(half(now, 0), left, [&] { return go_on(part(now, 0, count)); });
  };
  auto step = [&](const Tensors& now) {
    Tensors next = LoopState::run(half(now, 1), left, [&] { return body(part(now, 0, count)); });
    return next + Tensors{left};
  };
  return part(while_loop(decide, step, carry + Tensors{key}), 0, count);
}

Tensors while_loop(const Function& go_on, const Function& body, const Tensors& carry) {
  Tensors in = operands_for(carry, "while_loop");
  if (in.empty()) fail("while_loop: there is no carry, so nothing can change");
  Bodies bodies{"while_loop", ops::params_like(in), true};
  LoopState state;
  Tensors& decision = bodies.run([&] { return go_on(bodies.params); }, "condition");
  if (decision.size() != 1) fail("while_loop: the condition returns {} results", decision.size());
  decision[0] = one_bool(decision[0], "while_loop", "the condition");
  Tensors& next = bodies.run([&] { return body(bodies.params); }, "carry");
  if (auto typed = fitted(carry, next)) return while_loop(go_on, body, *typed);
  check_carry(in, next, "while_loop");
  if (std::optional<Tensor> key = state.key()) return while_with_key(go_on, body, carry, *key);
  RecordScope interning;
  auto [graphs, closed_over] = bodies.finish();
  ops::WhileAttrs attrs{graphs[0], graphs[1]};
  Tensors out = emit_all(ops::while_loop, in + closed_over, &attrs);
  bodies.perform(out, true);
  return out;
}

namespace {

Dim scan_length(const Tensors& xs, const Maybe<int64_t>& given) {
  if (xs.empty() && !given) fail("scan: without xs the length must be given");
  if (given && *given < 0) fail("scan: the length is negative: {}", *given);
  Dim length = given ? Dim(*given) : Dim();
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].rank() == 0) fail("scan: xs {} is a scalar: a number has no axis to scan over", i);
    Dim mine = xs[i].shape()[0];
    if (i == 0 && !given) length = mine;
    if (!decide_equal(mine, length))
      fail("scan: xs {} is {}, which is not {} slices long", i, *type_of(xs[i]), length);
  }
  return length;
}

ScanResult scan_with_key(const ScanBody& body, const Tensors& carry, const Tensors& xs,
                         Maybe<int64_t> length, bool reverse, const Tensor& key) {
  size_t count = carry.size();
  auto step = [&](const Tensors& now, const Tensors& x) {
    Tensor left;
    ScanResult made =
        LoopState::run(now[count], left, [&] { return body(part(now, 0, count), x); });
    made.carry.push_back(left);
    return made;
  };
  ScanResult made = scan(step, carry + Tensors{key}, xs, length, reverse);
  made.carry.resize(count);
  return made;
}

}  // namespace

ScanResult scan(const ScanBody& body, const Tensors& carry, const Tensors& xs,
                Maybe<int64_t> length, bool reverse) {
  Tensors in = operands_for(carry, "scan"), over = operands_for(xs, "scan");
  ops::ScanAttrs attrs;
  attrs.carries = static_cast<int64_t>(in.size()), attrs.xs = static_cast<int64_t>(over.size());
  attrs.length = scan_length(over, length), attrs.reverse = reverse;
  Bodies bodies{"scan", ops::params_like(in) + ops::slice_params(over),
                !in.empty() || !over.empty()};
  std::optional<Tensors> typed;
  LoopState state;
  auto one_step = [&] {
    ScanResult step =
        body(part(bodies.params, 0, in.size()), part(bodies.params, in.size(), over.size()));
    check_given(step.carry, "scan", "carry");
    typed = fitted(carry, step.carry);
    if (!typed) check_carry(in, step.carry, "scan");
    Device here = device_of(bodies.params);
    for (Tensor& y : step.ys)
      if (y.defined() && y.rank() == 0 && y.device().is_host()) y = y.to(here);
    return step.carry + step.ys;
  };
  size_t results = bodies.run(one_step, "result").size();
  if (typed) return scan(body, *typed, xs, length, reverse);
  if (std::optional<Tensor> key = state.key())
    return scan_with_key(body, carry, xs, length, reverse, *key);
  RecordScope interning;
  auto [graphs, closed_over] = bodies.finish();
  if (graphs[0]->outputs.empty()) return {};
  Tensors operands = in + over + closed_over;
  attrs.body = graphs[0];
  bool derived = std::any_of(operands.begin(), operands.end(), [](const Tensor& t) {
    return (taping > 0 && (t.node()->taped || t.node()->traced)) ||
           watch_bits(*t.node()) & inherited & kKept;
  });
  if (derived)
    attrs.body = ops::saving_carry(attrs.body, attrs.carries), attrs.saved = attrs.carries;
  Tensors out = emit_all(ops::scan, operands, &attrs);
  bodies.perform(out, results > 0);
  return {part(out, 0, in.size()), part(out, in.size(), results - in.size())};
}

}  // namespace tn::flat
