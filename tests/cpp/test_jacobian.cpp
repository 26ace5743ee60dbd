// Jacobians and Hessians on the C++ side.
#include <doctest/doctest.h>

#include "tenon/tenon.h"

using namespace tn;

static Tensors products(const Tensors& x) { return {x[0] * x[1], sum(x[0])}; }

TEST_CASE("Jacobians row by row and column by column") {
  Tensors args = {array({2.f, 3.f}), array({5.f, 7.f})};
  for (const Function& jacobian :
       {flat::jacrev(products, {0, 1}), flat::jacfwd(products, {0, 1})}) {
    Tensors made = jacobian(args);
    REQUIRE(made.size() == 4);
    CHECK(made[0].to_vector<float>() == std::vector<float>{5, 0, 0, 7});
    CHECK(made[1].to_vector<float>() == std::vector<float>{2, 0, 0, 3});
    CHECK(made[2].to_vector<float>() == std::vector<float>{1, 1});
    CHECK(made[3].to_vector<float>() == std::vector<float>{0, 0});
  }
}

TEST_CASE("a Hessian") {
  auto f = [](const Tensors& x) { return Tensors{sum(x[0] * x[0] * x[0])}; };
  Tensor h = hessian(f)({array({1.f, 2.f})})[0][0];
  CHECK(h.shape() == Shape{2, 2});
  CHECK(h.to_vector<float>() == std::vector<float>{6, 0, 0, 12});
}

TEST_CASE("a Jacobian needs as many directions as there are numbers") {
  auto f = [](const Tensors& x) { return Tensors{exp(make_complex(x[0], x[0]))}; };
  CHECK_THROWS_WITH_AS(jacrev(f)({array({1.f})}), doctest::Contains("use jacfwd"), UserError);
  CHECK(jacfwd(f)({array({1.f})})[0][0].shape() == Shape{1, 1});
}
