#include "ir/graph.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "ir/interned.h"
#include "ir/precision.h"
#include "ir/rewrite.h"
#include "ir/walk.h"
#include "ir/written.h"

namespace tn {

std::vector<TypeRef> Graph::in_types(const GraphOp& op) const {
  std::vector<TypeRef> list;
  list.reserve(static_cast<size_t>(op.ins));
  for (Val v : in(op)) list.push_back(types[static_cast<size_t>(v)]);
  return list;
}

Val Graph::add_input(std::string input_name, TypeRef type) {
  invariant(ops.empty(), "graph {}: inputs come before ops", name);
  input_names.push_back(std::move(input_name));
  types.push_back(type);
  hand_out(type);
  return values() - 1;
}

Val Graph::add(const OpDef& op, const Attrs* attrs, std::span<const Val> in, Types out, Loc loc) {
  GraphOp added{&op,
                attrs,
                {},
                loc,
                static_cast<int32_t>(operands.size()),
                static_cast<int32_t>(in.size()),
                values(),
                static_cast<int32_t>(out.size())};
  hand_out(attrs);
  for (TypeRef type : out) hand_out(type);  // before they move: `out` may be a part of `types`
  operands.insert(operands.end(), in.begin(), in.end());
  types.insert(types.end(), out.begin(), out.end());
  ops.push_back(added);
  return added.out;
}

Val Graph::add_constant(const Scalar& value, TypeRef type, Loc loc) {
  Val v = add(scalar_leaf, nullptr, {}, {&type, 1}, loc);
  ops.back().scalar = value;
  return v;
}

namespace {

/// The graph of recorded nodes while it is made.
class GraphMaker {
 public:
  Captured made;

  explicit GraphMaker(size_t nodes) { values_.reserve(nodes); }

  void add_input(const Slot& slot) {
    Graph& graph = made.graph;
    values_[&slot] = graph.add_input(format("x{}", graph.inputs()), slot.type);
  }
  void add_leaf(Node& node) {
    for (uint32_t i = 0; i < node.outs; ++i) {
      add_input(node.slots()[i]);
      retain(&node);
      made.leaves.emplace_back(&node, i);
    }
  }
  void add_number(Node& node) {
    values_[&node.slots()[0]] =
        made.graph.add_constant(scalar_value(node), node.slots()[0].type, node.loc);
  }
  void add_op(Node& node) {
    std::vector<Val> in;
    for (int k = 0; k < node.ins; ++k) in.push_back(value(node.inputs()[k]));
    std::vector<TypeRef> types;
    for (int i = 0; i < node.outs; ++i) types.push_back(node.slots()[i].type);
    Val first = made.graph.add(*node.op, node.attrs, in, types, node.loc);
    for (int i = 0; i < node.outs; ++i) values_[&node.slots()[i]] = first + i;
  }
  bool has(Node& node) const { return values_.contains(&node.slots()[0]); }
  /// What is not there yet is a number.
  Val value(const Edge& edge) {
    const Slot* slot = &edge.node->slots()[edge.index];
    auto found = values_.find(slot);
    if (found != values_.end()) return found->second;
    add_number(*edge.node);
    return values_.at(slot);
  }

