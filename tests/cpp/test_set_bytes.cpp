// Kernel sets as bytes: what comes back computes the same bits, and damage is an error.
#include <doctest/doctest.h>

#include "backend/cpu/kernels/gemm.h"
#include "base/error.h"
#include "compiler/compile_graph.h"
#include "compiler/set_bytes.h"
#include "errors.h"
#include "eval/eval.h"
#include "fuzz_check.h"
#include "fuzz_graph.h"
#include "ir/graph_read.h"
#include "ir/rewrite.h"
#include "run_graph.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

Bound value_of(const Tensor& x) {
  x.eval();
  return bound_of(slot_of(x));
}

const Target kHere[] = {host_target()};

/// What a file would hold of a compiled graph.
struct Saved {
  SetBytes bytes;
  std::vector<Bound> constants;  // of the traced graph and of the sets; absent where they may be
  size_t absent = 0;

  Saved(std::span<const KernelSet> sets, const std::vector<Bound>& traced)
      : bytes(to_bytes(sets, traced, kHere)), constants(traced) {
    for (const SetConstant& c : bytes.constants) constants.push_back(c.value);
    for (const SetConstant& c : bytes.constants)
      if (c.of >= 0 && !bytes.read[static_cast<size_t>(c.of)]) {
        constants[static_cast<size_t>(c.of)] = absent_constant();
        ++absent;
      }
  }

  std::vector<KernelSet> load(const CompileOptions& options, bool with_code = true,
                              bool stranger = false) const {
    std::vector<std::string_view> code(bytes.code[0].begin(), bytes.code[0].end());
    if (!with_code) code.clear();
    return sets_from_bytes(bytes.plan, code, constants, options, stranger);
  }
};

std::unique_ptr<CompiledGraph> loaded(const CompiledGraph& compiled, const Graph& graph,
                                      const CompileOptions& options, bool with_code = true) {
  Saved saved(compiled.sets(), options.constants);
  CompileOptions without = options;
  without.constants.assign(
      saved.constants.begin(),
      saved.constants.begin() + static_cast<ptrdiff_t>(options.constants.size()));
  return std::make_unique<CompiledGraph>(graph, without, saved.load(without, with_code));
}

int64_t kernels_made(const CompiledGraph& compiled) {
  CompileCounts c = compiled.counts();
  return c.compiled + c.from_memory + c.from_disk;
}

/// Compiles, saves, loads and runs it, with code and without.
void check_same(const Graph& graph, const Tensors& in) {
  CompileOptions options{.effort = Effort::e2};
  CompiledGraph compiled(graph, options);
  Tensors expected = run_plan(*compiled.plan(), graph, in);
  for (bool with_code : {true, false}) {
    auto again = loaded(compiled, graph, options, with_code);
    CHECK(first_difference(expected, run_plan(*again->plan(), graph, in)) == "");
    CHECK(kernels_made(*again) == 0);
    CHECK(again->counts().graphs == 0);
    CHECK(Saved(compiled.sets(), {}).load(options, with_code, true).size() == 1);
  }
}

Tensors mlp(const Tensors& in) {
  return {matmul(relu(matmul(in[0], in[1]) + in[2]), in[3]) + in[4]};
}

constexpr int64_t kLayers = 12, kHeads = 4, kWidth = 64, kRows = 32;

Tensor attention_block(const Tensor& x, const Tensor* w) {
  Tensor projected = matmul(layer_norm(x), w[0]);
  auto head = [&](int64_t k) {
    Tensor part = slice(projected, {0, 0, k * kWidth}, {2, kRows, (k + 1) * kWidth});
    return permute_dims(reshape(part, {2, kRows, kHeads, kWidth / kHeads}), Perm{0, 2, 1, 3});
  };
  Tensor mixed = scaled_dot_product_attention(head(0), head(1), head(2));
  mixed = reshape(permute_dims(mixed, Perm{0, 2, 1, 3}), {2, kRows, kWidth});
  Tensor y = x + matmul(mixed, w[1]);
  return y + matmul(gelu(matmul(layer_norm(y), w[2])), w[3]);
}

