// Graphs: capture and replay, text both ways, the verifier, and every op's samples as text.
#include <doctest/doctest.h>

#include <random>

#include "base/error.h"
#include "errors.h"
#include "run_graph.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

/// The text of an error, or "".
/// A random graph of elementwise ops, reductions, views and contractions over float tensors.
Graph random_graph(uint64_t seed) {
  std::mt19937_64 source(seed);
  auto below = [&](int n) { return static_cast<int>(source() % static_cast<uint64_t>(n)); };
  Tensors params = {make_param(intern(DType::f32, {3, 4})), make_param(intern(DType::f32, {4})),
                    make_param(intern(DType::f32, {}))};
  Tensors pool = params;
  int ops = 1 + below(12);
  for (int i = 0; i < ops; ++i) {
    const Tensor& x = pool[static_cast<size_t>(below(static_cast<int>(pool.size())))];
    const Tensor& y = pool[static_cast<size_t>(below(static_cast<int>(pool.size())))];
    int axis = x.rank() ? below(x.rank()) : 0;
    switch (below(9)) {
      case 0:
        pool.push_back(tn::tanh(x));
        break;
      case 1:
        pool.push_back(x * 0.5 + 1);
        break;
      case 2:
        if (x.rank()) pool.push_back(sum(x, Axes(axis), {}, below(2) == 0));
        break;
      case 3:
        if (x.rank() == 2) pool.push_back(permute_dims(x));
        break;
      case 4:
        if (x.rank()) pool.push_back(flip(x, Axes(axis)));
        break;
      case 5:
        if (x.rank()) pool.push_back(softmax(x, Axes(axis)));
        break;
      case 6:
        pool.push_back(where(x > 0, x, tn::exp(x)));
        break;
      case 7:
        if (x.rank()) pool.push_back(reshape(x, {-1}));
        break;
      default:
        if (x.shape() == y.shape() || x.rank() == 0 || y.rank() == 0) pool.push_back(x - y);
    }
  }
  Tensors out = {pool.back()};
  if (pool.size() > 5) out.push_back(pool[4]);
  return capture(params, out).graph;
}

}  // namespace

TEST_CASE("graph: capture lists parameters first, then data, numbers as constants") {
  Tensor p = make_param(intern(DType::f32, {2}));
  Tensor data = array({1.0f, 2.0f});
  Captured captured = capture({&p, 1}, Tensors{(p + data) * 3.0});
  CHECK(captured.graph.inputs() == 2);
  CHECK(captured.leaves.size() == 1);
  CHECK(captured.leaves[0].node() == data.node());
  std::string text = to_text(captured.graph);
  CHECK(contains(text, "add"));
  CHECK(contains(text, "constant {value=3.0} : f32[]"));
  verify(captured.graph, "test");
}

TEST_CASE("graph: what is computed already is data, not ops") {
  Tensor x = array({1.0f, 2.0f});
  Tensor y = (x + 1).eval();
  Captured captured = capture({}, Tensors{y * 2});
  CHECK(captured.leaves.size() == 1);
  CHECK(captured.leaves[0].node() == y.node());
  CHECK_FALSE(contains(to_text(captured.graph), "add"));
}

TEST_CASE("graph: a shared operand is captured once") {
  Tensor p = make_param(intern(DType::f32, {2}));
  Tensor shared = tn::exp(p);
  Graph graph = capture({&p, 1}, Tensors{shared + shared, shared}).graph;
  CHECK(graph.ops.size() == 2);
  CHECK(graph.outputs.size() == 2);
}

TEST_CASE("graph: replay on other arguments") {
  Tensor p = make_param(intern(DType::f32, {3}));
  Graph graph = capture({&p, 1}, Tensors{p * p + 1.0}).graph;
  Tensors out = replay(graph, Tensors{array({1.0f, 2.0f, 3.0f})});
  CHECK(out[0].to_vector<float>() == std::vector<float>{2, 5, 10});
}

TEST_CASE("graph: random graphs print, parse back, and give equal bits in every way") {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Graph graph = random_graph(seed);
    std::string text = to_text(graph);
    INFO(text);
    verify(graph, "captured");
    Graph again = parse_graph(text);
    verify(again, "parsed");
    CHECK(to_text(again) == text);
    Tensors in = random_inputs(graph, seed);
    std::vector<std::string> expected = run_compiled(graph, in);
    CHECK(run_compiled(again, in) == expected);
    CHECK(run_replayed(graph, in) == expected);
    CHECK(run_eagerly(graph, in) == expected);
    Graph expanded = expand_composites(graph);
    verify(expanded, "expanded");
    CHECK(run_compiled(expanded, in) == expected);
  }
}