 private:
  std::unordered_map<const Slot*, Val> values_;
};

}  // namespace

Captured graph_of(const Recorded& recorded) {
  GraphMaker maker(recorded.params.size() + recorded.leaves.size() + recorded.numbers.size() +
                   recorded.ops.size());
  for (const Tensor& p : recorded.params) maker.add_input(slot_of(p));
  for (Node* leaf : recorded.leaves)
    if (!maker.has(*leaf)) maker.add_leaf(*leaf);
  for (Node* number : recorded.numbers) maker.add_number(*number);
  for (Node* op : recorded.ops) maker.add_op(*op);
  for (const Edge& e : recorded.outputs) maker.made.graph.outputs.push_back(maker.value(e));
  return std::move(maker.made);
}

Captured capture(std::span<const Tensor> params, std::span<const Tensor> outputs) {
  std::lock_guard lock(walk_mutex());
  Walk found;
  walk(outputs, found);
  std::vector<Edge> edges;
  for (const Tensor& t : outputs) edges.push_back({t.node(), t.index()});
  return capture(found, params, edges);
}

Captured capture(const Walk& found, std::span<const Tensor> params, std::span<const Edge> outputs) {
  Recorded recorded{params, {}, {}, found.nodes, {outputs.begin(), outputs.end()}};
  for (Node* leaf : found.leaves)
    (is_scalar(*leaf) ? recorded.numbers : recorded.leaves).push_back(leaf);
  return graph_of(recorded);
}

Tensors replay(const Graph& graph, std::span<const Tensor> args) {
  invariant(static_cast<int>(args.size()) == graph.inputs(),
            "replay of {}: {} inputs given, {} wanted", graph.name, args.size(), graph.inputs());
  Tensors values(args.begin(), args.end());
  for (size_t i = 0; i < values.size(); ++i)  // single values of the host travel
    if (values[i].defined()) values[i] = values[i].to(graph.types[i]->device);
  for (const GraphOp& op : graph.ops) {
    if (op.op == &scalar_leaf) {
      values.push_back(
          make_scalar(op.scalar, graph.types[static_cast<size_t>(op.out)]->dtype, false));
      continue;
    }
    Tensors in;
    for (Val v : graph.in(op)) in.push_back(values[static_cast<size_t>(v)]);
    DeviceScope made_at(graph.types[static_cast<size_t>(op.out)]->device);
    for (Tensor& t : emit_all(*op.op, in, op.attr_data())) values.push_back(std::move(t));
  }
  Tensors out;
  for (Val v : graph.outputs) out.push_back(values[static_cast<size_t>(v)]);
  return out;
}

void verify(const Graph& graph, std::string_view stage) {
  Val next = graph.inputs();
  for (const GraphOp& op : graph.ops) {
    invariant(op.out == next, "{}: {}: results are not numbered in order", stage, op.op->name);
    for (Val v : graph.in(op))
      invariant(v >= 0 && v < op.out, "{}: {}: operand %{} is not defined before", stage,
                op.op->name, v);
    next += op.outs;
    if (op.op == &scalar_leaf) continue;
    Types given = graph.out_types(op);
    std::span<const TypeRef> types =
        infer_types(*op.op, op.attrs, graph.in_types(op), {given[0]->device});
    invariant(std::equal(types.begin(), types.end(), given.begin(), given.end()),
              "{}: {}: inferred {} but the graph says {}", stage, op.op->name, *types[0],
              *given[0]);
  }
  for (Val v : graph.outputs)
    invariant(v >= 0 && v < next, "{}: output %{} is not defined", stage, v);
}

/// Appends `body` to `out`, its inputs standing for `args`; returns its outputs.
static std::vector<Val> append(Graph& out, const Graph& body, std::span<const Val> args, Loc loc) {
  GraphCopy copy{body, out};
  std::copy_n(args.begin(), body.inputs(), copy.value.begin());
  for (const GraphOp& op : body.ops) copy.op(op, op.loc ? op.loc : loc);
  return copy.all(body.outputs);
}

Graph replace_ops(const Graph& graph, FunctionRef<std::optional<Graph>(const GraphOp&)> body) {
  Graph out;
  GraphCopy copy{graph, out};
  copy.inputs();
  for (const GraphOp& op : graph.ops) {
    std::optional<Graph> by = body(op);
    if (!by) {
      copy.op(op);
      continue;
    }
    Loc loc = op.op->surface ? within(op.loc, op.op->name) : op.loc;
    std::vector<Val> made = append(out, *by, copy.in(op), loc);
    std::copy(made.begin(), made.end(), copy.value.begin() + op.out);
  }
  out.outputs = copy.all(graph.outputs);
  return prune(out);
}

Graph body_graph(const OpDef& op, const void* attrs, Types in) {
  AsGiven types;
  Tensors params;
  for (TypeRef type : in) params.push_back(make_param(type));
  Tensors args = params;
  args.resize(
      std::max(args.size(), static_cast<size_t>(op.args.size())));  // absent optional operands
  DeviceScope inside(device_of(params));
  Captured body = capture(params, op.rules->body(attrs, args));
  invariant(body.leaves.empty(), "{}: its body uses data that is not an operand", op.name);
  for (GraphOp& made : body.graph.ops) made.loc = {};  // it is the composite that users wrote
  return std::move(body.graph);
}

bool is_needed(const GraphOp& op, const std::vector<bool>& needed) {
  auto first = needed.begin() + op.out;
  return std::find(first, first + op.outs, true) != first + op.outs;
}

std::vector<bool> needed_values(const Graph& graph) {
  std::vector<bool> needed(graph.types.size());
  for (Val v : graph.outputs) needed[static_cast<size_t>(v)] = true;
  for (auto op = graph.ops.rbegin(); op != graph.ops.rend(); ++op) {
    if (!is_needed(*op, needed)) continue;
    for (Val v : graph.in(*op)) needed[static_cast<size_t>(v)] = true;
  }
  return needed;
}

Graph prune(const Graph& graph) {
  std::vector<bool> needed = needed_values(graph);
  Graph out;
  GraphCopy copy{graph, out};
  copy.inputs();
  for (const GraphOp& op : graph.ops)  // constants are counted, and cost nothing
    if (op.op == &scalar_leaf || is_needed(op, needed)) copy.op(op);
  out.outputs = copy.all(graph.outputs);
  return out;
}

Graph expand_composites(const Graph& graph) {
  bool any = false;
  for (const GraphOp& op : graph.ops) any |= op.op->rules->body != nullptr;
  if (!any) return graph;
  return replace_ops(graph, [&](const GraphOp& op) -> std::optional<Graph> {
    if (!op.op->rules->body) return {};
    return expand_composites(body_graph(*op.op, op.attr_data(), graph.in_types(op)));
  });
}

}  // namespace tn
