// Memory of whole graphs: prediction against measurement, and against the lower bound.
#include <doctest/doctest.h>

#include <thread>

#include "base/error.h"
#include "compiler/compile_graph.h"
#include "compiler/memory_report.h"
#include "run_graph.h"
#include "runtime/memory_use.h"
#include "runtime/threads.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

/// `loss(data and weights)` with its data first, to new weights.
Graph training_step(const Function& loss, const std::vector<Shape>& shapes, int data) {
  std::vector<int> weights;
  for (int i = data; i < static_cast<int>(shapes.size()); ++i) weights.push_back(i);
  return traced(
      [&](const Tensors& in) {
        Tensors out = flat::grad(loss, weights)(in);
        for (size_t i = 0; i < out.size(); ++i)
          out[i] = in[static_cast<size_t>(weights[i])] - 0.1f * out[i];
        return out;
      },
      shapes);
}

Tensors mlp_loss(const Tensors& in) {
  Tensor h = relu(matmul(relu(matmul(in[0], in[2])), in[3]));
  Tensor e = matmul(h, in[4]) - in[1];
  return {mean(e * e)};
}

constexpr int64_t kBatch = 16, kTime = 128, kHeads = 4, kWidth = 128;

Tensor transformer_block(const Tensor& x, const Tensor* w) {
  Tensor projected = matmul(layer_norm(x), w[0]);
  auto head = [&](int64_t k) {
    Tensor part = slice(projected, {0, 0, k * kWidth}, {kBatch, kTime, (k + 1) * kWidth});
    return permute_dims(reshape(part, {kBatch, kTime, kHeads, kWidth / kHeads}), Perm{0, 2, 1, 3});
  };
  Tensor mixed = scaled_dot_product_attention(head(0), head(1), head(2));
  mixed = reshape(permute_dims(mixed, Perm{0, 2, 1, 3}), {kBatch, kTime, kWidth});
  Tensor y = x + matmul(mixed, w[1]);
  return y + matmul(gelu(matmul(layer_norm(y), w[2])), w[3]);
}

Tensors transformer_loss(const Tensors& in) {
  Tensor x = transformer_block(transformer_block(in[0], &in[1]), &in[5]);
  return {mean(x * x)};
}

struct Case {
  const char* name;
  Graph graph;
};

std::vector<Case> training_graphs() {
  std::vector<Shape> block{
      {kWidth, 3 * kWidth}, {kWidth, kWidth}, {kWidth, 4 * kWidth}, {4 * kWidth, kWidth}};
  std::vector<Shape> transformer{{kBatch, kTime, kWidth}};
  for (int i = 0; i < 2; ++i) transformer.insert(transformer.end(), block.begin(), block.end());
  return {{"mlp",
           training_step(mlp_loss, {{256, 784}, {256, 10}, {784, 256}, {256, 256}, {256, 10}}, 2)},
          {"transformer", training_step(transformer_loss, transformer, 1)}};
}

struct Ready {
  std::shared_ptr<const Plan> plan;
  Tensors values;
  std::vector<Bound> inputs, outputs;

  Ready(const Graph& graph, const CompileOptions& options)
      : plan(compile(graph, options)),
        values(random_inputs(graph, 3)),
        outputs(graph.outputs.size()) {
    for (const Tensor& x : values) {
      Buffer* buffer = slot_of(x).data.load();
      buffer->refs.fetch_add(1);
      inputs.push_back({BufferRef::adopt_reference(buffer), slot_of(x).offset});
    }
  }
  void run() { tn::run(*plan, inputs, nullptr, outputs); }
  std::string bytes() const {
    std::string all;
    for (const Bound& out : outputs)
      all.append(out.buffer.data<char>() + out.offset, out.buffer.bytes());
    return all;
  }
};

}  // namespace

TEST_CASE("memory: training steps stay within 10 % of the lower bound") {
  for (const Case& c : training_graphs()) {
    CAPTURE(c.name);
    MemoryReport report = memory_report(*compile(c.graph, {.effort = Effort::e2}));
    CAPTURE(to_text(report));
    CHECK(static_cast<double>(report.peak) <= 1.1 * static_cast<double>(report.lower_bound));
  }
}

/// The highest sum of live buffers in a run, the inputs left out.
static double measured_peak(const Graph& graph, Effort effort, MemoryReport& report) {
  Ready ready(graph, {.effort = effort});
  report = memory_report(*ready.plan);
  size_t before = active_memory();
  reset_peak_memory();
  ready.run();
  return static_cast<double>(peak_memory() - before);
}

TEST_CASE("memory: runs need what was predicted") {
  Graph loops = traced(
      [](const Tensors& in) {
        Tensor y = softmax(layer_norm(in[0]) * in[1]);
        return Tensors{sum(y * y, Axes{0}), exp(y) - in[0]};
      },
      {{300, 500}, {500}});
  Graph transformer = training_graphs()[1].graph;
  for (Effort effort : {Effort::e0, Effort::e2}) {
    MemoryReport report;
    double exact = measured_peak(loops, effort, report);
    CHECK(exact == static_cast<double>(report.peak));
    // Products pack their operands in memory of their own.
    double measured = measured_peak(transformer, effort, report);
    CAPTURE(to_text(report));
    CHECK(measured == doctest::Approx(static_cast<double>(report.peak)).epsilon(0.05));
  }
}

