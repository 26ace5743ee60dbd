// Transforms on the C++ side: values, composition, long chains, memory.
#include <doctest/doctest.h>

#include "runtime/memory_use.h"
#include "tenon/tenon.h"

using namespace tn;

static Tensors cube(const Tensors& x) { return {sum(x[0] * x[0] * x[0])}; }

TEST_CASE("the gradient of a sum of cubes") {
  Tensor x = array({1.f, 2.f, 3.f});
  Tensors g = grad(cube)({x});
  CHECK(g[0].to_vector<float>() == std::vector<float>{3, 12, 27});
}

TEST_CASE("a gradient of a gradient") {
  auto first = [](const Tensors& x) { return Tensors{sum(grad(cube)(x)[0])}; };
  CHECK(grad(first)({array({1.f, 2.f})})[0].to_vector<float>() == std::vector<float>{6, 12});
}

TEST_CASE("jvp of a product") {
  auto [value, derivative] = jvp([](const Tensors& x) { return Tensors{x[0] * x[1]}; },
                                 {array({2.f}), array({3.f})}, {array({1.f}), Tensor()});
  CHECK(value[0].to_vector<float>() == std::vector<float>{6});
  CHECK(derivative[0].to_vector<float>() == std::vector<float>{3});
}

TEST_CASE("vmap of a gradient") {
  Tensor x = array<float>({1, 2, 3, 4}, {2, 2});
  CHECK(vmap(grad(cube))({x})[0].to_vector<float>() == std::vector<float>{3, 12, 27, 48});
}

TEST_CASE("a gradient through a long chain") {
  constexpr int kLength = 200'000;
  int64_t before = active_memory();
  {
    Tensors g = grad([](const Tensors& x) {
      Tensor y = x[0];
      for (int i = 0; i < kLength; ++i) y = y * x[1];
      return Tensors{y};
    })({Tensor(1.0f), Tensor(1.0f)});
    CHECK(g[0].item<float>() == 1.0f);
  }
  CHECK(active_memory() == before);
}

TEST_CASE("an argument is differentiated once") {
  Function f = [](const Tensors& x) { return Tensors{sum(x[0] * x[1])}; };
  CHECK_THROWS_WITH_AS(flat::grad(f, {0, -2})({Tensor(1.f), Tensor(2.f)}),
                       doctest::Contains("grad: argument 0 is chosen twice"), Error);
}

TEST_CASE("null tensors are errors") {
  Tensor null;
  CHECK_THROWS_AS(sin(null), UserError);
  CHECK_THROWS_AS(null + 1, UserError);
  CHECK_THROWS_AS(null.shape(), UserError);
  CHECK_THROWS_AS(null.to_string(), UserError);
  CHECK_THROWS_AS(null.item<float>(), UserError);
  CHECK_THROWS_AS(eval({null}), UserError);
  CHECK_THROWS_AS(grad([](const Tensors&) { return Tensors{Tensor()}; })({Tensor(1.0f)}),
                  UserError);
}
