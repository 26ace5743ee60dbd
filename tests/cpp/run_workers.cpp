#include "run_workers.h"

#include <doctest/doctest.h>

#include <bit>
#include <sstream>

#include "base/error.h"
#include "fuzz_check.h"
#include "ops/collectives.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/tenon.h"

namespace tn {

namespace {

int64_t coordinate(const Mesh& mesh, int64_t worker, int axis) {
  for (int u = mesh.count() - 1; u > axis; --u) worker /= mesh[u].size;
  return worker % mesh[axis].size;
}

/// The dimension as [radix, count, rest].
Tensor split(const Tensor& x, int dim, int64_t radix, int64_t count) {
  Shape shape = x.shape();
  Dim rest = floor_div(shape[dim], radix * count);
  shape[dim] = rest;
  shape.insert(dim, Dim(count)), shape.insert(dim, Dim(radix));
  return reshape(x, shape);
}
Tensor merge(const Tensor& x, int dim) {
  Shape shape = x.shape();
  shape[dim] = shape[dim] * shape[dim + 1] * shape[dim + 2];
  shape.erase(dim + 2), shape.erase(dim + 1);
  return reshape(x, shape);
}

Tensor take_digit(const Tensor& x, int dim, int64_t radix, int64_t count, int64_t index) {
  return merge(ops::slice_axis(split(x, dim, radix, count), dim + 1, index, index + 1), dim);
}
Tensor join_digit(const Tensors& parts, int dim, int64_t radix) {
  Tensors list;
  for (const Tensor& x : parts) list.push_back(split(x, dim, radix, 1));
  return merge(concat(list, Axis(dim + 1)), dim);
}

/// Axes of the mesh that divide the tensor, inner digits first.
std::vector<int> inner_first(const Layout& layout) {
  std::vector<int> axes;
  for (size_t t = 0; t < layout.digits.size(); ++t)
    if (layout.digits[t]) axes.push_back(static_cast<int>(t));
  std::ranges::sort(axes, std::greater(), [&](int t) { return layout[t].radix; });
  return axes;
}

using Combine = Tensor (*)(const Tensor& a, const Tensor& b);

/// A binary tree over aligned ranges.
Tensor folded_tree(std::span<const Tensor> terms, Combine combine) {
  if (terms.size() == 1) return terms[0];
  size_t left = std::bit_ceil(terms.size()) / 2;
  return combine(folded_tree(terms.first(left), combine),
                 folded_tree(terms.subspan(left), combine));
}

/// Narrow floats are folded in f32 and rounded once, as transports do.
Tensor folded(Tensors terms, Combine combine) {
  DType dtype = terms[0].dtype();
  bool is_narrow = dtype == DType::f16 || dtype == DType::bf16;
  for (Tensor& x : terms)
    if (is_narrow) x = cast_to(x, DType::f32);
  return cast_to(folded_tree(terms, combine), dtype);
}

Combine combine_of(const GraphOp& op) {
  if (op.op != &ops::all_fold) return [](const Tensor& a, const Tensor& b) { return add(a, b); };
  switch (static_cast<const ops::AllFoldAttrs*>(op.attr_data())->mode) {
    case ops::AllFold::prod:
      return [](const Tensor& a, const Tensor& b) { return multiply(a, b); };
    case ops::AllFold::max:
      return [](const Tensor& a, const Tensor& b) { return maximum(a, b); };
    case ops::AllFold::min:
      return [](const Tensor& a, const Tensor& b) { return minimum(a, b); };
    case ops::AllFold::all:
      return [](const Tensor& a, const Tensor& b) { return logical_and(a, b); };
    default:
      return [](const Tensor& a, const Tensor& b) { return logical_or(a, b); };
  }
}

/// The result of a collective for the worker at `index` of a group.
Tensor collective(const GraphOp& op, const Tensors& group, int64_t index) {
  const void* attrs = op.attr_data();
  if (op.op == &ops::vary) return group[static_cast<size_t>(index)];
  if (op.op == &ops::all_sum || op.op == &ops::all_fold) return folded(group, combine_of(op));
  if (op.op == &ops::all_to_all) {
    const auto& a = *static_cast<const ops::ExchangeAttrs*>(attrs);
    Tensor whole = join_digit(group, a.axis.i, a.radix);
    return take_digit(whole, a.to_axis.i, a.to_radix, a.workers, index);
  }
  const auto& a = *static_cast<const ops::DigitAttrs*>(attrs);
  if (op.op == &ops::all_gather) return join_digit(group, a.axis.i, a.radix);
  Tensor x = group[static_cast<size_t>(index)];
  if (op.op == &ops::reduce_scatter) x = folded(group, combine_of(op));
  return take_digit(x, a.axis.i, a.radix, a.workers, index);
}

/// The axis of the mesh that a collective goes along: the first of its attributes.
int axis_of(const Mesh& mesh, const GraphOp& op) {
  return mesh.find(*static_cast<const std::string_view*>(op.attr_data()));
}

}  // namespace

Tensor part_of_worker(const Tensor& x, const Mesh& mesh, const Layout& layout, int64_t worker) {
  Tensor part = x;
  for (int t : inner_first(layout))
    part =
        take_digit(part, layout[t].dim, layout[t].radix, mesh[t].size, coordinate(mesh, worker, t));
  return part.eval();
}

Tensor joined(const std::vector<Tensor>& parts, const Mesh& mesh, const Layout& layout) {
  std::vector<int> axes = inner_first(layout);
  std::ranges::reverse(axes);
  Tensors now = parts;
  Layout left = layout;
  for (int t : axes) {  // outer digits first
    int64_t radix = local_radix(mesh, left, t, left[t]);
    Tensors next;
    for (int64_t w = 0; w < mesh.workers(); ++w) {
      Tensors group;
      for (int64_t v = 0; v < mesh.workers(); ++v) {
        bool is_peer = true;
        for (int u = 0; u < mesh.count(); ++u)
          is_peer &= u == t || coordinate(mesh, v, u) == coordinate(mesh, w, u);
        if (is_peer) group.push_back(now[static_cast<size_t>(v)]);
      }
      next.push_back(join_digit(group, left[t].dim, radix).eval());
    }
    now = std::move(next), left[t] = {};
  }
  for (const Tensor& other : now) {
    std::string difference = first_difference({now[0]}, {other});
    CHECK_MESSAGE(difference.empty(), "replicas differ: " << difference);
  }
  return now[0];
}

std::vector<Tensors> run_workers(const Graph& graph, const Mesh& mesh,
                                 const std::vector<Tensors>& in) {
  std::vector<Tensors> values = in;
  size_t workers = values.size();
  for (const GraphOp& op : graph.ops) {
    std::vector<Tensors> made(workers);
    bool together = op.op != &scalar_leaf && ops::is_collective(*op.op);
    for (size_t w = 0; w < workers; ++w) {
      Tensors operands;
      for (Val v : graph.in(op)) operands.push_back(values[w][static_cast<size_t>(v)]);
      if (together) {
        int t = axis_of(mesh, op);
        Tensors group;
        for (size_t v = 0; v < workers; ++v) {
          bool is_peer = true;
          for (int u = 0; u < mesh.count(); ++u)
            is_peer &= u == t || coordinate(mesh, static_cast<int64_t>(v), u) ==
                                     coordinate(mesh, static_cast<int64_t>(w), u);
          if (is_peer) group.push_back(values[v][static_cast<size_t>(graph.in(op)[0])]);
        }
        made[w] = {collective(op, group, coordinate(mesh, static_cast<int64_t>(w), t)).eval()};
      } else if (op.op == &scalar_leaf) {
        DType type = graph.types[static_cast<size_t>(op.out)]->dtype;
        made[w] = {make_scalar(op.scalar, type, false)};
      } else {
        for (Tensor& x : emit_all(*op.op, operands, op.attr_data())) made[w].push_back(x.eval());
      }
      for (size_t k = 0; k < made[w].size(); ++k) {
        TypeRef type = graph.types[static_cast<size_t>(op.out) + k];
        invariant(type_of(made[w][k])->shape == type->shape, "{}: {} where the graph says {}",
                  op.op->name, *type_of(made[w][k]), *type);
      }
    }
    for (size_t w = 0; w < workers; ++w)
      values[w].insert(values[w].end(), made[w].begin(), made[w].end());
  }
  std::vector<Tensors> out(workers);
  for (size_t w = 0; w < workers; ++w)
    for (Val v : graph.outputs) out[w].push_back(values[w][static_cast<size_t>(v)]);
  return out;
}

Tensors run_partitioned(const sharding::Partitioned& made, const Mesh& mesh, const Tensors& in) {
  std::vector<Tensors> inputs(static_cast<size_t>(mesh.workers()));
  for (size_t w = 0; w < inputs.size(); ++w)
    for (size_t k = 0; k < in.size(); ++k)
      inputs[w].push_back(part_of_worker(in[k], mesh, made.inputs[k], static_cast<int64_t>(w)));
  std::vector<Tensors> outputs = run_workers(made.graph, mesh, inputs);
  Tensors out;
  for (size_t k = 0; k < made.outputs.size(); ++k) {
    Tensors parts;
    for (const Tensors& of_worker : outputs) parts.push_back(of_worker[k]);
    out.push_back(joined(parts, mesh, made.outputs[k]));
  }
  return out;
}

int count_ops(const Graph& graph, std::string_view name) {
  return static_cast<int>(
      std::ranges::count_if(graph.ops, [&](const GraphOp& op) { return op.op->name == name; }));
}

namespace {

/// "%x" or "%3": an input, or a value as the canonical text numbers it.
Val value_named(const Graph& graph, std::string_view name) {
  auto input = std::ranges::find(graph.input_names, name.substr(1));
  if (input != graph.input_names.end()) return static_cast<Val>(input - graph.input_names.begin());
  return graph.inputs() + std::atoi(std::string(name.substr(1)).c_str());
}

sharding::Constraint read_constraint(const Graph& graph, const Mesh& mesh, std::string_view line) {
  using sharding::Priority;
  size_t space = line.find(' ');
  Val v = value_named(graph, line.substr(0, space));
  std::string_view text = line.substr(space + 1);
  Priority priority = Priority::data;
  for (auto [name, meant] :
       {std::pair(" parameter", Priority::parameter), std::pair(" stored", Priority::stored)})
    if (text.ends_with(name)) text.remove_suffix(std::strlen(name)), priority = meant;
  return {v, parse_layout(text, mesh, *graph.types[static_cast<size_t>(v)]), priority};
}

}  // namespace

std::string sharded_text(const std::string& text) {
  size_t start = text.find("func");
  Graph graph = parse_graph(text.substr(start));
  Mesh mesh;
  std::vector<sharding::Constraint> constraints;
  std::istringstream lines(text.substr(0, start));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("mesh ")) mesh = parse_mesh(std::string_view(line).substr(5));
    if (line.starts_with('%')) constraints.push_back(read_constraint(graph, mesh, line));
  }
  Decisions decisions;
  sharding::Sharded made = sharding::shard(graph, mesh, constraints, &decisions);
  verify(made.local.graph, "shard");
  Mesh alone = mesh;
  for (MeshAxis& axis : alone.axes) axis.size = 1;
  Tensors in = random_inputs(graph, 7);
  for (Tensor& x : in)
    if (x.dtype() == DType::i64) x = abs(x);  // indices
  Tensors expected = run_partitioned(sharding::shard(graph, alone, constraints).local, alone, in);
  CHECK(first_difference(expected, run_partitioned(made.local, mesh, in)) == "");
  if (made.local.folds == 0) CHECK(first_difference(values_eagerly(graph, in), expected) == "");
  std::string out;
  for (Val v = 0; v < graph.values(); ++v) {
    const Layout& layout = made.layouts[static_cast<size_t>(v)];
    TypeRef type = graph.types[static_cast<size_t>(v)];
    std::string name = v < graph.inputs() ? graph.input_names[static_cast<size_t>(v)]
                                          : format("{}", v - graph.inputs());
    if (!layout.is_whole())
      out += format("%{}: {} {}\n", name, *type, to_text(mesh, layout, type->rank()));
  }
  out += to_text(made.local.graph);
  for (const Decision& d : decisions)
    if (!d.made) out += format("refused: {}: {}\n", d.what, d.reason);
  return out;
}

}  // namespace tn