TEST_CASE("graph: every sample of every op prints and parses back") {
  int graphs = 0;
  for (const OpDef* op : surface_ops()) {
    if (op == &scalar_leaf || op == &param_leaf) continue;
    INFO(std::string(op->name));
    CHECK(op->rules->samples.size() > 0);
    CHECK(find_op(op->name) == op);
    for (std::string_view alias : op->rules->aliases) CHECK(find_op(alias) == op);
    for (const Sample& sample : op->rules->samples) {
      INFO(std::string(sample.args), "; ", std::string(sample.attrs));
      Tensors params;
      for (std::string_view rest = sample.args; !rest.empty();) {
        std::optional<Type> type = parse_type(rest);
        REQUIRE(type.has_value());
        params.push_back(make_param(intern(*type)));
        rest.remove_prefix(std::min(rest.find_first_not_of(", "), rest.size()));
      }
      Tensors in = params;
      while (!op->has_list() && static_cast<int>(in.size()) < op->args.size()) in.emplace_back();
      alignas(16) char attrs[2048];
      op->attrs->init(attrs);
      parse_attrs(*op->attrs, attrs, sample.attrs, op->name);
      Tensors out;
      std::string error = error_in([&] { out = call_with(*op, in, attrs); });
      if (contains(error, "depends on values")) continue;
      REQUIRE(error == "");
      Captured captured = capture(params, out);
      const Graph& graph = captured.graph;
      std::string text = to_text(graph);
      INFO(text);
      verify(graph, "sample");
      CHECK(to_text(parse_graph(text)) == text);
      verify(expand_composites(graph), "expanded sample");
      Tensors values;
      for (const Tensor& p : params)
        values.push_back(random_tensor(type_of(p), 3, sample.lo, sample.hi));
      values.insert(values.end(), captured.leaves.begin(), captured.leaves.end());
      std::vector<std::string> expected = run_compiled(graph, values);
      CHECK(run_replayed(graph, values) == expected);
      CHECK(run_eagerly(graph, values) == expected);
      ++graphs;
    }
  }
  CHECK(graphs > 300);
}

TEST_CASE("graph: the parser names the line and what it expected") {
  auto error = [](const char* text) { return error_in([&] { parse_graph(text); }); };
  CHECK(contains(error(""), "expected 'func @name(...)'"));
  CHECK(contains(error("%0 = exp %x"), "line 1"));
  CHECK(contains(error("func @f(%x: f32[2]) {\n  %0 = exp %y\n}"), "line 2: %y is not defined"));
  CHECK(contains(error("func @f(%x: f32[2]) {\n  %0 = expp %x\n}"), "did you mean 'exp'?"));
  CHECK(contains(error("func @f(%x: g32[2]) {\n}"), "expected a type"));
  CHECK(contains(error("func @f(%x: f32[2]) {\n  %0 = exp %x : f32[3]\n}"),
                 "exp gives f32[2], not f32[3]"));
  CHECK(contains(error("func @f(%x: f32[2]) {\n  %0 = sum %x {axis=[0]\n}"), "expected '}'"));
  CHECK(
      contains(error("func @f(%x: f32[2]) {\n  %0 = add %x\n}"), "add takes 2 operands, found 1"));
  CHECK(error("func @f(%x: f32[2]) {\n  %0 = exp %x, %x\n}") != "");
  CHECK(error("func @f(%x: f32[2]) {\n  %0 = mean %x\n}") != "");
  CHECK(error("func @f(%x: f32[2]) {\n  %0, %1 = exp %x\n}") != "");
  CHECK(error("func @f(%x: f32[5]) {\n  %0 = sum %x {axis=[-1]}\n}") != "");
  CHECK(error("func @f(%x: f32[5]) {\n  %0 = slice %x {start=[0], stop=[5], step=[2]}\n}") != "");
}

