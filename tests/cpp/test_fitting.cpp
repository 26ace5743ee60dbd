// Plans that compute values again to need less memory.
#include <doctest/doctest.h>

#include <numeric>

#include "compiler/fitting.h"
#include "compiler/memory_report.h"
#include "compiler/plan_text.h"
#include "compiler/report.h"
#include "errors.h"
#include "fuzz_graph.h"
#include "run_graph.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

/// New weights of a deep perceptron.
Graph perceptron_step(int layers, int64_t batch, int64_t width) {
  std::vector<Shape> shapes(static_cast<size_t>(layers), Shape{width, width});
  shapes.push_back({batch, width});
  auto loss = [=](const Tensors& in) {
    Tensor x = in.back();
    for (int i = 0; i < layers; ++i) x = gelu(matmul(x, in[static_cast<size_t>(i)]));
    return Tensors{mean(x * x)};
  };
  std::vector<int> weights(static_cast<size_t>(layers));
  std::iota(weights.begin(), weights.end(), 0);
  return traced(
      [&](const Tensors& in) {
        Tensors out = flat::grad(loss, weights)(in);
        for (size_t i = 0; i < out.size(); ++i) out[i] = in[i] - 0.1f * out[i];
        return out;
      },
      shapes);
}

Compilation compiled_within(const Graph& graph, int64_t limit) {
  CompileOptions options{.effort = Effort::e2, .memory_limit = limit};
  // Weights are given away: what is left to choose are activations.
  options.donated.assign(static_cast<size_t>(graph.inputs()), true);
  return compilation_of(graph, options);
}

std::shared_ptr<const Plan> plan_within(const Graph& graph, int64_t limit) {
  return compiled_within(graph, limit).plan;
}

std::vector<std::string> bits_of(const Plan& plan, const Graph& graph, const Tensors& in) {
  return bytes_of(run_plan(plan, graph, in));
}

}  // namespace

TEST_CASE("fitting: a deep perceptron fits into less and less, with the same bits") {
  Graph graph = perceptron_step(12, 256, 64);
  Tensors in = random_inputs(graph, 1);
  auto plain = plan_within(graph, 0);
  std::vector<std::string> expected = bits_of(*plain, graph, in);
  int64_t peak = memory_needed(*plain);
  for (double part : {0.7, 0.5, 0.35}) {
    CAPTURE(part);
    auto limit = static_cast<int64_t>(part * static_cast<double>(peak));
    Compilation made = compiled_within(graph, limit);
    CHECK(memory_needed(*made.plan) <= limit);
    CHECK(bits_of(*made.plan, graph, in) == expected);
    CHECK(std::ranges::count(decisions_of(made), "memory", &Decision::pass) > 0);
  }
}

TEST_CASE("fitting: a limit that fits changes nothing") {
  Graph graph = perceptron_step(3, 32, 16);
  Compilation plain = compiled_within(graph, 0);
  Compilation limited = compiled_within(graph, memory_needed(*plain.plan));
  CHECK(to_text(*limited.plan) == to_text(*plain.plan));
  CHECK(optimized_text(limited) == optimized_text(plain));
}

TEST_CASE("fitting: where nothing fits, the plan is the smallest that was found") {
  Graph graph = perceptron_step(6, 256, 64);
  Tensors in = random_inputs(graph, 1);
  auto plain = plan_within(graph, 0), least = plan_within(graph, 1000);
  CHECK(memory_needed(*least) < memory_needed(*plain));
  CHECK(memory_needed(*least) > 1000);
  CHECK(bits_of(*least, graph, in) == bits_of(*plain, graph, in));
}