/// Blocks of attention, one after the other; weights follow the first input.
Graph transformer(int64_t layers) {
  std::vector<Shape> shapes = {{2, kRows, kWidth}};
  for (int64_t i = 0; i < layers; ++i)
    for (Shape w : {Shape{kWidth, 3 * kWidth}, Shape{kWidth, kWidth}, Shape{kWidth, 4 * kWidth},
                    Shape{4 * kWidth, kWidth}})
      shapes.push_back(w);
  return traced(
      [&](const Tensors& in) {
        Tensor x = in[0];
        for (size_t i = 0; i < static_cast<size_t>(layers); ++i)
          x = attention_block(x, &in[1 + 4 * i]);
        return Tensors{x};
      },
      shapes);
}

Tensors conv_net(const Tensors& in) {
  Tensor x = max_pool(relu(conv2d(in[0], in[1])), Ints{2, 2});
  return {mean(relu(conv2d(x, in[2])), Axes{2, 3})};
}

/// All inputs but the first become constants.
void check_same_with_weights(const Graph& graph) {
  Tensors in = random_inputs(graph, 5);
  CompileOptions options{.effort = Effort::e2};
  for (size_t i = 1; i < in.size(); ++i) options.constants.push_back(value_of(in[i]));
  CompiledGraph compiled(graph, options);
  Tensors expected = run_plan(*compiled.plan(), graph, {in[0]});
  auto again = loaded(compiled, graph, options);
  CHECK(first_difference(expected, run_plan(*again->plan(), graph, {in[0]})) == "");
  CHECK(kernels_made(*again) == 0);
}

/// An MLP whose weights are constants, for any number of rows up to 64.
struct Mlp {
  Dim rows = Dim::symbol("rows", 1, 64);
  Graph graph = traced(mlp, {{rows, 128}, {128, 200}, {200}, {200, 130}, {130}});
  CompileOptions options{.effort = Effort::e2};
  Tensors weights;

  Mlp() {
    for (int i = 1; i < 5; ++i) {
      weights.push_back(random_tensor(graph.types[static_cast<size_t>(i)], 7));
      options.constants.push_back(value_of(weights.back()));
    }
  }
  std::vector<Binding> at(int64_t count) const { return {{rows, count}}; }
  std::string run(const CompiledGraph& compiled, int64_t count) const {
    Tensor x = random_tensor(intern(DType::f32, {count, 128}), 3);
    Graph fixed = substitute(graph, replacements(at(count)));
    return bytes_of(run_plan(*compiled.plan(at(count)), fixed, {x}))[0];
  }
};

}  // namespace

TEST_CASE("sets: every op gives the same bits when its kernels come from bytes") {
  int graphs = 0;
  for (const OpDef* op : op_table())
    for (const Sample& sample : op->rules->samples) {
      std::optional<Graph> graph = sample_graph(*op, sample);
      if (!graph) continue;
      INFO(to_text(*graph));
      Tensors in;
      for (Val v = 0; v < graph->inputs(); ++v)
        in.push_back(random_tensor(graph->types[static_cast<size_t>(v)],
                                   3 + static_cast<uint64_t>(v), sample.lo, sample.hi));
      check_same(*graph, in);
      ++graphs;
    }
  CHECK(graphs > 200);
}

TEST_CASE("sets: random graphs give the same bits when their kernels come from bytes") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Graph graph = fuzz_graph(seed);
    INFO(seed, "\n", to_text(graph));
    check_same(graph, fuzz_inputs(graph, seed));
  }
}

TEST_CASE("sets: random graphs of symbolic sizes run at sizes that nobody planned before") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SymbolicGraph drawn = fuzz_symbolic_graph(seed);
    CompileOptions options{.effort = Effort::e2};
    CompiledGraph compiled(drawn.graph, options);
    compiled.plan(drawn.sizes);
    auto again = loaded(compiled, drawn.graph, options);
    for (int64_t more : {0, 1, 6}) {
      std::vector<Binding> sizes = drawn.sizes;
      for (Binding& b : sizes)
        if (more) b.value = b.value > 1000 ? b.value + more : (b.value + more) % 19 + 1;
      Graph fixed = substitute(drawn.graph, replacements(sizes));
      INFO(seed, " +", more, "\n", to_text(fixed));
      Tensors in = fuzz_inputs(fixed, seed);
      Tensors expected = run_interpreted(fixed, in);
      CHECK(first_difference(expected, run_plan(*again->plan(sizes), fixed, in)) == "");
      if (more == 0) CHECK(kernels_made(*again) == 0);
    }
  }
}

