// One compiled graph for all sizes: its plans give the bits of the interpreter, and kernels are
// made for the first sizes only.
//
// TENON_FUZZ_GRAPHS and TENON_FUZZ_SEED as in test_fuzz.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "compiler/report.h"
#include "fuzz_check.h"
#include "fuzz_graph.h"
#include "ir/rewrite.h"
#include "observe/explain.h"
#include "ops/slice_attrs.h"
#include "run_graph.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

int64_t setting(const char* name, int64_t otherwise) {
  const char* given = std::getenv(name);
  return given ? std::atoll(given) : otherwise;
}

Graph with_sizes(const Graph& graph, const std::vector<Binding>& sizes) {
  return substitute(graph, replacements(sizes));
}

std::string difference_at(const CompiledGraph& compiled, const SymbolicGraph& drawn,
                          const std::vector<Binding>& sizes, uint64_t seed) {
  Graph fixed = with_sizes(drawn.graph, sizes);
  Tensors in = fuzz_inputs(fixed, seed);
  Tensors expected = run_interpreted(fixed, in);
  return first_difference(expected, run_plan(*compiled.plan(sizes), fixed, in));
}

int64_t kernels_of(const CompileCounts& c) {
  return c.compiled + c.from_memory + c.from_disk + c.interpreted;
}

}  // namespace

TEST_CASE("random graphs of symbolic sizes give the bits of the interpreter at all sizes") {
  int64_t first = setting("TENON_FUZZ_SEED", 0), count = setting("TENON_FUZZ_GRAPHS", 200);
  int64_t first_kernels = 0, later_kernels = 0, graphs = 0;
  int failures = 0;
  for (int64_t i = 0; i < count && failures < 20; ++i) {
    uint64_t seed = static_cast<uint64_t>(first + i);
    SymbolicGraph drawn = fuzz_symbolic_graph(seed);
    CompiledGraph compiled(drawn.graph, {.effort = Effort::e2});
    int64_t before = -1;
    for (int64_t more : {0, 1, 6}) {
      std::vector<Binding> sizes = drawn.sizes;
      for (Binding& b : sizes)
        b.value = b.value > 1000 ? b.value + more : (b.value + more) % 19 + 1;
      std::string difference;
      try {
        difference = difference_at(compiled, drawn, sizes, seed);
      } catch (const std::exception& e) {
        difference = e.what();
      }
      CHECK_MESSAGE(difference.empty(), "TENON_FUZZ_SEED=" << seed << " +" << more << ": "
                                                           << difference << "\n"
                                                           << to_text(drawn.graph));
      failures += !difference.empty();
      if (before < 0) before = kernels_of(compiled.counts());
    }
    first_kernels += before;
    later_kernels += kernels_of(compiled.counts()) - before;
    graphs += compiled.counts().graphs;
  }
  MESSAGE(graphs << " graphs optimised for " << count << ", " << first_kernels << " kernels, "
                 << later_kernels << " for later sizes");
}

TEST_CASE("every op that takes symbolic sizes gives the bits of the interpreter at all sizes") {
  int ops = 0, graphs = 0, optimised = 0;
  for (const OpDef* op : op_table()) {
    bool any = false;
    for (const Sample& sample : op->rules->samples) {
      std::optional<SymbolicGraph> drawn = symbolic_sample_graph(*op, sample);
      if (!drawn) continue;
      any = true, ++graphs;
      CompiledGraph compiled(drawn->graph, {.effort = Effort::e2});
      for (int64_t more : {0, 1, 17}) {
        std::vector<Binding> sizes = drawn->sizes;
        for (Binding& b : sizes) b.value += more;
        Graph fixed = with_sizes(drawn->graph, sizes);
        INFO(op->name, " +", more, "\n", to_text(fixed));
        Tensors in;
        for (Val v = 0; v < fixed.inputs(); ++v)
          in.push_back(random_tensor(fixed.types[static_cast<size_t>(v)],
                                     3 + static_cast<uint64_t>(v), sample.lo, sample.hi));
        try {
          Tensors expected = run_interpreted(fixed, in);
          CHECK(first_difference(expected, run_plan(*compiled.plan(sizes), fixed, in)) == "");
        } catch (const Error& e) {
          FAIL_CHECK(e.what());
        }
      }
      optimised += static_cast<int>(compiled.counts().graphs);
    }
    ops += any;
  }
  MESSAGE(ops << " ops, " << graphs << " graphs, optimised " << optimised << " times");
  CHECK(ops > 150);
}

