// Mixed precision on the C++ side: the policy in force on a thread, and what it does to calls.
#include <doctest/doctest.h>

#include <thread>

#include "errors.h"
#include "tenon/tenon.h"

using namespace tn;

TEST_CASE("products compute in the narrow type, sums in float32, the rest in what it is given") {
  Tensor x = ones({2, 2});
  amp::Autocast policy(float16);
  Tensor product = matmul(x, x);
  CHECK(product.dtype() == float16);
  CHECK(tanh(product).dtype() == float16);
  CHECK(exp(product).dtype() == float32);
  CHECK(sum(product).item<float>() == 8);
}

TEST_CASE("policies nest, end, and belong to their thread") {
  {
    amp::Autocast outer;
    CHECK(amp::autocast_type() == bfloat16);
    {
      amp::Autocast none(std::nullopt);
      CHECK(!amp::autocast_type());
    }
    std::thread([] { CHECK(!amp::autocast_type()); }).join();
    CHECK(amp::autocast_type() == bfloat16);
  }
  CHECK(!amp::autocast_type());
  CHECK(contains(error_in([] { amp::Autocast bad(float64); }),
                 "autocast: the narrow type is bfloat16 or float16, not float64"));
}

TEST_CASE("gradients have the type of the parameter, wherever they are taken") {
  Tensor w = ones({3, 3}), x = ones({2, 3});
  auto loss = [&](const Tensors& p) -> Tensors {
    amp::Autocast policy;
    return {mean(matmul(x, p[0]))};
  };
  Tensor plain = grad(loss)({w})[0];
  amp::Autocast around;
  Tensor inside = grad(loss)({w})[0];
  CHECK(plain.dtype() == float32);
  CHECK(inside.to_vector<float>() == plain.to_vector<float>());
}

TEST_CASE("a compiled function has a trace for each policy") {
  CompiledFunction f = compile([](const Tensors& x) -> Tensors { return {matmul(x[0], x[0])}; });
  Tensor x = ones({2, 2});
  CHECK(f({x})[0].dtype() == float32);
  amp::Autocast policy;
  CHECK(f({x})[0].dtype() == bfloat16);
  CHECK(f.stats().traces == 2);
  CHECK(contains(f.why_recompiled()[1], "autocast was off, now bfloat16"));
}