TEST_CASE("sets: the library copies what only other sizes need copied") {
  Dim rows = Dim::symbol("rows", 1, 8);
  auto f = [&](const Tensors& in) {
    return Tensors{matmul(reshape(permute_dims(in[0], Perm{1, 0, 2}), {rows * 5, 16}), in[1])};
  };
  Graph graph = traced(f, {{rows, 5, 16}, {16, 7}});
  CompileOptions options{.effort = Effort::e2};
  CompiledGraph compiled(graph, options);
  std::vector<Binding> one = {{rows, 1}}, three = {{rows, 3}};
  compiled.plan(one);
  auto again = loaded(compiled, graph, options);
  Graph fixed = substitute(graph, replacements(three));
  Tensors in = random_inputs(fixed, 2);
  auto plan = again->plan(three);
  CHECK(plan->steps.size() == compiled.plan(one)->steps.size() + 1);
  CHECK(first_difference(run_interpreted(fixed, in), run_plan(*plan, fixed, in)) == "");
  CHECK(kernels_made(*again) == 0);
}

TEST_CASE("sets: bodies of loops come from bytes") {
  auto body = [](const Tensors& c, const Tensors& x) -> flat::ScanResult {
    Tensor next = sin(matmul(c[0], x[0])) + c[0];
    return {{next}, {next * 2}};
  };
  Graph graph = traced(
      [&](const Tensors& in) {
        flat::ScanResult r = flat::scan(body, {in[0]}, {in[1]});
        return Tensors{r.carry[0], r.ys[0]};
      },
      {{8, 8}, {5, 8, 8}});
  check_same(graph, random_inputs(graph, 1));
}

TEST_CASE("sets: constants that are packed are not needed as they were") {
  Mlp model;
  CompiledGraph compiled(model.graph, model.options);
  model.run(compiled, 16);
  Saved saved(compiled.sets(), model.options.constants);
  CHECK(saved.absent == 2);
  auto again = loaded(compiled, model.graph, model.options);
  for (int64_t rows : {16, 1, 2, 64}) CHECK(model.run(*again, rows) == model.run(compiled, rows));
  CHECK(kernels_made(*again) == 0);
}

TEST_CASE("sets: networks with weights come from bytes") {
  check_same_with_weights(transformer(1));
  check_same_with_weights(traced(conv_net, {{2, 3, 20, 20}, {8, 3, 3, 3}, {16, 8, 3, 3}}));
}

TEST_CASE("sets: those of a transformer are loaded without compiling") {
  Graph graph = transformer(kLayers);
  CompileOptions options{.effort = Effort::e2};
  CompiledGraph compiled(graph, options);
  compiled.plan();
  Saved saved(compiled.sets(), {});
  CompiledGraph again(graph, options, saved.load(options));
  again.plan();
  CHECK(kernels_made(again) == 0);
  CHECK(again.counts().graphs == 0);
  CHECK(again.counts().plans == 1);
}