namespace {

Tensors mlp_loss(const Tensors& in) {
  Tensor h = tanh(matmul(in[0], in[1]) + in[2]);
  h = tanh(matmul(h, in[3]) + in[4]);
  return {sum(square(matmul(h, in[5]) + in[6]))};
}

SymbolicGraph traced(const Function& f, const std::vector<Shape>& shapes,
                     std::vector<Binding> sizes, const std::string& guard = "") {
  SymbolicGraph out{{}, std::move(sizes)};
  SizeHints hints(out.sizes);
  Tensors params;
  for (const Shape& shape : shapes) params.push_back(make_param(intern(DType::f32, shape)));
  out.graph = capture(params, f(params)).graph;
  for (const SizeGuard& g : hints.guards) CHECK(to_text(g) == guard);
  return out;
}

/// The loss and its gradient in all arguments but the first.
Function with_gradient(const Function& loss, int arguments) {
  std::vector<int> weights;
  for (int i = 1; i < arguments; ++i) weights.push_back(i);
  return [=](const Tensors& in) {
    flat::Derivatives d = flat::value_and_grad(loss, weights)(in);
    d.derivatives.push_back(d.values[0]);
    return d.derivatives;
  };
}

const Dim kBatch = Dim::symbol("s0"), kTime = Dim::symbol("s1");

SymbolicGraph mlp(bool backwards) {
  std::vector<Shape> shapes{{kBatch, 64}};
  for (int layer = 0; layer < 3; ++layer) shapes.insert(shapes.end(), {{64, 64}, {64}});
  return traced(backwards ? with_gradient(mlp_loss, 7) : Function(mlp_loss), shapes,
                {{kBatch, 32}});
}

Tensors transformer_loss(const Tensors& in) {
  constexpr int64_t kHeads = 4, kWidth = 64;
  Tensor x = in[0], projected = matmul(layer_norm(x), in[1]);
  auto head = [&](int64_t k) {
    Tensor part = slice(projected, {k * kWidth}, {(k + 1) * kWidth}, {}, Axes(2));
    return permute_dims(reshape(part, {kBatch, kTime, kHeads, kWidth / kHeads}), Perm{0, 2, 1, 3});
  };
  Tensor mixed = scaled_dot_product_attention(head(0), head(1), head(2));
  mixed = reshape(permute_dims(mixed, Perm{0, 2, 1, 3}), {kBatch, kTime, kWidth});
  Tensor y = x + matmul(mixed, in[2]);
  Tensor z = y + matmul(gelu(matmul(layer_norm(y), in[3])), in[4]);
  return {sum(z * z)};
}

SymbolicGraph transformer(bool backwards) {
  return traced(backwards ? with_gradient(transformer_loss, 5) : Function(transformer_loss),
                {{kBatch, kTime, 64}, {64, 192}, {64, 64}, {64, 256}, {256, 64}},
                {{kBatch, 4}, {kTime, 32}});
}

}  // namespace

TEST_CASE("a new size compiles nothing") {
  for (bool backwards : {false, true}) {
    CAPTURE(backwards);
    SymbolicGraph drawn = mlp(backwards);
    CompiledGraph compiled(drawn.graph, {.effort = Effort::e2});
    CHECK(difference_at(compiled, drawn, {{drawn.sizes[0].symbol, 32}}, 1) == "");
    CompileCounts first = compiled.counts();
    constexpr int kSizes = 100;
    for (int64_t size = 100; size < 100 + kSizes; ++size)
      compiled.plan(std::vector<Binding>{{drawn.sizes[0].symbol, size}});
    CompileCounts last = compiled.counts();
    CHECK(last.plans == first.plans + kSizes);
    CHECK(last.graphs == 1);
    CHECK(kernels_of(last) == kernels_of(first));
    CHECK(difference_at(compiled, drawn, {{drawn.sizes[0].symbol, 45}}, 1) == "");
  }
}

namespace {

/// "kernel gelu", "library dot", in order.
std::vector<std::string> steps_of(const Compilation& made) {
  std::vector<std::string> names;
  std::istringstream lines(loops_text(made));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("kernel") || line.starts_with("library"))
      names.push_back(line.substr(0, line.find('(')));
  return names;
}

}  // namespace

TEST_CASE("symbolic graphs are fused as those of constant sizes are, and give their bits") {
  for (auto make : {mlp, transformer})
    for (bool backwards : {false, true}) {
      SymbolicGraph drawn = make(backwards);
      CAPTURE(to_text(drawn.graph));
      CompileOptions options{.effort = Effort::e2, .sizes = drawn.sizes};
      Graph fixed = with_sizes(drawn.graph, drawn.sizes);
      CHECK(steps_of(compilation_of(drawn.graph, options)) ==
            steps_of(compilation_of(fixed, {.effort = Effort::e2})));
      CompiledGraph compiled(drawn.graph, {.effort = Effort::e2});
      for (int64_t more : {0, 1, 30}) {
        std::vector<Binding> sizes = drawn.sizes;
        for (Binding& b : sizes) b.value += more;
        CHECK(difference_at(compiled, drawn, sizes, 5) == "");
      }
      CHECK(compiled.counts().graphs == 1);
    }
}

TEST_CASE("explain tells about the plan that runs, and compiles nothing") {
  SymbolicGraph drawn = mlp(false);
  CompiledGraph compiled(drawn.graph, {.effort = Effort::e2});
  auto plan = compiled.plan(drawn.sizes);
  Compilation made = compiled.compilation(drawn.sizes);
  CHECK(made.plan == plan);
  Explanation told = explain(made);
  CHECK(told.graph == optimized_text(made));
  CHECK(told.steps.size() >= plan->steps.size());
  CHECK(std::ranges::count(told.decisions, "fuse", &Decision::pass) > 0);
  CHECK(compiled.counts().graphs == 1);
  CHECK(compiled.planned() == 1);
}

TEST_CASE("sizes at which something is empty have kernels of their own") {
  Dim size = Dim::symbol("n", 4);
  SymbolicGraph drawn = traced(
      [](const Tensors& in) {
        Tensor rest = slice(in[0], {4}, {ops::kToEnd}, {}, Axes(0));
        return Tensors{sum(exp(rest), Axes{0}), rest * 2, in[0] + 1};
      },
      {{size, 3}}, {{size, 9}}, "4 < n");
  CompiledGraph compiled(drawn.graph, {.effort = Effort::e2});
  for (int64_t n : {9, 5, 4, 30, 4}) {
    CAPTURE(n);
    CHECK(difference_at(compiled, drawn, {{size, n}}, 1) == "");
  }
  int64_t graphs = compiled.counts().graphs;
  CHECK(graphs > 1);
  CHECK(difference_at(compiled, drawn, {{size, 17}}, 1) == "");
  CHECK(compiled.counts().graphs == graphs);
}