TEST_CASE("memory: what products and convolutions pack is predicted") {
  std::vector<Case> cases{
      {"mlp",
       traced([](const Tensors& in) { return Tensors{matmul(relu(matmul(in[0], in[1])), in[2])}; },
              {{512, 784}, {784, 512}, {512, 256}})},
      {"training", training_graphs()[0].graph},
      {"attention",
       traced([](const Tensors& in) { return Tensors{transformer_block(in[0], &in[1])}; },
              {{kBatch, kTime, kWidth},
               {kWidth, 3 * kWidth},
               {kWidth, kWidth},
               {kWidth, 4 * kWidth},
               {4 * kWidth, kWidth}})},
      {"swapped", traced(
                      [](const Tensors& in) {
                        Tensor x = permute_dims(reshape(in[0], {16, 32, 64, 4}), Perm{1, 0, 3, 2});
                        return Tensors{matmul(reshape(x, {512, 256}), in[1])};
                      },
                      {{16, 32, 256}, {256, 300}})},
      {"images", traced(
                     [](const Tensors& in) {
                       Tensor y = relu(conv2d(in[0], in[1], nullptr, 1, 1));
                       return Tensors{relu(conv2d(y, in[2], nullptr, 1, 1))};
                     },
                     {{8, 16, 32, 32}, {32, 16, 3, 3}, {32, 32, 3, 3}})},
  };
  for (const Case& c : cases) {
    MemoryReport report;
    double measured = measured_peak(c.graph, Effort::e2, report);
    CAPTURE(c.name);
    CAPTURE(to_text(report));
    CHECK(measured == doctest::Approx(static_cast<double>(report.peak)).epsilon(0.05));
  }
}

TEST_CASE("memory: one plan runs on several threads at once") {
  Graph graph = training_graphs()[0].graph;
  for (Effort effort : {Effort::e0, Effort::e2}) {
    Ready first(graph, {.effort = effort});
    first.run();
    std::vector<std::string> found(3);
    std::vector<std::thread> threads;
    for (std::string& bytes : found)
      threads.emplace_back([&] {
        std::vector<Bound> outputs(first.outputs.size());
        for (int i = 0; i < 3; ++i) run(*first.plan, first.inputs, nullptr, outputs);
        for (const Bound& out : outputs)
          bytes.append(out.buffer.data<char>() + out.offset, out.buffer.bytes());
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& bytes : found) CHECK(bytes == first.bytes());
  }
}

TEST_CASE("memory: the number of threads changes no bit") {
  int before = num_threads();
  for (const Case& c : training_graphs())
    for (Effort effort : {Effort::e0, Effort::e2}) {
      Ready ready(c.graph, {.effort = effort});
      set_num_threads(1);
      ready.run();
      std::string expected = ready.bytes();
      for (int threads : {2, 4, 16}) {
        CAPTURE(threads);
        set_num_threads(threads);
        ready.run();
        CHECK(ready.bytes() == expected);
      }
    }
  set_num_threads(before);
}

TEST_CASE("memory: donated weights and momenta are updated in place") {
  Graph update = traced(
      [](const Tensors& in) {
        Tensor momentum = in[1] * 0.9f + in[2];
        return Tensors{in[0] - momentum * 0.1f, momentum};
      },
      {{64, 100}, {64, 100}, {64, 100}});
  for (Effort effort : {Effort::e0, Effort::e2}) {
    Ready kept(update, {.effort = effort}),
        given(update, {.effort = effort, .donated = {true, true, false}});
    CHECK(memory_report(*given.plan).peak == 0);
    kept.run();
    given.values.clear();  // the only references are now those of the call
    const void *weights = given.inputs[0].buffer.data(), *momenta = given.inputs[1].buffer.data();
    given.run();
    CHECK(given.outputs[0].buffer.data() == weights);
    CHECK(given.outputs[1].buffer.data() == momenta);
    CHECK(given.bytes() == kept.bytes());
  }
}

TEST_CASE("memory: the report names steps, sizes and the user's lines") {
  Ready ready(training_graphs()[1].graph, {.effort = Effort::e2});
  std::string text = to_text(memory_report(*ready.plan));
  CAPTURE(text);
  CHECK(text.starts_with("peak "));
  CHECK(text.find("lower bound") != text.npos);
  CHECK(text.find("test_memory_graphs.cpp:") != text.npos);
}

TEST_CASE("memory: a plan that does not fit says what needs the memory") {
  Ready ready(training_graphs()[1].graph, {});
  size_t limit = set_memory_limit(active_memory() + 1000);
  std::string text;
  try {
    ready.run();
  } catch (const UserError& error) {
    CHECK(error.fault() == Fault::memory);
    text = error.what();
  }
  set_memory_limit(limit);
  CHECK(text.starts_with("allocate: not enough memory"));
  CHECK(text.find("most at step") != text.npos);
}

TEST_CASE("memory: a large result that is dropped comes back on the same pages") {
  int64_t n = 32 << 20;
  Graph graph =
      traced([&](const Tensors& in) { return Tensors{broadcast_to(in[0], {n}) + 1}; }, {{}});
  Ready ready(graph, {});
  ready.run();
  const void* first = ready.outputs[0].buffer.data();
  ready.outputs[0] = {};
  ready.run();
  CHECK(ready.outputs[0].buffer.data() == first);
  CHECK(ready.outputs[0].buffer->recycled);
  ready.outputs[0] = {};
  Tensor eager = full({n}, 3.f).eval();
  CHECK(eager.data() == first);
}
