// Compiled functions called by many threads at once. `make tsan` runs this under ThreadSanitizer.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "base/interrupt.h"
#include "compiler/compile_graph.h"
#include "ir/graph.h"
#include "tenon/tenon.h"

namespace tn {

namespace {

constexpr int kThreads = 8, kCalls = 2000;

/// Calls `work(thread, call)` from all threads, and throws nothing away: the first fault is told.
template <class Work>
std::string on_threads(int calls, Work&& work) {
  std::atomic<bool> failed = false;
  std::string fault;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      try {
        for (int i = 0; i < calls && !failed; ++i) work(t, i);
      } catch (const std::exception& error) {
        if (!failed.exchange(true)) fault = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return fault;
}

float first(const Tensor& t) { return static_cast<const float*>(t.data())[0]; }

void expect(float got, float want) {
  if (got != want)
    throw std::runtime_error(std::to_string(got) + " is not " + std::to_string(want));
}

Tensors scaled_sum(const Tensors& in) { return {sum(in[0] * 2 + in[1])}; }

}  // namespace

TEST_CASE("threads: mixed calls of shared compiled functions") {
  CompiledFunction shared = compile(scaled_sum),
                   shapeless = compile(scaled_sum, {.shapeless = true});
  auto of_shared = grad([&](const Tensors& in) { return shared(in); });
  auto work = [&](int thread, int call) {
    auto n = static_cast<int64_t>(1 + (thread * 7 + call) % 5);
    auto sum_of = static_cast<float>(n);
    Tensor x = full({n}, 1.f), y = full({n}, 3.f);
    switch (call % 5) {
      case 0:
        return expect(first(shared({x, y})[0]), 5 * sum_of);
      case 1:
        return expect(first(shapeless({x, y})[0]), 5 * sum_of);
      case 2:
        return expect(first(of_shared({x, y})[0]), 2);
      case 3: {
        if (call % 100 != 3) return expect(first(sum(x + y).eval()), 4 * sum_of);
        auto factor = static_cast<float>(call);
        auto fresh = compile([factor](const Tensors& in) { return Tensors{in[0] * factor}; });
        return expect(first(fresh({x})[0]), factor);
      }
      default:
        return expect(first(compile(scaled_sum)({x, y})[0]), 5 * sum_of);
    }
  };
  CHECK(on_threads(kCalls, work) == "");
  CHECK(shared.stats().traces >= 1);
}

TEST_CASE("threads: late plans and checks") {
  CompiledFunction late = compile(scaled_sum, {.timeout = 1e-9});
  CompiledFunction checked = compile(scaled_sum, {.check = true});
  auto work = [&](int thread, int call) {
    auto n = static_cast<int64_t>(1 + (thread + call) % 3);
    Tensor x = full({n}, 1.f), y = full({n}, 3.f);
    expect(first((call % 2 ? late : checked)({x, y})[0]), 5 * static_cast<float>(n));
  };
  CHECK(on_threads(100, work) == "");
}

TEST_CASE("threads: explanations and statistics while others call") {
  CompiledFunction f = compile(scaled_sum);
  auto work = [&](int thread, int call) {
    Tensor x = full({1 + call % 3}, 1.f);
    if (thread == 0) {
      if (f.explain({x, x}).find("kernel") == std::string::npos)
        throw std::runtime_error("no text");
      f.stats(), f.why_recompiled();
    } else {
      f({x, x});
    }
  };
  CHECK(on_threads(20, work) == "");
}

TEST_CASE("threads: a plan is made once, and by another thread when its maker stops") {
  Graph graph = parse_graph(R"(
    func @main(%x: f32[4,6]) -> f32[4] {
      %0 = exp %x : f32[4,6]
      %1 = sum %0 {axis=[1]} : f32[4]
      return %1
    })");
  static const std::atomic<bool> stop = true;
  for (int round = 0; round < 20; ++round) {
    CompiledGraph compiled(graph, {.effort = Effort::e2});
    std::atomic<int> stopped = 0;
    std::atomic<const Plan*> plan = nullptr;
    auto work = [&](int thread, int) {
      if (thread % 2) stop_wanted = &stop;
      try {
        const Plan* own = compiled.plan().get();
        const Plan* first = nullptr;
        if (!plan.compare_exchange_strong(first, own) && first != own)
          throw std::runtime_error("two plans");
      } catch (const Stopped&) {
        ++stopped;
      }
    };
    REQUIRE(on_threads(1, work) == "");
    CHECK(plan.load());
    CHECK(stopped <= kThreads / 2);
    CHECK(compiled.planned() == 1);
  }
}

}  // namespace tn
