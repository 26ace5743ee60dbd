// What a graph goes through before it is written in Python.
#include "backend/source/python_function.h"
#include "base/error.h"
#include "ir/rewrite.h"

namespace tn::source {
namespace {

/// Asks an op whether it has a form, without writing it.
class Probe final : public PythonCall {
 public:
  Probe(std::string_view to, const Graph& graph, const GraphOp& op) : in_(graph.in_types(op)) {
    target = to, called = op.op, in = in_, out = graph.out_types(op);
  }
  std::string fill(std::string_view text) override { return std::string(text); }
  std::string size(Dim) override { return "n"; }
  std::string size(Offset) override { return "n"; }

 private:
  std::vector<TypeRef> in_;
};

bool has_form(std::string_view target, const Graph& graph, const GraphOp& op) {
  const PythonSpelling* spelling = python_spelling(*op.op);
  if (!spelling) return false;
  Probe probe(target, graph, op);
  return !spelling->write(op.attr_data(), probe).empty();
}

Graph expanded(const Graph& graph, std::string_view target) {
  return replace_ops(graph, [&](const GraphOp& op) -> std::optional<Graph> {
    if (!op.op->rules->body || has_form(target, graph, op)) return {};
    return expanded(body_graph(*op.op, op.attr_data(), graph.in_types(op)), target);
  });
}

/// Where the other operands have the shape of the result, a broadcast follows.
void leave_out_broadcasts(Graph& graph) {
  std::vector<Val> from(graph.types.size(), kNoVal);
  for (const GraphOp& op : graph.ops) {
    if (op.op->view && op.op->family == Family::movement) {
      Val x = graph.in(op)[0];
      bool plain = op.op->view(op.attr_data(), *graph.types[static_cast<size_t>(x)]).kind ==
                   View::Kind::broadcast;
      if (plain) from[static_cast<size_t>(op.out)] = x;
    }
    if (!op.op->is_elementwise()) continue;
    auto type = [&](Val v) { return graph.types[static_cast<size_t>(v)]; };
    std::span<Val> in(graph.operands.data() + op.in, static_cast<size_t>(op.ins));
    for (Val& v : in) {
      Val source = from[static_cast<size_t>(v)];
      if (source == kNoVal) continue;
      Val before = std::exchange(v, source);
      Shape shape;
      for (Val x : in) shape = broadcast(shape, type(x)->shape, "broadcast");
      if (!identical(shape, type(op.out)->shape)) v = before;
    }
  }
}

/// Numbers are repeated as they are, whatever views they went through.
void repeat_numbers(Graph& graph) {
  std::vector<Val> number(graph.types.size(), kNoVal);
  for (const GraphOp& op : graph.ops) {
    if (op.op == &scalar_leaf) number[static_cast<size_t>(op.out)] = op.out;
    if (op.op->family != Family::movement) continue;
    Val& x = graph.operands[static_cast<size_t>(op.in)];
    Val of = number[static_cast<size_t>(x)];
    if (of == kNoVal) continue;
    View view = op.op->view(op.attr_data(), *graph.types[static_cast<size_t>(x)]);
    if (view.kind == View::Kind::broadcast) x = of;
    if (graph.types[static_cast<size_t>(op.out)]->elements == 1)
      number[static_cast<size_t>(op.out)] = of;
  }
}

}  // namespace

Graph for_python(const Graph& graph, std::string_view target) {
  Graph made = expanded(graph, target);
  repeat_numbers(made);
  leave_out_broadcasts(made);
  return prune(made);
}

}  // namespace tn::source
