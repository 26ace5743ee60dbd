#include "compiler/op_cost.h"

#include <algorithm>
#include <map>

#include "compiler/fusion.h"
#include "loop/builder.h"
#include "ops/conv_attrs.h"
#include "ops/op_decls.h"
#include "plan/library.h"

namespace tn {

int64_t elements_at(TypeRef type, std::span<const Binding> sizes) {
  return type->elements >= 0 ? type->elements : evaluate(type->shape.elements(), sizes);
}

int scalar_cost(const OpDef& op, const void* attrs, DType type) {
  thread_local std::map<std::pair<const OpDef*, DType>, int> known;
  auto [at, added] = known.try_emplace({&op, type}, 0);
  if (!added) return at->second;
  loop::Builder b("cost");
  std::vector<loop::S> in;
  for (int i = 0; i < op.args.size(); ++i) {
    bool condition = i == 0 && op.operands == Operands::select;
    in.push_back(b.argument(b.add_argument(), condition ? DType::b1 : type));
  }
  op.rules->scalar(attrs, in.data());
  return at->second = cost_of(b.kernel());
}

int cost_of(const loop::Kernel& kernel) {
  int cost = 0;
  for (const loop::Value& v : kernel.values) {
    bool leaf = v.op == loop::Op::argument || v.op == loop::Op::constant;
    cost += leaf ? 0 : facts(v.op).math ? kMathCost : 1;
  }
  return cost;
}

namespace {

constexpr size_t kMostLeaves = 4;
constexpr int kMostCost = 1 << 20;  // x + x, repeated, costs twice as much each time
constexpr int kSmall = 4;           // a tensor this many times smaller than another hardly counts

/// Scalar operations per element.
int elementwise_cost(const Graph& graph, const GraphOp& op) {
  auto type = [&](Val v) { return graph.types[static_cast<size_t>(v)]; };
  DType dtype = type(graph.in(op).back())->dtype;
  bool real = op.op->rules->scalar && !is_complex(dtype) && !is_complex(type(op.out)->dtype);
  return real ? scalar_cost(*op.op, op.attr_data(), info(dtype).compute) : 8;
}

class ConeFinder {
 public:
  ConeFinder(const Graph& graph, const std::vector<int>& producer, std::span<const Binding> sizes)
      : graph_(graph), producer_(producer), sizes_(sizes), cones_(graph.ops.size()) {}

  std::vector<Cone> run() {
    for (size_t i = 0; i < graph_.ops.size(); ++i)
      if (graph_.ops[i].op->is_elementwise()) find(graph_.ops[i], cones_[i]);
    return std::move(cones_);
  }

 private:
  TypeRef type(Val v) const { return graph_.types[static_cast<size_t>(v)]; }
  int64_t elements(Val v) const { return elements_at(type(v), sizes_); }

  void find(const GraphOp& op, Cone& cone) {
    cone.cost = elementwise_cost(graph_, op);
    for (Val v : graph_.in(op)) add_operand(v, elements(op.out), cone);
  }

  void add_operand(Val v, int64_t whole, Cone& cone) {
    while (producer_[static_cast<size_t>(v)] >= 0) {
      const GraphOp& made_by = graph_.ops[static_cast<size_t>(producer_[static_cast<size_t>(v)])];
      if (!made_by.op->view) break;
      v = graph_.in(made_by)[0];
    }
    if (elements(v) * kSmall <= whole) return;
    int made_by = producer_[static_cast<size_t>(v)];
    const Cone* below = made_by < 0 ? nullptr : &cones_[static_cast<size_t>(made_by)];
    if (made_by >= 0 && graph_.ops[static_cast<size_t>(made_by)].op->is_elementwise() &&
        below->leaves.size() < kMostLeaves) {
      cone.cost = std::min(cone.cost + below->cost, kMostCost);
      for (Val leaf : below->leaves) add_leaf(leaf, cone);
    } else {
      add_leaf(v, cone);
    }
  }

  static void add_leaf(Val v, Cone& cone) {
    if (std::ranges::count(cone.leaves, v) == 0 && cone.leaves.size() < kMostLeaves)
      cone.leaves.push_back(v);
  }

  const Graph& graph_;
  const std::vector<int>& producer_;
  std::span<const Binding> sizes_;
  std::vector<Cone> cones_;
};

/// Of a product, a convolution or attention: every element of the result sums up so many.
int64_t summed(const Graph& graph, const GraphOp& op, const TiledForm& form,
               std::span<const Binding> sizes) {
  std::vector<TypeRef> in = graph.in_types(op);
  TileDomain domain = form.domain(op.attr_data(), in, graph.out_types(op));
  Dim columns = domain.batch * domain.columns;
  if (op.op == &ops::conv) {
    bool last = static_cast<const ops::ConvAttrs*>(op.attr_data())->channels_last;
    columns = last ? domain.columns : domain.rows;
  }
  return elements_at(in[1], sizes) / std::max<int64_t>(1, evaluate(columns, sizes));
}

}  // namespace

OpWork work_of(const Graph& graph, const GraphOp& op, std::span<const Binding> sizes,
               const Target& target) {
  if (op.op->view || op.op == &scalar_leaf) return {};
  const TargetCosts& costs = costs_of(target);
  std::vector<TypeRef> in = graph.in_types(op);
  auto made = static_cast<double>(elements_at(graph.types[static_cast<size_t>(op.out)], sizes));
  if (const TiledForm* form = tiled_form(*op.op, in, target)) {
    double work = made * static_cast<double>(summed(graph, op, *form, sizes));
    return {work / costs.multiply_adds_per_ns, work};
  }
  if (has_loop_form(graph, op, target)) {
    bool folds = !op.op->is_elementwise();
    double points = folds ? static_cast<double>(elements_at(in[0], sizes)) : made;
    return {points * (folds ? 1 : elementwise_cost(graph, op)) / costs.scalars_per_ns};
  }
  if (int cost = pointwise_nest_cost(graph, op); cost >= 0)
    return {made * cost / costs.scalars_per_ns};
  double bytes = 0;
  auto add = [&](TypeRef t) {
    bytes += static_cast<double>(elements_at(t, sizes) * size_of(t->dtype));
  };
  for (TypeRef t : in) add(t);
  for (TypeRef t : graph.out_types(op)) add(t);
  return {bytes / costs.library_bytes_per_ns};
}

std::vector<Cone> find_cones(const Graph& graph, const std::vector<int>& producer,
                             std::span<const Binding> sizes) {
  return ConeFinder(graph, producer, sizes).run();
}

}  // namespace tn
