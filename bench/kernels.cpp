// How fast kernels run through the whole path, beside what memory and plain loops give.
#include <tenon/tenon.h>

#include <cmath>
#include <cstring>

#include "goal.h"

namespace tn::bench {

static std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  uint32_t state = 1;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return values;
}

static void count_bytes(benchmark::State& state, int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

/// What memory gives: reads and writes of a copy.
static void copy_of_memory(benchmark::State& state) {
  std::vector<float> x = numbers(state.range(0)), y(x.size());
  for (auto _ : state) {
    std::memcpy(y.data(), x.data(), x.size() * 4);
    benchmark::ClobberMemory();
  }
  count_bytes(state, state.range(0) * 8);
}
BENCHMARK(copy_of_memory)->Arg(1 << 16)->Arg(1 << 24)->UseRealTime();

static void add_two(benchmark::State& state) {
  Tensor x = array(numbers(state.range(0)), {state.range(0)}), y = x + 1.0f;
  y.eval();
  for (auto _ : state) (x + y).eval();
  count_bytes(state, state.range(0) * 12);
}
BENCHMARK(add_two)->Arg(1 << 16)->Arg(1 << 24)->UseRealTime();

/// Twenty ops in one pass over memory.
static void chain_of_twenty(benchmark::State& state) {
  Tensor x = array(numbers(state.range(0)), {state.range(0)});
  for (auto _ : state) {
    Tensor y = x;
    for (int i = 0; i < 5; ++i) y = sqrt(abs(y * 1.01f + 0.1f));
    y.eval();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * 20);
}
BENCHMARK(chain_of_twenty)->Arg(1 << 16)->Arg(1 << 24)->UseRealTime();

/// The rival: one hand-written loop on one thread.
static void chain_of_twenty_by_hand(benchmark::State& state) {
  std::vector<float> x = numbers(state.range(0)), y(x.size());
  for (auto _ : state) {
    for (size_t i = 0; i < x.size(); ++i) {
      float v = x[i];
      for (int k = 0; k < 5; ++k) v = std::sqrt(std::fabs(v * 1.01f + 0.1f));
      y[i] = v;
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * 20);
}
BENCHMARK(chain_of_twenty_by_hand)->Arg(1 << 16)->Arg(1 << 24)->UseRealTime();

using Function = Tensor (*)(const Tensor& x);

static void over_rows(benchmark::State& state, Function f) {
  int64_t rows = state.range(0), columns = state.range(1);
  Tensor x = array(numbers(rows * columns), {rows, columns});
  for (auto _ : state) f(x).eval();
  count_bytes(state, rows * columns * 4);
}

static void both_sizes(benchmark::internal::Benchmark* b) {
  b->Args({64, 1024})->Args({16384, 1024})->UseRealTime();
}
BENCHMARK_CAPTURE(over_rows, sum, [](const Tensor& x) { return sum(x); })->Apply(both_sizes);
BENCHMARK_CAPTURE(over_rows, max, [](const Tensor& x) { return max(x); })->Apply(both_sizes);
BENCHMARK_CAPTURE(over_rows, sum_of_rows, [](const Tensor& x) {
  return sum(x, Axes(1));
})->Apply(both_sizes);
BENCHMARK_CAPTURE(over_rows, sum_of_columns, [](const Tensor& x) {
  return sum(x, Axes(0));
})->Apply(both_sizes);
BENCHMARK_CAPTURE(over_rows, softmax, [](const Tensor& x) {
  return softmax(x);
})->Apply(both_sizes);
BENCHMARK_CAPTURE(over_rows, layer_norm, [](const Tensor& x) {
  return layer_norm(x);
})->Apply(both_sizes);

static void function_of(benchmark::State& state, Function f) {
  Tensor x = array(numbers(1 << 14), {1 << 14});
  for (auto _ : state) f(x).eval();
  state.SetItemsProcessed(state.iterations() << 14);
}
BENCHMARK_CAPTURE(function_of, exp, [](const Tensor& x) { return exp(x); })->UseRealTime();
BENCHMARK_CAPTURE(function_of, log1p, [](const Tensor& x) { return log1p(x); })->UseRealTime();
BENCHMARK_CAPTURE(function_of, sin, [](const Tensor& x) { return sin(x); })->UseRealTime();
BENCHMARK_CAPTURE(function_of, tanh, [](const Tensor& x) { return tanh(x); })->UseRealTime();
BENCHMARK_CAPTURE(function_of, erf, [](const Tensor& x) { return erf(x); })->UseRealTime();

static void product(benchmark::State& state) {
  int64_t n = state.range(0);
  Tensor x = array(numbers(n * n), {n, n});
  for (auto _ : state) matmul(x, x).eval();
  double flops = 2.0 * static_cast<double>(n * n * n) * static_cast<double>(state.iterations());
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
}
BENCHMARK(product)->Arg(64)->Arg(256)->Arg(1024)->UseRealTime();

}  // namespace tn::bench
