#include "sharding/inner_graph.h"

#include "ir/rewrite.h"
#include "ops/call.h"
#include "ops/control_flow.h"
#include "ops/op_decls.h"

namespace tn::sharding {

namespace {

template <class A>
const A& attrs_of(const GraphOp& op) {
  return *static_cast<const A*>(op.attr_data());
}

/// Appends the ops of `from` and returns where its values are.
std::vector<Val> append(Graph& to, const Graph& from) {
  GraphCopy copy{from, to};
  if (to.ops.empty() && to.types.empty())
    copy.inputs();
  else
    for (Val v = 0; v < from.inputs(); ++v) copy[v] = v;
  for (const GraphOp& op : from.ops) copy.op(op);
  return std::move(copy.value);
}

Val at(const std::vector<Val>& values, Val v) { return values[static_cast<size_t>(v)]; }

InnerSlot slot_at(Val v, int steps = 0) { return {{v}, steps}; }

InnerGraph inside_call(const GraphOp& op, InnerGraph inner) {
  for (int k = 0; k < op.ins; ++k) {
    bool is_rule = k >= inner.graph.inputs();  // the number of the rules of a custom function
    inner.slots.push_back(is_rule ? InnerSlot() : slot_at(k));
  }
  for (Val v : attrs_of<ops::CallAttrs>(op).graph->outputs)
    inner.slots.push_back(slot_at(at(inner.values_of[0], v)));
  return inner;
}

InnerGraph inside_cond(const GraphOp& op, InnerGraph inner) {
  const auto& a = attrs_of<ops::CondAttrs>(op);
  inner.slots.emplace_back();  // the predicate
  for (int k = 1; k < op.ins; ++k) inner.slots.push_back(slot_at(k - 1));
  for (size_t k = 0; k < static_cast<size_t>(op.outs); ++k) {
    Val then = at(inner.values_of[0], a.then->outputs[k]);
    Val otherwise = at(inner.values_of[1], a.otherwise->outputs[k]);
    inner.alike.push_back({then, otherwise});
    inner.slots.push_back({{then, otherwise}});
  }
  return inner;
}

InnerGraph inside_while(const GraphOp& op, InnerGraph inner) {
  for (int k = 0; k < op.ins; ++k) inner.slots.push_back(slot_at(k));
  for (int k = 0; k < op.outs; ++k) {
    Val next =
        at(inner.values_of[1], attrs_of<ops::WhileAttrs>(op).body->outputs[static_cast<size_t>(k)]);
    inner.alike.push_back({k, next});
    inner.slots.push_back(slot_at(next));
  }
  return inner;
}

InnerGraph inside_scan(const GraphOp& op, InnerGraph inner) {
  const auto& a = attrs_of<ops::ScanAttrs>(op);
  for (int k = 0; k < op.ins; ++k)
    inner.slots.push_back(slot_at(k, k >= a.carries && k < a.carries + a.xs));
  for (int k = 0; k < op.outs; ++k) {
    Val made = at(inner.values_of[0], a.body->outputs[static_cast<size_t>(k)]);
    if (k < a.carries) inner.alike.push_back({k, made});
    inner.slots.push_back(slot_at(made, k >= a.carries));
  }
  return inner;
}

InnerGraph inside_composite(const Graph& graph, const GraphOp& op) {
  InnerGraph inner;
  inner.graph = body_graph(*op.op, op.attr_data(), graph.in_types(op));
  for (int k = 0; k < op.ins; ++k) inner.slots.push_back(slot_at(k));
  for (Val v : inner.graph.outputs) inner.slots.push_back(slot_at(v));
  return inner;
}

struct InsideRule {
  const OpDef* op;
  InnerGraph (*inside)(const GraphOp& op, InnerGraph inner);
};
constexpr InsideRule kControlFlow[] = {{&ops::call, inside_call},
                                       {&ops::cond, inside_cond},
                                       {&ops::while_loop, inside_while},
                                       {&ops::scan, inside_scan}};

}  // namespace

std::vector<std::vector<Val>> InnerGraph::neighbours() const {
  std::vector<std::vector<Val>> list(graph.types.size());
  for (auto [a, b] : alike) {
    list[static_cast<size_t>(a)].push_back(b);
    list[static_cast<size_t>(b)].push_back(a);
  }
  return list;
}

std::optional<InnerGraph> inner_graph(const Graph& graph, const GraphOp& op) {
  auto rule = std::ranges::find(kControlFlow, op.op, &InsideRule::op);
  if (rule == std::end(kControlFlow))
    return op.op->rules->body ? std::optional(inside_composite(graph, op)) : std::nullopt;
  InnerGraph inner;
  for (GraphRef one : bodies_of(op)) inner.values_of.push_back(append(inner.graph, *one));
  return rule->inside(op, std::move(inner));
}

}  // namespace tn::sharding