TEST_CASE("fitting: random graphs give the same bits with less memory") {
  int less = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    Graph graph = fuzz_graph(seed);
    Tensors in = fuzz_inputs(graph, seed);
    auto plain = compile(graph, {.effort = Effort::e2});
    std::vector<std::string> expected = bits_of(*plain, graph, in);
    int64_t peak = memory_needed(*plain);
    for (int64_t percent : {70, 50, 30}) {
      CAPTURE(percent);
      auto plan = compile(graph, {.effort = Effort::e2, .memory_limit = peak * percent / 100 + 1});
      CHECK(bits_of(*plan, graph, in) == expected);
      CHECK(memory_needed(*plan) <= peak);
      less += memory_needed(*plan) < peak;
    }
  }
  CHECK(less > 10);
}

TEST_CASE("fitting: a limit among the settings of a compiled function") {
  auto f = [](const Tensors& in) {
    Tensor early = tanh(matmul(in[0], in[1])), x = early;
    for (int i = 0; i < 4; ++i) x = tanh(matmul(x, in[1]));
    return Tensors{sum(x * early)};
  };
  Tensors in{ones({256, 64}), full({64, 64}, 0.01f)};
  CompiledFunction plain = compile(f);
  std::string expected = bytes_of(plain(in)[0]);
  CompiledFunction limited = compile(f, {.memory_limit = 160 << 10});
  CHECK(bytes_of(limited(in)[0]) == expected);
  CHECK(contains(limited.show("decisions", in), "compute tanh f32[256,64] again"));
  CHECK(limited.stats().replans == 0);
  CompiledFunction impossible = compile(f, {.memory_limit = 1000});
  std::string error = error_in([&] { impossible(in); });
  CHECK(contains(error, "memory_limit is 1000 bytes, the smallest peak is "));
  CHECK(contains(error, "most at step"));
}

/// v0 and v1, which is made of it, are read early and at the end; between them others need memory.
static StoredValues early_and_late() {
  StoredValues values;
  for (double cost : {1000.0, 10.0, 1000.0, 1000.0, 1000.0, 1000.0})
    values.all.push_back({.bytes = 100, .cost = cost});
  std::vector<std::vector<int>> from{{}, {0}, {0, 1}, {2}, {3}, {0, 1, 4}};
  for (int i = 0; i < 6; ++i) {
    values.all[static_cast<size_t>(i)].from = from[static_cast<size_t>(i)];
    values.items.push_back({from[static_cast<size_t>(i)], {i}});
  }
  values.all[5].kept = true, values.all[5].bytes = 0;
  return values;
}

/// The values that are computed again.
static std::vector<int> again(const Residence& residence) {
  std::vector<int> list;
  for (const Turn& turn : residence.turns)
    if (turn.item < 0) list.push_back(turn.value);
  return list;
}

TEST_CASE("fitting: values are dropped by what they free and what they cost") {
  StoredValues values = early_and_late();
  std::vector<int32_t> order{0, 1, 2, 3, 4, 5};
  Residence plain = reside(values, order, 1000);
  CHECK(again(plain).empty());
  Residence less = reside(values, order, 300);
  CHECK(again(less) == std::vector{1});
  CHECK(less.cost == 10);
  CHECK(less.peak < plain.peak);
  values.all[1].repeatable = false;
  CHECK(again(reside(values, order, 300)) == std::vector{0});
}

TEST_CASE("fitting: with hardly any memory a run still ends") {
  StoredValues values = early_and_late();
  std::vector<int32_t> order{0, 1, 2, 3, 4, 5};
  CHECK(reside(values, order, 0).turns.size() < 100);
}

TEST_CASE("fitting: a long chain is walked without recursion") {
  constexpr int kLength = 400;
  StoredValues values;
  std::vector<int32_t> order;
  for (int i = 0; i < 2 * kLength; ++i) {
    int mirror = 2 * kLength - 1 - i;
    std::vector<int> from;
    if (i > 0) from.push_back(i - 1);
    if (i >= kLength) from.push_back(mirror);
    values.all.push_back({.bytes = 1, .cost = 1, .from = from});
    values.items.push_back({from, {i}});
    order.push_back(i);
  }
  Residence residence = reside(values, order, 60);
  CHECK(residence.turns.size() >= order.size());
}
