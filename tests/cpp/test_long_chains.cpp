// Transforms of long chains: on a small stack, so that nothing may recurse, and giving memory back.
#include <doctest/doctest.h>
#include <pthread.h>

#include <functional>

#include "runtime/memory_use.h"
#include "tenon/tenon.h"

using namespace tn;

static constexpr int kLength = 200'000;
#ifdef __SANITIZE_ADDRESS__
static constexpr size_t kStack = 2 << 20;  // its frames are larger
#else
static constexpr size_t kStack = 256 << 10;
#endif

/// Runs `f` in a thread with a stack of kStack bytes.
static void on_small_stack(std::function<void()> f) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, kStack) == 0);
  pthread_t thread;
  auto run = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &f) == 0);
  pthread_attr_destroy(&attributes);
  pthread_join(thread, nullptr);
}

/// x1 * x2 * x2 * ..., `length` times.
static Function products(int length) {
  return [length](const Tensors& x) {
    Tensor y = x[0];
    for (int i = 0; i < length; ++i) y = y * x[1];
    return Tensors{y};
  };
}

static float first(const Tensor& x) { return x.to_vector<float>()[0]; }

TEST_CASE("a gradient through a long chain, on a small stack") {
  size_t before = active_memory();
  on_small_stack([] {
    Tensors g = flat::grad(products(kLength), {0, 1})({Tensor(2.0f), Tensor(1.0f)});
    CHECK(g[0].item<float>() == 1.0f);
    CHECK(g[1].item<float>() == 2.0f * kLength);
  });
  CHECK(active_memory() == before);
}

TEST_CASE("a gradient that nobody asks for is released, on a small stack") {
  size_t before = active_memory();
  on_small_stack([] {
    Tensors g = flat::grad(products(kLength))({Tensor(2.0f), Tensor(1.0f)});
    CHECK(g.size() == 1);
  });
  CHECK(active_memory() == before);
}

TEST_CASE("jvp and vmap of a long chain, on a small stack") {
  size_t before = active_memory();
  on_small_stack([] {
    flat::Derivatives d =
        flat::jvp(products(kLength), {Tensor(2.0f), Tensor(1.0f)}, {Tensor(3.0f), Tensor()});
    CHECK(d.derivatives[0].item<float>() == 3.0f);
    Tensors batch =
        flat::vmap(products(kLength), {0, Maybe<int>()})({array({2.f, 3.f}), Tensor(1.0f)});
    CHECK(batch[0].to_vector<float>() == std::vector<float>{2, 3});
    Tensors each =
        flat::vmap(flat::grad(products(kLength)), {0, 0})({array({2.f, 3.f}), array({1.f, 1.f})});
    CHECK(each[0].to_vector<float>() == std::vector<float>{1, 1});
  });
  CHECK(active_memory() == before);
}

TEST_CASE("a second derivative of a long chain, on a small stack") {
  static constexpr int kShort = 20'000;
  size_t before = active_memory();
  on_small_stack([] {
    auto slope = [](const Tensors& x) { return flat::grad(products(kShort), {1})(x); };
    Tensors g = flat::grad(slope, {0, 1})({Tensor(2.0f), Tensor(1.0f)});
    CHECK(g[0].item<float>() == kShort);
    double bend = 2.0 * kShort * (kShort - 1.0);  // a sum of as many floats
    CHECK(g[1].item<float>() == doctest::Approx(bend).epsilon(1e-4));
  });
  CHECK(active_memory() == before);
}

TEST_CASE("a pullback holds what it needs, and no longer than it lives") {
  constexpr int64_t kSize = 1 << 20;
  size_t before = active_memory();
  {
    Tensor x = full({kSize}, 2.0f).eval();
    size_t with_x = active_memory();
    {
      flat::Pullback pullback([](const Tensors& x) { return Tensors{exp(x[0])}; }, {x}, {0});
      Tensor value = pullback.outputs()[0].eval();
      CHECK(active_memory() <= with_x + 2 * kSize * sizeof(float));
      Tensor once = pullback({full({kSize}, 1.0f)})[0], again = pullback({full({kSize}, 2.0f)})[0];
      CHECK(first(again) == 2 * first(once));
    }
    CHECK(active_memory() == with_x);
    Tensors g = flat::grad([](const Tensors& x) { return Tensors{sum(exp(x[0]) * x[0])}; })({x});
    g[0].eval();
    CHECK(active_memory() == with_x + kSize * sizeof(float));
  }
  CHECK(active_memory() == before);
}