TEST_CASE("graph: a text that was cut off is not another function") {
  auto error = [](std::string_view text) { return error_in([&] { parse_graph(text); }); };
  std::string text =
      "func @f(%x: f32[2]) -> (f32[2], f32[2]) {\n  %0 = exp %x\n  %1 = sin %0\n"
      "  return %0, %1\n}";
  CHECK(error(text).empty());
  CHECK(error(text + "  # the end\n\n# nothing\n").empty());
  for (size_t length = 0; length < text.size(); ++length) {
    INFO(text.substr(0, length));
    CHECK(!error(text.substr(0, length)).empty());
  }
  auto without = [&](const std::string& part) {
    std::string cut = text;
    return error(cut.erase(cut.find(part), part.size()));
  };
  CHECK(contains(without("  return %0, %1\n"), "line 4: expected '%', found '}'"));
  CHECK(contains(without("}"), "line 4: expected '}' after 'return'"));
  CHECK(
      contains(without(", %1\n}"), "line 4: the function returns f32[2], and declares (f32[2], "));
  CHECK(contains(error("func @f(%x: f32[2]) -> f32[3] {\n  return %x\n}"), "declares f32[3]"));
  CHECK(contains(error(text + "\n%2 = exp %x"), "line 6: expected nothing after '}'"));
  CHECK(contains(error(text + text), "line 5: expected the end of the line, found 'func @f"));
  CHECK(contains(error("func @f(%x: f32[2]) {\n  %0 = exp %x : f32[2] %x\n  return %0\n}"),
                 "line 2: expected the end of the line, found '%x'"));
  CHECK(contains(error("func @f(%x: f32[2], %x: f32[2]) {\n  return %x\n}"),
                 "line 1: %x is defined twice"));
  CHECK(contains(error("func @f(%x: f32[2] %y: f32[2]) {\n  return %x\n}"), "expected ')'"));
  CHECK(contains(error("func @f(%x: f32[2]) {\n  %0 = sum %x {axis=[0], axis=[0]}\n  return %0\n}"),
                 "attribute axis is given twice"));
  CHECK(contains(error("func @f(%x: f32[2]) {\n  %0 = call %x\n  return %0\n}"),
                 "call: attribute graph is missing"));
}

TEST_CASE("graph: texts nested too deep are refused") {
  std::string begin, end;
  for (int k = 0; k < 10000; ++k) {
    begin += "func @f(%x: f32[2]) {\n  %0 = call %x {kind=remat, graph=";
    end += "}\n  return %0\n}";
  }
  std::string inner = "func @f(%x: f32[2]) {\n  return %x\n}";
  CHECK(contains(error_in([&] { parse_graph(begin + inner + end); }), "nested more than 64 deep"));
}

TEST_CASE("graph: broken text ends in an error, never in a crash") {
  std::string text = to_text(random_graph(11));
  std::mt19937 source(3);
  for (int i = 0; i < 2000; ++i) {
    std::string broken = text;
    broken[source() % broken.size()] = static_cast<char>(source() % 95 + 32);
    if (i % 3 == 0) broken.resize(source() % broken.size());
    if (i % 3 == 1) broken.erase(source() % broken.size(), 1);
    try {
      verify(parse_graph(broken), "broken");
    } catch (const InternalError& e) {
      INFO(broken);
      FAIL_CHECK("a defect: " << e.what());
    } catch (const Error&) {  // what a broken text should give
    }
  }
}

TEST_CASE("graph: the verifier finds wrong types") {
  Graph graph = parse_graph("func @f(%x: f32[2]) {\n  %0 = exp %x\n  return %0\n}");
  graph.types.back() = intern(DType::f32, {3});
  std::string error = error_in([&] { verify(graph, "breaking"); });
  CHECK(contains(error, "breaking"));
  CHECK(contains(error, "exp"));
}

TEST_CASE("graph: the verifier finds operands that come later") {
  Graph graph = parse_graph("func @f(%x: f32[2]) {\n  %0 = exp %x\n  %1 = sin %0\n  return %1\n}");
  graph.operands[0] = 2;  // exp takes the sine, which comes after it
  CHECK_THROWS_AS(verify(graph, "breaking"), InternalError);
}

TEST_CASE("graph: asking for a value while tracing fails") {
  Tensor p = make_param(intern(DType::f32, {2}));
  CHECK(contains(error_in([&] { (p + 1).eval(); }), "used after the trace ended"));
  CHECK((array({1.0f}) + 1).item<float>() == 2);
}
