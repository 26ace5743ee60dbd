// compile on the C++ side: values, traces, composition, threads.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "errors.h"
#include "eval/background.h"
#include "plan/backend.h"
#include "runtime/memory_use.h"
#include "tenon/tenon.h"

using namespace tn;

static Tensors soft(const Tensors& x) {
  Tensor e = exp(x[0] - max(x[0], Axes(-1), true));
  return {e / sum(e, Axes(-1), {}, true), sum(x[0])};
}

TEST_CASE("a compiled function has the bits of the plain one, at every level") {
  Tensor x = array<float>({1, 2, 3, -4, 5, 6.5f}, {2, 3});
  Tensors want = soft({x});
  for (int level = 0; level <= 5; ++level) {
    CompiledFunction f = compile(soft, level);
    for (int run = 0; run < 2; ++run) {
      Tensors got = f({x});
      CHECK(got[0].is_evaluated());
      CHECK(got[0].to_vector<float>() == want[0].to_vector<float>());
      CHECK(got[1].item<float>() == want[1].item<float>());
    }
  }
}

TEST_CASE("a function is traced once for every combination of types") {
  int traces = 0;
  CompiledFunction f = compile([&](const Tensors& x) {
    ++traces;
    return Tensors{x[0] + 1};
  });
  for (int i = 0; i < 3; ++i) f({ones({2, 3}) * i});
  f({ones({3})}), f({ones({3}, DType::f64)});
  CHECK(f({ones({3})})[0].to_vector<float>() == std::vector<float>{2, 2, 2});
  CHECK(traces == 3);
}

TEST_CASE("what is closed over is constant, and freed with the function") {
  int64_t before = active_memory();
  {
    Tensor k = ones({1000}) * 2;
    CompiledFunction f = compile([k](const Tensors& x) { return Tensors{x[0] * k, k}; });
    Tensors got = f({ones({1000})});
    CHECK(got[0].to_vector<float>()[7] == 2);
    CHECK(got[1].data() == k.data());
  }
  CHECK(active_memory() == before);
}

TEST_CASE("results take the memory of donated arguments") {
  auto f = compile([](Tensor x, Tensor y) { return x * 2 + y; }, {.donated = 1});
  Tensor x = ones({1000}).eval(), y = ones({1000}).eval();
  const void* memory = x.data();
  Tensor made = f(std::move(x), y);
  CHECK(made.data() == memory);
  CHECK(y.to_vector<float>()[999] == 1);
  CHECK(f(made, y).data() != memory);  // an argument that is not moved in is not donated
  CHECK(made.to_vector<float>()[999] == 3);
  auto list = compile([](Tensors x) { return x[0] * 2 + x[1]; }, {.donated = 1});
  Tensors args{ones({1000}).eval(), y};
  memory = args[0].data();
  CHECK(list(std::move(args)).data() == memory);
}

TEST_CASE("derivatives and batches of compiled functions do not trace again") {
  int traces = 0;
  CompiledFunction f = compile([&](const Tensors& x) {
    ++traces;
    return Tensors{sum(x[0] * x[0] * x[0])};
  });
  Tensor x = array({1.f, 2.f});
  for (int i = 0; i < 2; ++i)
    CHECK(grad(f)({x})[0].to_vector<float>() == std::vector<float>{3, 12});
  CHECK(traces == 1);
  CHECK(compile(grad(f))({x})[0].to_vector<float>() == std::vector<float>{3, 12});
  CHECK(vmap(grad(f))({array<float>({1, 2, 3, 4}, {2, 2})})[0].to_vector<float>() ==
        std::vector<float>{3, 12, 27, 48});
}

TEST_CASE("stages have names") {
  CompiledFunction f = compile(soft);
  Tensor x = ones({2, 3});
  CHECK(f.show("graph", {x}).starts_with("func @main(%x0: f32[2,3])"));
  CHECK(f.show("loops", {x}).find("exp") != std::string::npos);
  CHECK_THROWS_WITH_AS(
      f.show("code", {x}),
      "show: no stage \"code\": there are graph, optimized, loops, kernels, plan, memory, "
      "decisions, sharding, numpy, torch, jax",
      UserError);
}

