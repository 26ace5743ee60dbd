// backward() on the C++ side: values, leaves, what is let go of, compiled functions, threads.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "errors.h"
#include "runtime/memory_use.h"
#include "tenon/tenon.h"

using namespace tn;

static Tensor variable(std::initializer_list<float> values) {
  Tensor made = array(values);
  require_grad(made);
  return made;
}

static std::vector<float> gradient(const Tensor& x) { return grad(x).to_vector<float>(); }

TEST_CASE("gradients are those of grad, and add up") {
  Tensor w = variable({0.5f, -1, 2});
  auto loss = [](const Tensors& x) { return Tensors{sum(exp(x[0]) * x[0])}; };
  backward(loss({w})[0]);
  CHECK(gradient(w) == grad(loss)({stop_gradient(w)})[0].to_vector<float>());
  set_grad(w, {});
  CHECK(!grad(w).defined());
  backward(sum(w * 2)), backward(w * w, array({1.f, 10.f, 100.f}));
  CHECK(gradient(w) == std::vector<float>{3, -18, 402});
}

TEST_CASE("a graph serves one call, unless it is retained") {
  Tensor w = variable({2, 3}), loss = sum(w * w);
  loss.eval();
  backward(loss, {}, true), backward(loss);
  CHECK(gradient(w) == std::vector<float>{8, 12});
  CHECK(contains(error_in([&] { backward(loss); }), "retain_graph"));
}

TEST_CASE("only leaves have gradients, and only where they are wanted") {
  Tensor x = array({1.f, 2.f}), w = variable({3, 4}), y = x * w;
  CHECK((!requires_grad(x) && requires_grad(w) && requires_grad(y)));
  CHECK((is_leaf(x) && is_leaf(w) && !is_leaf(y)));
  {
    NoGrad off;
    CHECK((!is_grad_enabled() && !requires_grad(x * w)));
  }
  CHECK(is_grad_enabled());
  CHECK(contains(error_in([&] { backward(sum(x)); }), "requires a gradient"));
  CHECK(contains(error_in([&] { backward(y); }), "one element"));
  Tensor count = array({1, 2});
  CHECK(contains(error_in([&] { require_grad(count); }), "floating"));
}

TEST_CASE("a variable that is bound anew stays one") {
  Tensor w = variable({3, 4});
  backward(sum(w * w));
  {
    NoGrad off;
    rebind(w, w - 0.5 * grad(w));
  }
  CHECK((requires_grad(w) && is_leaf(w)));
  CHECK(w.to_vector<float>() == std::vector<float>{0, 0});
  CHECK(gradient(w) == std::vector<float>{6, 8});
}

TEST_CASE("gradients flow through compiled functions, at once and piece by piece") {
  Tensor w = variable({1, 2});
  CompiledFunction f = compile([](const Tensors& x) { return Tensors{sum(x[0] * x[0] * x[0])}; });
  CHECK(f({array({1.f, 2.f})})[0].item<float>() == 9);
  Tensor loss = f({w})[0];
  CHECK((loss.is_evaluated() && loss.item<float>() == 9));
  backward(loss);
  CHECK(gradient(w) == std::vector<float>{3, 12});
  NoGrad off;
  CHECK(!requires_grad(f({w})[0]));
}

TEST_CASE("a leaf of a trace has its gradient there") {
  CompiledFunction f = compile([](const Tensors& x) {
    Tensor w = stop_gradient(x[0]);
    require_grad(w);
    backward(sum(exp(w)));
    return Tensors{grad(w)};
  });
  Tensor x = array({1.f, 2.f});
  CHECK(f({x})[0].to_vector<float>() == exp(x).to_vector<float>());
  Tensor w = variable({1, 2});
  CompiledFunction out = compile([&](const Tensors& args) {
    backward(sum(args[0] * w));
    return args;
  });
  CHECK(contains(error_in([&] { out({x}); }), "from outside the traced function"));
}

TEST_CASE("losses that are kept hold no graphs") {
  Tensor w = ones({1000});
  require_grad(w);
  w.eval();
  int64_t before = active_memory();
  Tensors losses;
  for (int i = 0; i < 10; ++i) {
    losses.push_back(sum(exp(w * 2)));
    losses.back().eval();
    backward(losses.back());
    grad(w).eval();
    set_grad(w, {});
  }
  CHECK(active_memory() - before < 2 * 4000);
}

TEST_CASE("threads go back through one graph") {
  Tensor w = ones({100}), shared;
  require_grad(w);
  shared = sin(w) * w;
  auto work = [&] {
    for (int i = 0; i < 50; ++i) {
      Tensor loss = sum(shared * 2);
      if (i % 3 == 0) loss.eval();
      backward(loss, {}, true);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  CHECK(gradient(w)[0] == doctest::Approx(400 * (std::cos(1.0) + std::sin(1.0))));
}
