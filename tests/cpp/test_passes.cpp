// The pipeline: its names and its switches.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/evaluate.h"
#include "errors.h"
#include "passes/passes.h"
#include "run_passes.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

int count_ops(const Graph& graph, std::string_view name) {
  return static_cast<int>(
      std::ranges::count_if(graph.ops, [&](const GraphOp& op) { return op.op->name == name; }));
}

Graph passed(const Graph& graph, int rounds = 3, const std::vector<std::string>& off = {}) {
  PassContext context{.evaluate = evaluate};
  return run_passes(graph, context, pipeline(rounds), off);
}

Graph sine_twice() {
  return parse_graph(
      "func @main(%x: f32[3]) {\n"
      "  %0 = sin %x\n"
      "  %1 = call %x {kind=remat, graph=func @f(%a: f32[3]) {\n"
      "    %s = sin %a\n"
      "    return %s\n"
      "  }}\n"
      "  %2 = multiply %0, %1\n"
      "  return %2\n"
      "}\n");
}

}  // namespace

TEST_CASE("passes are switched off by name") {
  Graph graph = parse_graph(
      "func @main(%x: f32[2,3]) {\n"
      "  %0 = softmax %x {axis=[1]}\n"
      "  %1 = softmax %x {axis=[1]}\n"
      "  %2 = add %0, %1\n"
      "  return %2\n"
      "}\n");
  CHECK(count_ops(passed(graph), "exp") == 1);
  CHECK(count_ops(passed(graph, 3, {"cse"}), "exp") == 2);
  std::string error = error_in([] { check_pass_name("canons"); });
  CHECK(contains(error, "pass: no pass named 'canons'"));
  CHECK(contains(error, "did you mean 'canon'?"));
}

TEST_CASE("what is computed again is not merged, unless recompute is switched off") {
  CHECK(count_ops(passed(sine_twice()), "sin") == 2);
  CHECK(count_ops(passed(sine_twice(), 3, {"recompute"}), "sin") == 1);
}

TEST_CASE("numbers given at every run are not looked at, and stay the first constants") {
  Graph graph = parse_graph(
      "func @main(%x: f32[3]) {\n"
      "  %0 = constant {value=1.0} : f32[]\n"
      "  %1 = constant {value=1.0} : f32[]\n"
      "  %2 = constant {value=1.0} : f32[]\n"
      "  %3 = multiply %x, %1\n"
      "  %4 = multiply %3, %2\n"
      "  return %4\n"
      "}\n");
  PassContext context{.evaluate = evaluate, .runtime_scalars = 2};
  CHECK(to_text(run_passes(graph, context, pipeline(3))) ==
        "func @main(%x: f32[3]) -> f32[3] {\n"
        "  %0 = constant {value=1.0} : f32[]\n"
        "  %1 = constant {value=1.0} : f32[]\n"
        "  %2 = multiply %x, %1 : f32[3]\n"
        "  return %2\n"
        "}\n");
}

TEST_CASE("a chain of 100,000 ops takes no stack") {
  Graph graph;
  TypeRef type = intern(DType::f32, {4});
  Val x = graph.add_input("x", type);
  const OpDef* ops[] = {find_op("negative"), find_op("exp"), find_op("stop_gradient")};
  for (int i = 0; i < 100'000; ++i) x = graph.add(*ops[i % 3], nullptr, std::vector{x}, {&type, 1});
  graph.outputs = {x};
  Graph after = passed(graph);
  CHECK(count_ops(after, "exp") == 33'333);
  CHECK(count_ops(after, "stop_gradient") == 0);
}

TEST_CASE("a second run of the pipeline finds nothing to do") {
  Tensor w = make_param(intern(DType::f32, {6, 3})), x = make_param(intern(DType::f32, {4, 6}));
  Function loss = [&](const Tensors& p) {
    return Tensors{mean(square(log_softmax(matmul(x, p[0]), Axes(-1))))};
  };
  Graph once = passed(capture(std::vector{w, x}, grad(loss)({w})).graph);
  CHECK(to_text(passed(once)) == to_text(once));
}
