// f(c…) = the value of f(c…), computed now, for known c…
//
// Known are numbers, inputs given with their values, and what follows from them without an effect.
// A value is computed when that saves work: numbers always, arrays when there is data or more than
// elementwise work behind them. Views, and masks and ramps made from numbers alone, cost next to
// nothing where they are used and stay; but weights in another order are put in it for kernels
// that would do so at every run. What is larger than its operands by more than 1 MiB stays, with a
// recorded refusal. Nothing larger than all that is given and 1 MiB is computed on the way, and no
// loop, which may take any time: compiling a small graph stays cheap, even of untrusted text.
#include <cmath>

#include "ir/body.h"
#include "ir/element.h"
#include "ir/rewrite.h"
#include "ops/collectives.h"
#include "ops/op_decls.h"
#include "passes/passes.h"
#include "plan/library.h"

namespace tn {

namespace {

constexpr int64_t kMostGrowth = 1 << 20;  // in bytes

bool is_constant(TypeRef type) { return type->elements >= 0; }

/// Whether attributes depend on sizes that are not known.
bool has_symbols(const Attrs* attrs) {
  if (!attrs) return false;
  auto symbolic = [](auto size) { return !size.is_const(); };
  for (const Field& f : list_fields(*attrs->kind, const_cast<char*>(attrs->data)).items) {
    bool found = false;
    if (f.set && !*f.set) continue;
    if (f.kind == FieldKind::size) found = symbolic(*static_cast<Dim*>(f.at));
    if (f.kind == FieldKind::shape)
      found = std::ranges::any_of(*static_cast<Shape*>(f.at), symbolic);
    if (f.kind == FieldKind::offsets)
      found = std::ranges::any_of(*static_cast<Offsets*>(f.at), symbolic);
    if (f.kind == FieldKind::graph)
      found = !std::ranges::all_of((*static_cast<GraphRef*>(f.at))->types, is_constant);
    if (found) return true;
  }
  return false;
}

class Folder {
 public:
  Folder(const Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        is_known_(graph.types.size()),
        has_work_(graph.types.size()),
        is_wanted_(graph.types.size()),
        is_for_kernel_(graph.types.size()) {}

  Graph run() {
    find_known();
    find_wanted();
    if (folded_.empty()) return graph_;
    std::vector<Bound> values = context_.evaluate(known_part(), context_.constants);
    return with_values(values);
  }

 private:
  using Marks = std::vector<bool>;
  TypeRef type(Val v) const { return graph_.types[static_cast<size_t>(v)]; }
  static std::vector<bool>::reference at(Marks& marks, Val v) {
    return marks[static_cast<size_t>(v)];
  }
  void mark(Marks& marks, const GraphOp& op) { std::fill_n(marks.begin() + op.out, op.outs, true); }
  bool all_in(Marks& marks, const GraphOp& op) {
    return std::ranges::all_of(graph_.in(op), [&](Val v) { return at(marks, v); });
  }
  bool any_in(Marks& marks, const GraphOp& op) {
    return std::ranges::any_of(graph_.in(op), [&](Val v) { return at(marks, v); });
  }

  void find_known() {
    int64_t most = kMostGrowth;
    for (Val v = context_.first_constant(graph_); v < graph_.inputs(); ++v) {
      at(is_known_, v) = at(has_work_, v) = true;
      most += type(v)->bytes();
    }
    for (const GraphOp& op : graph_.ops) {
      bool varies = ops::needs_workers(*op.op);  // or its result does, by worker
      if (!all_in(is_known_, op) || has_effects(op) || !has_sizes(op) || varies) continue;
      if (op.op == &ops::while_loop || op.op == &ops::scan) continue;
      auto is_large = [&](TypeRef t) { return t->bytes() > most; };
      if (std::ranges::any_of(graph_.out_types(op), is_large)) {
        if (!op.op->view && any_in(has_work_, op)) refuse(op);
        continue;
      }
      mark(is_known_, op);
      bool is_free = op.ins == 0 || op.op->is_elementwise() || op.op->view;
      if (!is_free || any_in(has_work_, op)) mark(has_work_, op);
    }
  }

  bool has_sizes(const GraphOp& op) const {
    return std::ranges::all_of(graph_.out_types(op), is_constant) && !has_symbols(op.attrs);
  }

  /// From what cannot be folded back to its known operands.
  void find_wanted() {
    for (Val v : graph_.outputs) at(is_wanted_, v) = true;
    for (size_t i = graph_.ops.size(); i-- > 0;) {
      const GraphOp& op = graph_.ops[i];
      bool known = at(is_known_, op.out);
      if (known && !is_needed(op, is_wanted_)) continue;
      if (known && is_folded(op))
        folded_.push_back(static_cast<int>(i));
      else
        want_operands(op);
    }
    std::ranges::reverse(folded_);
  }

  void want_operands(const GraphOp& op) {
    bool is_nest =
        op.op->rules->lower && !library_kernel(*op.op, graph_.in_types(op), context_.target);
    bool is_kernel = op.op->family == Family::general && !is_nest && op.op != &ops::dot;
    for (Val v : graph_.in(op)) {
      at(is_wanted_, v) = true;
      if (is_kernel) at(is_for_kernel_, v) = true;
    }
  }

  /// Whether elements are read out of order by a kernel that wants them in order. Products take
  /// them either way (canon_dot.cpp).
  bool is_moved_for_kernel(const GraphOp& op) {
    return op.op != &ops::reshape && op.op != &ops::broadcast_to && at(is_for_kernel_, op.out);
  }

  bool is_folded(const GraphOp& op) {
    if (op.ins == 0 || (op.op->view && !is_moved_for_kernel(op))) return false;
    if (type(op.out)->rank() > 0 && !at(has_work_, op.out)) return false;
    if (growth_of(op) <= kMostGrowth) return true;
    refuse(op);
    return false;
  }

  /// Bytes of the results beyond those of the operands.
  int64_t growth_of(const GraphOp& op) const {
    int64_t growth = 0;
    for (TypeRef t : graph_.out_types(op)) growth += t->bytes();
    for (Val v : graph_.in(op)) growth -= type(v)->bytes();
    return growth;
  }

  void refuse(const GraphOp& op) {
    context_.decide(
        "fold", false, op.loc,
        [&] { return format("{} of known values not computed ahead", op.op->name); },
        format("{} is {} bytes larger than its operands", *type(op.out), growth_of(op)));
  }

  Graph known_part() {
    Graph part;
    GraphCopy copy{graph_, part};
    for (Val v = context_.first_constant(graph_); v < graph_.inputs(); ++v)
      copy[v] = part.add_input(graph_.input_names[static_cast<size_t>(v)], type(v));
    for (const GraphOp& op : graph_.ops)
      if (at(is_known_, op.out)) copy.op(op);
    for (int i : folded_) {
      const GraphOp& op = graph_.ops[static_cast<size_t>(i)];
      for (int k = 0; k < op.outs; ++k) part.outputs.push_back(copy[op.out + k]);
    }
    return prune(part);
  }

  /// The value as a number, if it is one; NaN has more bits than a number tells.
  static std::optional<Scalar> number(TypeRef type, const Bound& value) {
    if (type->rank() > 0) return {};
    Scalar s = element_at(type->dtype, HostView(value).data());
    if (std::isnan(s.real) || std::isnan(s.imag)) return {};
    return s;
  }

  static std::string new_name(const Graph& graph) {
    int number = graph.inputs();
    while (std::ranges::count(graph.input_names, format("c{}", number))) ++number;
    return format("c{}", number);
  }

  Graph with_values(const std::vector<Bound>& values) {
    Graph out;
    GraphCopy copy{graph_, out};
    copy.inputs();
    std::vector<std::pair<Val, Scalar>> numbers;
    size_t next = 0;
    for (int i : folded_) {
      const GraphOp& op = graph_.ops[static_cast<size_t>(i)];
      for (Val v = op.out; v < op.out + op.outs; ++v) {
        const Bound& value = values[next++];
        if (std::optional<Scalar> s = number(type(v), value)) {
          numbers.emplace_back(v, *s);
          continue;
        }
        copy[v] = out.add_input(new_name(out), type(v));
        context_.constants.push_back(value);
      }
    }
    for (auto& [v, s] : numbers) copy[v] = out.add_constant(s, type(v));
    for (const GraphOp& op : graph_.ops)
      if (copy[op.out] == kNoVal) copy.op(op);
    out.outputs = copy.all(graph_.outputs);
    return out;
  }

  const Graph& graph_;
  PassContext& context_;
  Marks is_known_, has_work_, is_wanted_, is_for_kernel_;
  std::vector<int> folded_;
};

}  // namespace

Graph fold_constants(const Graph& graph, PassContext& context) {
  return context.evaluate ? Folder(graph, context).run() : graph;
}

}  // namespace tn
