// Meshes of many workers, without the workers.
#include <doctest/doctest.h>

#include "base/text.h"
#include "gpt_step.h"
#include "mesh/mesh_simulation.h"

using namespace tn;
using sharding::Constraint;
using sharding::Priority;

TEST_CASE("the memory of a graph is what lives at once") {
  Graph graph = parse_graph(
      "func @main(%x: f32[256]) {\n"
      "  %0 = exp %x\n"
      "  %1 = sin %0\n"
      "  %2 = reshape %1 {shape=[16,16]}\n"
      "  %3 = exp %2\n"
      "  return %3\n"
      "}\n");
  CHECK(mesh::live_bytes(graph) == 2 * 1024);  // a view takes none
  Graph gathered = parse_graph(
      "func @main(%w: f32[8,16]) {\n"
      "  %0 = all_gather %w {mesh_axis=\"data\", workers=2, axis=0}\n"
      "  %1 = sum %0 {axis=[0]}\n"
      "  %2 = exp %1\n"
      "  %3 = add %0, %2\n"
      "  return %3\n"
      "}\n");
  CHECK(mesh::live_bytes(gathered) == 1024 + 64 + 1024);
  // Gathers are where the graph has them, also if elementwise ops are made again.
  CHECK(mesh::live_bytes(gathered, mesh::Recomputing::all) == 1024 + 64 + 1024);
}

TEST_CASE("a collective takes its messages and its bytes") {
  sharding::Traffic sum;
  sum.name = "all_sum", sum.workers = 1000, sum.sent = 3'000;
  CHECK(mesh::seconds_of(sum, {1e-6, 1e9}) == doctest::Approx(20e-6 + 3e-6));
  sum.name = "all_gather";
  CHECK(mesh::seconds_of(sum, {1e-6, 1e9}) == doctest::Approx(10e-6 + 3e-6));
}

TEST_CASE("ways through control flow must have the same collectives") {
  Mesh mesh = parse_mesh("data=4, model=2");
  auto local = [&](std::string_view predicate, std::string_view otherwise) {
    return format(
        "func @main(%x: f32[8,4]) {{\n"
        "  %0 = to_local %x {{mesh=\"data=4, model=2\", mesh_axes=\"data\", axes=[0]}}\n"
        "  %1 = sum %0 {{axis=[0,1]}}\n"
        "  %2 = all_sum %1 {{mesh_axis=\"data\", workers=4}}\n"
        "  %3 = exp %2\n"
        "  %4 = isnan {}\n"
        "  %5 = cond %4, %0 {{then=func @t(%a: f32[2,4]) {{\n"
        "    %0 = all_sum %a {{mesh_axis=\"data\", workers=4}}\n"
        "    return %0\n"
        "  }}, otherwise=func @o(%a: f32[2,4]) {{\n"
        "    %0 = {}\n"
        "    return %0\n"
        "  }}}}\n"
        "  %6 = from_local %5 {{mesh=\"data=4, model=2\", mesh_axes=\"data\", axes=[0]}}\n"
        "  return %6\n"
        "}}\n",
        predicate, otherwise);
  };
  auto agrees = [&](std::string_view predicate, std::string_view otherwise) {
    return mesh::simulate(parse_graph(local(predicate, otherwise)), mesh, {}, {}).are_equal;
  };
  constexpr std::string_view kData = "all_sum %a {mesh_axis=\"data\", workers=4}";
  constexpr std::string_view kModel = "all_sum %a {mesh_axis=\"model\", workers=2}";
  CHECK(agrees("%3", "exp %a"));  // the predicate is equal on all workers
  CHECK(!agrees("%1", "exp %a"));
  CHECK(agrees("%1", kData));
  CHECK(!agrees("%1", kModel));
}

TEST_CASE("ten thousand workers have one plan, and memory as layouts say") {
  Gpt gpt{2, 400, 16, 1'000, 10'000, 16};
  Graph graph = gpt.step();
  auto simulate = [&](std::string_view text, bool stored) {
    Mesh mesh = parse_mesh(text);
    std::vector<Constraint> constraints;
    auto add = [&](Val v, std::string_view layout, Priority priority) {
      TypeRef type = graph.types[static_cast<size_t>(v)];
      constraints.push_back({v, parse_layout(layout, mesh, *type), priority});
    };
    for (Val v : {gpt.tokens(), gpt.tokens() + 1}) add(v, "@[data,-]", Priority::data);
    std::vector<std::string> names = gpt.names();
    for (size_t i = 0; i < names.size(); ++i)
      if (stored && names[i].ends_with("down"))
        add(static_cast<Val>(i), "@[model,-]", Priority::stored);
    return mesh::simulate(graph, mesh, constraints, {.flops = 1e12, .memory = 1 << 20, .axes = {}});
  };
  mesh::Simulation one = simulate("data=1", false), many = simulate("data=10000", false);
  CHECK(one.traffic.empty());
  CHECK(one.groups == 0);
  CHECK(many.workers == 10'000);
  CHECK(many.groups == 1);
  CHECK(many.plans == 1);
  CHECK(many.are_equal);
  CHECK(many.traffic.size() == gpt.names().size() + 1);
  CHECK(many.computing * 9'999 < one.computing);
  CHECK(many.peak < one.peak);
  CHECK(!many.fits);
  int64_t parameters = 0;
  for (const Shape& shape : gpt.shapes()) {
    int64_t elements = 1;
    for (int d = 0; d < shape.rank(); ++d) elements *= shape[d].value();
    parameters += 4 * elements;
  }
  CHECK(many.state == 3 * parameters + 2 * 8 * 16);
  // Each gradient is summed: a worker sends twice what it has, but for its own part.
  CHECK(many.sent() == doctest::Approx(2.0 * static_cast<double>(parameters)).epsilon(0.001));
  mesh::Simulation grid = simulate("data=2500, model=4", true);
  CHECK(grid.workers == 10'000);
  CHECK(grid.state < many.state + 3 * 2 * 8 * 16);
  CHECK(grid.groups == 10'000 / 4 + 10'000 / 2'500);
}