TEST_CASE("stages of functions whose sizes vary are read from the plan that runs") {
  CompiledFunction f = compile(soft);
  Executable saved = compile_ahead(soft, {{.shape = {{1, 4, 9}, 3}}});
  for (int64_t rows : {2, 4, 5}) f({ones({rows, 3})}), saved({ones({rows, 3})});
  auto requests = [] {
    KernelCacheStats now = generator_of(host_target()).cache_stats();
    return now.hits + now.compiled + now.from_disk;
  };
  compiling_worker().wait();  // of other tests
  int64_t before = requests();
  for (const char* stage : {"optimized", "loops", "plan", "memory"}) {
    CAPTURE(stage);
    CHECK(!f.show(stage, {ones({5, 3})}).empty());
    CHECK(!saved.show(stage).empty());
  }
  f.show("decisions", {ones({5, 3})}), saved.show("decisions");
  CHECK(requests() == before);
  CHECK(f.show("graph", {ones({5, 3})}).starts_with("func @main(%x0: f32[s"));
}

TEST_CASE("a value is not known while a function is compiled") {
  CompiledFunction f = compile([](const Tensors& x) { return Tensors{x[0] * x[0].item<float>()}; });
  CHECK_THROWS_AS(f({Tensor(1.f)}), UserError);
  CHECK_THROWS_AS(f({Tensor()}), UserError);
  CHECK_THROWS_AS(compile(soft, 6), UserError);
  CHECK((Tensor(2.f) * 3).item<float>() == 6);  // the trace is over
}

TEST_CASE("threads share a compiled function") {
  CompiledFunction f = compile([](const Tensors& x) { return Tensors{exp(x[0]) + x[0]}; });
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i)
        wrong += f({zeros({(i + t) % 7 + 1})})[0].to_vector<float>()[0] != 1;
    });
  threads.clear();
  CHECK(wrong == 0);
}

TEST_CASE("a size that varies becomes a symbol: the third size is not traced") {
  int traced = 0;
  CompiledFunction f = compile([&](const Tensors& in) {
    ++traced;
    return Tensors{tanh(matmul(in[0], in[1])) + in[2]};
  });
  Tensor w = full({3, 4}, 0.5f), b = full({4}, 1.f);
  for (int64_t batch : {2, 5, 7, 1, 9}) {
    Tensor x = full({batch, 3}, 2.f);
    Tensor y = f({x, w, b})[0];
    CHECK(y.shape() == Shape{batch, 4});
    CHECK(all(equal(y, tanh(matmul(x, w)) + b)).item<bool>());
  }
  CHECK(traced == 2);
}

TEST_CASE("shapeless functions are traced once, and say why they were") {
  auto f = compile([](Tensor x) { return exp(x) * 2; }, {.shapeless = true});
  for (int64_t n : {3, 4, 9}) CHECK(f(ones({n})).shape() == Shape{n});
  CHECK(f.stats().traces == 1);
  CHECK(f.stats().hits == 2);
  f(ones({3}, DType::f64));
  CHECK(f.stats().traces_by_reason.at("dtype") == 1);
  CHECK(f.why_recompiled()[1].starts_with("argument 0.dtype was float32, now float64"));
}

TEST_CASE("disabled, a compiled function is the function") {
  int calls = 0;
  CompiledFunction f = compile([&](const Tensors& x) { return ++calls, Tensors{x[0] + 1}; });
  f({ones({2})}), f({ones({2})});
  CHECK(calls == 1);
  CHECK(!disable_compile());
  f({ones({2})}), f({ones({2})});
  CHECK(calls == 3);
  CHECK(disable_compile(false));
  CHECK(f({ones({2})})[0].to_vector<float>() == std::vector<float>{2, 2});
  CHECK(calls == 3);
}

TEST_CASE("compile: modes give the same values, and others are refused") {
  auto f = [](const Tensors& x) { return Tensors{sum(exp(x[0]) * 2)}; };
  Tensor x = ones({8});
  float wanted = compile(f)({x})[0].item<float>();
  for (const char* mode : {"default", "reduce-overhead", "max-autotune"}) {
    CompiledFunction made = compile(f, {.mode = mode});
    for (int i = 0; i < 3; ++i) CHECK(made({x})[0].item<float>() == wanted);
  }
  CHECK(problem_in([&] { compile(f, {.mode = "fast"}); }) ==
        "compile: mode is one of default, reduce-overhead, max-autotune, not 'fast'");
}
