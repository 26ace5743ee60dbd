// What gradients and batches cost in the core: recording them, and running them with a cached plan.
#include <tenon/tenon.h>

#include "goal.h"

namespace tn::bench {

constexpr int kLayers = 8, kWidth = 64;

static Tensor filled(const Shape& shape, float value) { return full(shape, value).eval(); }

/// Weights and biases of a small network.
static Tensors network() {
  Tensors params;
  for (int i = 0; i < kLayers; ++i) {
    params.push_back(filled({kWidth, kWidth}, 0.01f));
    params.push_back(filled({kWidth}, 0.1f));
  }
  return params;
}

static Function squared_error(const Tensor& x, const Tensor& y) {
  return [x, y](const Tensors& params) {
    Tensor h = x;
    for (int i = 0; i < kLayers; ++i) {
      if (i) h = relu(h);
      h = matmul(h, params[2 * i]) + params[2 * i + 1];
    }
    Tensor d = h - y;
    return Tensors{mean(d * d)};
  };
}

static void record_network(benchmark::State& state) {
  Tensors params = network();
  auto f = squared_error(filled({1, kWidth}, 1), filled({1, kWidth}, 2));
  for (auto _ : state) benchmark::DoNotOptimize(f(params));
}
BENCHMARK(record_network);

static void record_network_gradient(benchmark::State& state) {
  Tensors params = network();
  auto f = value_and_grad(squared_error(filled({1, kWidth}, 1), filled({1, kWidth}, 2)));
  for (auto _ : state) benchmark::DoNotOptimize(f(params));
}
BENCHMARK(record_network_gradient);

static void run_network_gradient(benchmark::State& state) {
  Tensors params = network();
  auto f = value_and_grad(
      squared_error(filled({state.range(0), kWidth}, 1), filled({state.range(0), kWidth}, 2)));
  for (auto _ : state) {
    auto [values, gradients] = f(params);
    gradients.push_back(values[0]);
    eval(gradients);
  }
}
BENCHMARK(run_network_gradient)->Arg(1)->Arg(64)->Arg(256);

/// Time per op of a chain, of which each costs a product backwards, or two and a sum.
static void record_chain_gradient(benchmark::State& state) {
  Tensor x = filled({16}, 1);
  int64_t length = state.range(0);
  auto f = grad([length](const Tensor& x) {
    Tensor y = x;
    for (int64_t i = 0; i < length; ++i) y = y * x;
    return sum(y);
  });
  for (auto _ : state) benchmark::DoNotOptimize(f(x));
  state.SetItemsProcessed(state.iterations() * length);
}
BENCHMARK(record_chain_gradient)->Arg(10)->Arg(100)->Arg(1000);

static void record_vmap_of_matmul(benchmark::State& state) {
  Tensor x = filled({8, 16, 16}, 1);
  auto f = vmap([](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  for (auto _ : state) benchmark::DoNotOptimize(f(x, x));
}
BENCHMARK(record_vmap_of_matmul);

}  // namespace tn::bench
