// Control flow on trees.
#include <doctest/doctest.h>

#include "errors.h"
#include "tenon/tenon.h"

using namespace tn;
using Floats = std::vector<float>;

namespace {
Floats floats(const Tensor& x) { return x.to_vector<float>(); }
}  // namespace

TEST_CASE("typed: scan with a carry and outputs") {
  Tensor xs = array({1.f, 2.f, 3.f});
  auto step = [](Tensor h, Tensor x) {
    h = tanh(0.5 * h + x);
    return std::pair{h, h};
  };
  auto [carry, path] = scan(step, array(0.0), xs);
  Tensor h = array(0.0);
  for (Tensor x : xs) h = tanh(0.5 * h + x);
  CHECK(carry.item<float>() == h.item<float>());
  CHECK(path.shape() == Shape{3});
  CHECK(floats(path[-1]) == Floats{h.item<float>()});
  auto [last, back] = scan(step, array(0.0), xs, {.reverse = true});
  CHECK(floats(back[0]) == Floats{last.item<float>()});
}

TEST_CASE("typed: scan over trees, and a number of times") {
  using Pair = std::pair<Tensor, Tensor>;
  Tensor a = array({1.f, 2.f}), b = array({3.f, 4.f});
  auto [carry, ys] = scan(
      [](const Pair& c, const Pair& x) {
        return std::pair{Pair{c.first + x.first, c.second * x.second}, x.first * x.second};
      },
      Pair{array(0.0), array(1.0)}, Pair{a, b});
  CHECK(carry.first.item<float>() == 3);
  CHECK(carry.second.item<float>() == 12);
  CHECK(floats(ys) == Floats{3, 8});
  auto doubled = scan([](Tensor c) { return std::pair{c * 2, std::tuple()}; }, array(1.0), 10);
  CHECK(doubled.first.item<float>() == 1024);
  auto f = [](Tensor x) {
    return scan([&](Tensor c) { return std::pair{c * x, std::tuple()}; }, x, 2).first;
  };
  CHECK(grad(f)(array(2.0)).item<float>() == 12);
}

TEST_CASE("typed: cond and its derivative") {
  auto f = [](Tensor x, Tensor w) {
    return cond(
        sum(x) > 0, [](Tensor x, Tensor w) { return sum(x * w); },
        [](Tensor x, Tensor) { return sum(x * x); }, x, w);
  };
  Tensor x = array({1.f, 2.f}), w = array({3.f, 4.f});
  CHECK(f(x, w).item<float>() == 11);
  CHECK(f(-x, w).item<float>() == 5);
  CHECK(floats(grad(f)(x, w)) == Floats{3, 4});
  CHECK(floats(vmap(f, {0, none})(stack({x, -x}), w)) == Floats{11, 5});
  auto tree = cond(array(true), [&] { return std::tuple{x, w}; }, [&] { return std::tuple{w, x}; });
  CHECK(floats(std::get<0>(tree)) == Floats{1, 2});
}

TEST_CASE("typed: while_loop and fori_loop") {
  auto [n, x] = while_loop([](Tensor n, Tensor) { return n < 10; },
                           [](Tensor n, Tensor x) { return std::tuple(n + 1, x * 2); },
                           std::tuple(array(0), array(1.0)));
  CHECK(n.item<int>() == 10);
  CHECK(x.item<float>() == 1024);
  Tensor power =
      while_loop([](Tensor x) { return x < 100; }, [](Tensor x) { return x * 2; }, array(3.0));
  CHECK(power.item<float>() == 192);
  auto add = [](Tensor i, Tensor total) { return total + i; };
  CHECK(fori_loop(0, 5, add, array(0)).item<int>() == 10);
  CHECK(fori_loop(array(2), array(5), add, array(0)).item<int>() == 9);
  CHECK(fori_loop(3, 1, add, array(7)).item<int>() == 7);
}

TEST_CASE("typed: what control flow refuses") {
  auto counting = [](const std::tuple<Tensor, int>& c) {
    return std::tuple(std::get<0>(c), std::get<1>(c) + 1);
  };
  std::string text = error_in([&] {
    while_loop([](const std::tuple<Tensor, int>& c) { return std::get<0>(c) > 0; }, counting,
               std::tuple(array(1.0), 0));
  });
  CHECK(contains(text, "while_loop: the body changes the structure"));
  CHECK(contains(text, "hint: numbers are constants: make what changes a tensor"));
  CHECK(contains(error_in([&] {
                   cond(
                       array(true), [] { return Tensors{array(1.0)}; },
                       [] { return Tensors{array(1.0), array(2.0)}; });
                 }),
                 "1 and 2 results"));
}

TEST_CASE("typed: loops count up to sizes") {
  auto total = [](const Tensor& x) {
    return fori_loop(
        0, x.shape()[0], [&](const Tensor& i, const Tensor& s) { return s + take(x, i, 0); },
        array(0.0));
  };
  Tensor x = array({1.f, 2.f, 4.f});
  CHECK(total(x).item<float>() == 7);
  CHECK(grad(total)(x).to_vector<float>() == std::vector<float>{1, 1, 1});
  int traces = 0;
  auto open = compile([&](const Tensor& t) { return ++traces, total(t); }, {.shapeless = true});
  CHECK(open(x).item<float>() == 7);
  CHECK(open(ones({5})).item<float>() == 5);
  CHECK(traces == 1);
  auto [last, all] =
      scan([](const Tensor& c) { return std::pair{c * 2, c}; }, array(1.0), x.shape()[0]);
  CHECK(last.item<float>() == 8);
  CHECK(all.shape() == Shape{3});
}
