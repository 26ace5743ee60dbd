// Sharding: the graphs of workers, run in lockstep, against the global graph.
//
// TENON_FUZZ_GRAPHS=5000 draws that many graphs instead of 1000, TENON_FUZZ_SEED=17 begins with
// that seed.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "errors.h"
#include "fuzz_check.h"
#include "fuzz_graph.h"
#include "ir/rewrite.h"
#include "ops/collectives.h"
#include "ops/op_decls.h"
#include "run_workers.h"
#include "tenon/tenon.h"

using namespace tn;
using sharding::Constraint;
using sharding::Priority;

namespace {

int64_t setting(const char* name, int64_t otherwise) {
  const char* given = std::getenv(name);
  return given ? std::atoll(given) : otherwise;
}

/// The mesh of one worker that computes the same bits.
Mesh alone(Mesh mesh) {
  for (MeshAxis& axis : mesh.axes) axis.size = 1;
  return mesh;
}

struct Drawn {
  Mesh mesh;
  std::vector<Constraint> constraints;
};

/// A dimension of a value, with more than one element.
struct WideDim {
  Val value;
  int dim;
  int64_t extent;
};

std::vector<WideDim> wide_dims(const Graph& graph) {
  std::vector<WideDim> list;
  for (Val v = 0; v < graph.values(); ++v) {
    const Shape& shape = graph.types[static_cast<size_t>(v)]->shape;
    for (int d = 0; d < shape.rank(); ++d)
      if (shape[d].is_const() && shape[d].raw > 1) list.push_back({v, d, shape[d].raw});
  }
  return list;
}

/// Sizes that divide extents of the graph, and layouts of some values.
Drawn draw_layouts(const Graph& graph, std::mt19937_64& random) {
  auto pick = [&](size_t n) { return random() % n; };
  std::vector<WideDim> wide = wide_dims(graph);
  Drawn drawn;
  if (wide.empty()) return drawn;
  for (size_t axes = 1 + pick(2); axes > 0; --axes) {
    int64_t extent = wide[pick(wide.size())].extent;
    std::vector<int64_t> sizes;
    for (int64_t n : {2, 3, 4, 5, 7})
      if (extent % n == 0) sizes.push_back(n);
    if (sizes.empty()) continue;
    int64_t size = sizes[pick(sizes.size())];
    int64_t times = std::array<int64_t, 6>{1, 1, 1, 2, 3, 6}[pick(6)];
    drawn.mesh.axes.push_back({format("m{}", axes), size, size * times});
  }
  for (size_t tries = 2 + pick(6); tries > 0; --tries) {
    const WideDim& at = wide[pick(wide.size())];
    const Shape& shape = graph.types[static_cast<size_t>(at.value)]->shape;
    Constraint c{at.value, Layout(drawn.mesh), static_cast<Priority>(pick(3))};
    for (int t = 0; t < drawn.mesh.count(); ++t) {
      int dim = pick(2) ? at.dim : static_cast<int>(pick(static_cast<size_t>(shape.rank())));
      Digit digit{dim, std::array<int64_t, 4>{1, 1, 2, 3}[pick(4)]};
      if (has_room(drawn.mesh, c.layout, shape, t, digit)) c.layout[t] = digit;
    }
    drawn.constraints.push_back(c);
  }
  return drawn;
}

std::string described(const Graph& graph, const Drawn& drawn) {
  std::string text = format("mesh {}\n", to_text(drawn.mesh));
  for (const Constraint& c : drawn.constraints)
    text += format("%{} {} {}\n", c.value,
                   to_text(drawn.mesh, c.layout, graph.types[static_cast<size_t>(c.value)]->rank()),
                   static_cast<int>(c.priority));
  return text + to_text(graph);
}

struct Totals {
  int transitions = 0, folds = 0, divided = 0;
};

/// What is wrong when workers compute the graph; nothing when all is well.
std::string failure_on_workers(const Graph& graph, const Drawn& drawn, const Tensors& in,
                               Totals& totals) {
  try {
    sharding::Sharded made = sharding::shard(graph, drawn.mesh, drawn.constraints);
    sharding::Sharded one = sharding::shard(graph, alone(drawn.mesh), drawn.constraints);
    verify(made.local.graph, "shard");
    if (made.layouts != one.layouts) return "layouts depend on the number of workers";
    totals.transitions += made.local.transitions, totals.folds += made.local.folds;
    for (const Layout& layout : made.layouts) totals.divided += !layout.is_whole();
    Tensors expected = run_partitioned(one.local, alone(drawn.mesh), in);
    Tensors actual = run_partitioned(made.local, drawn.mesh, in);
    std::string difference = first_difference(expected, actual);
    if (!difference.empty()) return difference + "\n" + to_text(made.local.graph);
    if (made.local.folds) return "";
    return first_difference(values_eagerly(graph, in), actual);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("random graphs on random meshes give the bits of one worker") {
  int64_t first = setting("TENON_FUZZ_SEED", 0), count = setting("TENON_FUZZ_GRAPHS", 1000);
  Totals totals;
  int failures = 0;
  for (int64_t seed = first; seed < first + count && failures < 20; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    Graph graph = fuzz_graph(static_cast<uint64_t>(seed));
    if (seed % 2) graph = expand_composites(graph);
    Drawn drawn = draw_layouts(graph, random);
    Tensors in = fuzz_inputs(graph, static_cast<uint64_t>(seed));
    if (!error_in([&] { values_eagerly(graph, in); }).empty()) continue;  // random indices
    std::string failure = failure_on_workers(graph, drawn, in, totals);
    CHECK_MESSAGE(failure.empty(), "TENON_FUZZ_SEED=" << seed << ": " << failure << "\n"
                                                      << described(graph, drawn));
    failures += !failure.empty();
  }
  MESSAGE(totals.divided << " values divided, " << totals.transitions << " transitions, "
                         << totals.folds << " folds");
  if (count >= 1000) CHECK(totals.folds > 100);
}

namespace {

/// Every digit with two or three parts that a value of the graph has.
std::vector<Drawn> all_layouts(const Graph& graph) {
  std::vector<Drawn> list;
  for (Val v = 0; v < graph.values(); ++v) {
    const Shape& shape = graph.types[static_cast<size_t>(v)]->shape;
    for (int d = 0; d < shape.rank(); ++d)
      for (int64_t parts : {2, 3})
        for (int64_t radix : {1, 2}) {
          if (!has_digit(shape[d], radix, parts)) continue;
          Drawn drawn{{{{"m", parts, parts}}}, {}};
          Constraint c{v, Layout(drawn.mesh), Priority::data};
          c.layout[0] = {d, radix};
          drawn.constraints.push_back(c);
          list.push_back(drawn);
        }
  }
  return list;
}

Tensors sample_inputs(const Graph& graph, const Sample& sample) {
  Tensors in;
  for (Val v = 0; v < graph.inputs(); ++v)
    in.push_back(random_tensor(graph.types[static_cast<size_t>(v)], static_cast<uint64_t>(v) + 5,
                               sample.lo, sample.hi));
  return in;
}

/// Whether two results differ by no more than the order of a sum explains.
bool is_close(const Tensor& a, const Tensor& b) {
  if (!is_float(a.dtype())) return first_difference({a}, {b}).empty();
  double tolerance = size_of(a.dtype()) < 4 ? 2e-2 : 1e-5;
  return allclose(a, b, tolerance, tolerance, true).item<bool>();
}

}  // namespace

TEST_CASE("every op divided in every way gives what it gives on one worker") {
  Totals totals;
  int cases = 0;
  for (const OpDef* op : op_table())
    for (const Sample& sample : op->rules->samples) {
      if (ops::is_collective(*op) || op == &ops::shard) continue;  // the latter names a mesh
      auto graph = sample_graph(*op, sample);
      if (!graph) continue;
      Tensors in = sample_inputs(*graph, sample);
      Tensors plain = values_eagerly(*graph, in);
      for (const Drawn& drawn : all_layouts(*graph)) {
        ++cases;
        CAPTURE(described(*graph, drawn));
        std::string failure = failure_on_workers(*graph, drawn, in, totals);
        CHECK_MESSAGE(failure.empty(), failure);
        if (!failure.empty()) continue;
        sharding::Sharded one = sharding::shard(*graph, alone(drawn.mesh), drawn.constraints);
        Tensors parts = run_partitioned(one.local, alone(drawn.mesh), in);
        for (size_t k = 0; k < plain.size(); ++k) CHECK(is_close(parts[k], plain[k]));
      }
    }
  MESSAGE(cases << " cases, " << totals.folds << " folds");
  CHECK(totals.folds > 100);
}

TEST_CASE("a graph of one worker is not divided again") {
  Graph graph = parse_graph(
      "func @main(%x: f32[4]) {\n"
      "  %0 = all_sum %x {mesh_axis=\"data\", workers=2}\n"
      "  return %0\n"
      "}\n");
  CHECK(contains(error_in([&] { sharding::shard(graph, parse_mesh("data=2"), {}); }),
                 "shard: the graph has collectives of its own: all_sum"));
}

TEST_CASE("a symbolic size is divided where its factors allow it") {
  Graph graph = parse_graph(
      "func @main(%x: f32[4*B,6]) {\n"
      "  %0 = exp %x\n"
      "  %1 = sum %0 {axis=[1]}\n"
      "  return %1\n"
      "}\n");
  Mesh mesh = parse_mesh("data=2");
  Constraint c{0, parse_layout("@[data,-]", mesh, *graph.types[0])};
  CHECK(to_text(sharding::shard(graph, mesh, {&c, 1}).local.graph) ==
        "func @main(%x: f32[2*B,6]) -> f32[2*B] {\n"
        "  %0 = exp %x : f32[2*B,6]\n"
        "  %1 = sum %0 {axis=[1]} : f32[2*B]\n"
        "  return %1\n"
        "}\n");
}

TEST_CASE("every decision names its reason and the op") {
  Graph graph = parse_graph(
      "func @main(%x: f32[4,6], %w: f32[6,3]) {\n"
      "  %0 = dot %x, %w {lhs_contract=[1], rhs_contract=[0]}\n"
      "  %1 = sort %0 {axis=0}\n"
      "  return %1\n"
      "}\n");
  Mesh mesh = parse_mesh("data=2");
  Constraint c{0, parse_layout("@[data,-]", mesh, *graph.types[0])};
  Decisions decisions;
  sharding::shard(graph, mesh, {&c, 1}, &decisions);
  std::vector<std::string> lines;
  for (const Decision& d : decisions)
    lines.push_back(format("{}{}: {}", d.made ? "" : "refused: ", d.what, d.reason));
  CHECK(lines == std::vector<std::string>{"f32[4,6] @[data,-]: 'data' is given",
                                          "f32[4,3] @[data,-]: 'data' through dot",
                                          "refused: f32[4,3] @[data,-]: sort is not divided there",
                                          "all_gather of f32[2,3] along 'data': for sort"});
}