TEST_CASE("sets: what another machine packed is unpacked") {
  Mlp model;
  CompiledGraph compiled(model.graph, model.options);
  std::string expected = model.run(compiled, 16);
  std::vector<KernelSet> sets = compiled.sets();
  CpuLevel other = cpu_level() == CpuLevel::v2 ? CpuLevel::v3 : CpuLevel::v2;
  if (other > best_cpu_level()) return;
  for (auto& [op, packed] : sets[0].packed) {
    int64_t k = packed.in[1]->shape[0].value(), n = packed.in[1]->shape[1].value();
    GemmArgs args{.m = 16, .n = n, .k = k, .a_row = k, .a_col = 1, .b_row = n, .b_col = 1};
    const Bound& raw = sets[0].options.constants[static_cast<size_t>(packed.constant)];
    args.b = raw.buffer.data<char>() + raw.offset;
    packed.data = allocate(static_cast<size_t>(2 * n * k * 4));
    pack_right(args, packed.data.data(), other);
    packed.layout = static_cast<PackedLayout>(other);
  }
  Saved saved(sets, model.options.constants);
  CHECK(saved.absent == 2);
  CompileOptions options = model.options;
  options.constants.assign(saved.constants.begin(), saved.constants.begin() + 4);
  CompiledGraph again(model.graph, options, saved.load(options));
  CHECK(model.run(again, 16) == expected);
  CHECK(model.run(again, 1) == model.run(compiled, 1));

  // A graph that is compiled again has its constants back.
  restore_constants(model.graph, saved.load(options, false, true), options.constants);
  CompiledGraph rebuilt(model.graph, options);
  CHECK(model.run(rebuilt, 16) == expected);
}

TEST_CASE("sets: equal kernels are kept once, and the bytes do not depend on the run") {
  auto layers = [](const Tensors& in) {
    Tensor x = in[0];
    for (int i = 0; i < 6; ++i) x = relu(matmul(x, in[1]) + x);
    return Tensors{x};
  };
  Graph graph = traced(layers, {{32, 32}, {32, 32}});
  std::string plans[2];
  for (std::string& plan : plans) {
    CompiledGraph compiled(graph, {.effort = Effort::e2});
    compiled.plan();
    SetBytes bytes = to_bytes(compiled.sets(), {}, kHere);
    CHECK(bytes.code[0].size() <= 2);
    plan = bytes.plan;
  }
  CHECK(plans[0] == plans[1]);
}

TEST_CASE("sets: damaged bytes are an error") {
  Mlp model;
  CompiledGraph compiled(model.graph, model.options);
  compiled.plan(model.at(16));
  Saved saved(compiled.sets(), model.options.constants);
  CHECK(saved.load(model.options).size() == 1);
  const std::string plan = saved.bytes.plan;
  for (size_t size = 0; size < plan.size(); size += 1 + size / 50) {
    saved.bytes.plan = plan.substr(0, size);
    CHECK_THROWS_AS(saved.load(model.options), UserError);
  }
  uint64_t draw = 1;
  for (int i = 0; i < 2000; ++i) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    saved.bytes.plan = plan;
    saved.bytes.plan[(draw >> 20) % plan.size()] ^= static_cast<char>(1 << (draw >> 60) % 8);
    try {
      std::vector<Bound> constants(saved.constants.begin(), saved.constants.begin() + 4);
      restore_constants(model.graph, saved.load(model.options, i % 2, true), constants);
    } catch (const UserError&) {  // what bad bytes should give
    }
  }
}

TEST_CASE("sets: a set without the kernels of its graph") {
  Graph graph = traced([](const Tensors& in) { return Tensors{exp(in[0])}; }, {{8}});
  CompileOptions options{.effort = Effort::e2};
  CompiledGraph compiled(graph, options);
  compiled.plan();
  std::vector<KernelSet> sets = Saved(compiled.sets(), {}).load(options);
  sets[0].kernels.clear();
  CompiledGraph broken(graph, options, std::move(sets));
  CHECK(error_in([&] { broken.plan(); }) ==
        "damaged: a set of kernels lacks one that its graph needs");
}

TEST_CASE("graph text: ranges of symbols are kept") {
  Dim s = Dim::symbol("s0", 1, 16), t = Dim::symbol("s1");
  Graph graph =
      traced([](const Tensors& in) { return Tensors{sum(in[0] + in[1])}; }, {{s, t}, {s, t}});
  std::string text = to_text(graph);
  CHECK(text.starts_with("func @main[s0: 1..16](%"));
  for (const Graph& again : {parse_graph(text), read_graph(text)}) {
    CHECK(to_text(again) == text);
    CHECK(again.types == graph.types);
  }
  CHECK_THROWS_AS(parse_graph("func @main[s0: 1](%x: f32[s0]) -> f32[s0] {\n  return %x\n}\n"),
                  UserError);
}
