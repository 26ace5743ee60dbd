#include "transforms/backward.h"

#include "base/error.h"
#include "ir/sizes.h"
#include "ir/trace.h"
#include "ir/walk.h"
#include "ir/watch.h"
#include "ops/op_decls.h"
#include "tenon/ops.h"
#include "transforms/derivative.h"
#include "transforms/names.h"
#include "transforms/sweep.h"

namespace tn {

GradMode::GradMode(bool enabled)
    : before_(std::exchange(inherited, enabled ? kInherited : uint8_t{0})) {}
GradMode::~GradMode() { inherited = before_; }

bool is_grad_enabled() { return inherited != 0; }
void enable_grad(bool enabled) { inherited = enabled ? kInherited : uint8_t{0}; }

// Leaves ---------------------------------------------------------------------------------------

namespace {

/// `x` as the only result of a node that is not a number: bits and gradients belong to nodes.
Tensor as_leaf(const Tensor& x) {
  NoGrad off;
  const Node& node = *x.node();
  bool plain = node.outs == 1 && !is_scalar(node) && !(watch_bits(node) & kReplaced);
  return plain ? x : emit(ops::copy, {x});
}

bool is_older_than_trace(const Node& node) {
  const Trace* trace = Trace::tracing();
  return trace && node.sequence < trace->start;
}

const Hint kNameHolder{"name what holds it: compile(f, inputs=state, outputs=state)",
                       "name what holds it: tn::compile(f, std::tie(state))"};
const Hint kComputedOutside{
    "the loss uses what was computed from it outside: compute that inside, or detach() it",
    "the loss uses what was computed from it outside: compute that inside, or use "
    "tn::stop_gradient of it"};

const Hint kArgument{
    kNameHolder.text + "; detach() state that was computed from other tensors",
    kNameHolder.cpp + "; use tn::stop_gradient of state that was computed from other tensors"};

/// A tensor from outside would change at trace time, and not at run time. `hint` is for functions
/// that are compiled.
[[noreturn]] void fail_outside(const Tensor& x, std::string_view what,
                               const Hint& hint = kNameHolder) {
  std::string_view by = Trace::tracing() ? Trace::tracing()->by : "compile";
  fail(by == "compile" ? hint : Hint{"use grad or value_and_grad inside the function"},
       "{}: {} from outside the traced function: {}", by, what, *type_of(x));
}

}  // namespace

void require_grad(Tensor& x, bool wanted, std::source_location at) {
  LocScope scope(at);
  if (wanted && !is_differentiable(x.dtype()))
    fail(Fault::type, Hint{"convert it with astype(float32)"},
         "requires_grad: gradients exist for floating and complex tensors only: {}", *type_of(x));
  if (!wanted && !is_leaf(x))
    fail(Hint{"x.detach() returns the value without gradients",
              "tn::stop_gradient(x) returns the value without gradients"},
         "requires_grad: cannot be turned off for a computed tensor: {}", *type_of(x));
  uint8_t bits = watch_bits(*x.node());
  bool is_made = bits & kOnPath && !(bits & kLeaf);
  if (wanted ? requires_grad(x) : is_made || !is_differentiable(x.dtype())) return;
  NoGrad off;
  // Other holders of the value, such as copies of a model, have their own gradients.
  bool shared = x.node()->refs.load(std::memory_order_acquire) > 1 && !Trace::current();
  x = shared && !(bits & kLeaf) ? emit(ops::copy, {x}) : as_leaf(x);
  uint8_t variable = kLeaf | kOnPath | kKept, refused = kRefused;
  clear_watch_bits(*x.node(), wanted ? refused : variable);
  set_watch_bits(*x.node(), wanted ? variable : refused);
}

bool requires_grad(const Tensor& x) {
  return is_differentiable(x.dtype()) && watch_bits(*x.node()) & kKept;
}

bool is_leaf(const Tensor& x) { return !requires_grad(x) || watch_bits(*x.node()) & kLeaf; }

void watch(Tensor& parameter) {
  if (!inherited || !is_differentiable(parameter.dtype())) return;
  if (watch_bits(*parameter.node()) & (kLeaf | kKept | kRefused)) return;
  parameter = as_leaf(parameter);
  set_watch_bits(*parameter.node(), kLeaf | kOnPath);
}

Tensor grad(const Tensor& x, std::source_location at) {
  LocScope scope(at);
  if (!x.defined()) fail_null_tensor();
  return gradient_at(*x.node());
}

void set_grad(const Tensor& x, const Tensor& gradient, std::source_location at) {
  LocScope scope(at);
  if (!x.defined()) fail_null_tensor();
  if (gradient.defined() && x.node()->outs > 1)
    fail(Hint{"call requires_grad_() on it first", "call require_grad(x) first"},
         "grad: the tensor is one of several results of an op, and cannot hold a gradient");
  if ((gradient.defined() || grad(x).defined()) && is_older_than_trace(*x.node()))
    fail_outside(x, "a gradient is set of a tensor");
  exchange_gradient(*x.node(), gradient.defined()
                                   ? flat::fitting(gradient, x, "gradient", {"grad"}, "the tensor")
                                   : gradient);
}

Tensor as_variable(const Tensor& value, Tensor gradient, bool kept) {
  Tensor made = as_leaf(value);
  set_watch_bits(*made.node(), kLeaf | kOnPath | (kept ? kKept : 0));
  exchange_gradient(*made.node(), std::move(gradient));
  return made;
}

void rebind(Tensor& variable, Tensor value, std::source_location at) {
  LocScope scope(at);
  if (!variable.defined() || !value.defined()) fail_null_tensor();
  Node& old = *variable.node();
  uint8_t bits = watch_bits(old);
  if (bits & kLeaf) {
    if (on_device(type_of(value), variable.device()) != type_of(variable))
      fail(Fault::type, "rebind: a tensor with requires_grad must keep its type {}, given {}",
           *type_of(variable), *type_of(value));
    if (is_older_than_trace(old)) fail_outside(variable, "a new value is given to a tensor");
    // Data may be shared with another tensor, and a value on a path to leaves stays on it.
    NoGrad off;
    if (!value.node()->op || watch_bits(*value.node())) value = emit(ops::copy, {value});
    Tensor gradient = exchange_gradient(old, {});  // goes where the value is
    value = as_variable(value, gradient.defined() ? gradient.to(value.device()) : gradient,
                        bits & kKept);
    mark_replaced(old);
    if (Trace* trace = Trace::tracing()) trace->leaves.push_back(value);
  }
  variable = std::move(value);
}

// Going back -----------------------------------------------------------------------------------

namespace {

Tensor cotangent_of(const Tensor& loss, const Tensor& given) {
  if (given.defined()) return flat::fitting(given, loss, "gradient", {"backward"}, "the loss");
  if (!is_float(loss.dtype()))
    fail(Fault::type, Hint{"take a real number of it, such as abs"},
         "backward: the loss must be a real floating number, not {}", *type_of(loss));
  if (!decide_equal(loss.shape().elements(), 1))
    fail(Hint{"reduce it with sum or mean, or give a gradient of its type: x.backward(gradient)",
              "reduce it with sum or mean, or give a cotangent: tn::backward(x, cotangent)"},
         "backward: the loss must have one element, not {}", *type_of(loss));
  Tensor one = make_scalar(1.0, loss.dtype(), false);
  Tensor ones = loss.rank() == 0 ? one : tn::broadcast_to(one, loss.shape());
  if (Trace::current() || loss.is_evaluated()) return ones;
  // A pending loss keeps the last activations alive. This `where`, which simplification removes,
  // makes the loss part of the same evaluation as the gradients.
  return tn::where(tn::isnan(loss), ones, ones);
}

[[noreturn]] void fail_without_leaf(const Tensor& loss) {
  Hint hint = is_grad_enabled()
                  ? Hint{"set x.requires_grad = True before computing from x",
                         "call tn::require_grad(x) before computing from x"}
                  : Hint{"compute the loss, and call backward(), outside of no_grad()",
                         "compute the loss, and call backward(), outside of a tn::NoGrad"};
  fail(hint, "backward: no tensor that requires a gradient leads to this {}", *type_of(loss));
}

/// Reports why the walk stopped at `end`.
[[noreturn]] void fail_blocked(const Tensor& end) {
  const Node& node = *end.node();
  uint8_t bits = watch_bits(node);
  std::string place = to_text(node.loc), at = place.empty() ? "" : " at " + place;
  if (bits & kReplaced)
    fail(Hint{"compute the loss again after optimizer.step()"},
         "backward: {}, which the loss depends on, was assigned a new value", *type_of(end));
  if (bits & kSpent)
    fail(Hint{"detach() values of an earlier step; for two losses of one graph, call"
              " loss.backward(retain_graph=True) first",
              "use stop_gradient of values of an earlier step; for two losses of one graph, call"
              " tn::backward(loss, {}, /*retain_graph=*/true) first"},
         "backward: the graph of the {}{} was released by an earlier backward()", node.op->name,
         at);
  if (!node.op)
    fail(
        Hint{"give the parameters to an optimizer, or call requires_grad_() on them, before the "
             "compiled part is called; call the function itself instead of an executable; detach() "
             "the result where no gradients are wanted",
             "give the parameters to an optimizer, or call tn::require_grad on them, before the "
             "compiled part is called; call the function itself instead of an executable; use "
             "tn::stop_gradient of the result where no gradients are wanted"},
        "backward: {}, which the loss depends on, was computed by an executable, or by a compiled "
        "part whose parameters do not require gradients",
        *type_of(end));
  if (node.op == &param_leaf) fail_outside(end, "backward() leads to an argument", kArgument);
  fail(
      Hint{"give the parameters to an optimizer, or call requires_grad_() on them, so that ops are "
           "kept when they are computed",
           "give the parameters to an optimizer, or call tn::require_grad on them, so that ops are "
           "kept when they are computed"},
      "backward: the {}{} was evaluated before backward(), and its operands were released",
      node.op->name, at);
}

/// Other threads may add to it at the same time.
void add_gradient(Node& leaf, Tensor term) {
  while (offer_gradient(leaf, term).defined())
    if (Tensor before = exchange_gradient(leaf, {}); before.defined()) term = tn::add(before, term);
}

/// Evaluates the sums of gradients: while pending, they keep the operands of all terms alive, so
/// that micro-batches would need the memory of the whole batch.
void settle(const Tensors& leaves) {
  if (Trace::current()) return;
  Tensors sums;
  for (const Tensor& leaf : leaves)
    if (Tensor sum = gradient_at(*leaf.node()); sum.defined()) sums.push_back(std::move(sum));
  eval(sums);
}

/// The graph is not needed again: computed nodes release their operands now, pending nodes when
/// they are computed.
void let_go(const Tape& tape) {
  std::vector<Node*> dead;
  {
    std::lock_guard lock(walk_mutex());
    for (const Tape::Entry& e : tape.entries) {
      Node& node = e.node();
      clear_watch_bits(node, kKept);
      set_watch_bits(node, kSpent);
      if (!node.taped && !node.is_pending()) take_inputs(node, dead);
    }
  }
  for (Node* node : dead) release(node);
}

}  // namespace

void backward(const Tensor& loss, const Tensor& cotangent, bool retain_graph,
              std::source_location at) {
  LocScope scope(at);
  if (!loss.defined()) fail_null_tensor();
  if (!(watch_bits(*loss.node()) & kOnPath)) fail_without_leaf(loss);
  forget_lost_gradients();
  NoGrad off;
  Tensor ct = cotangent_of(loss, cotangent);
  WatchedTape back = tape_to_leaves(loss);
  if (back.blocked.defined()) fail_blocked(back.blocked);
  if (back.leaves.empty()) fail_without_leaf(loss);
  auto is_outside = [](const Tape::Entry& e) { return is_older_than_trace(e.node()); };
  for (const Tensor& leaf : back.leaves)
    if (is_older_than_trace(*leaf.node()))
      fail_outside(
          leaf, "backward() leads to a tensor",
          std::ranges::any_of(back.tape.entries, is_outside) ? kComputedOutside : kNameHolder);
  Tensors gradients = sweep_back(back.tape, back.leaves, {ct});
  bool adds = false;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    adds |= gradient_at(*back.leaves[i].node()).defined();
    add_gradient(*back.leaves[i].node(), std::move(gradients[i]));
  }
  if (!retain_graph) let_go(back.tape);
  if (adds) settle(back.leaves);
  if (Trace* trace = Trace::tracing())
    trace->leaves.insert(trace->leaves.end(), back.leaves.begin(), back.leaves.end());
}

void Tensor::backward(Place at) const { tn::backward(*this, {}, false, at); }

}  // namespace tn
