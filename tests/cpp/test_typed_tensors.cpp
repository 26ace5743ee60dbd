// Tensors as values of C++: indexing, assignment, iteration, construction, conversion.
#include <doctest/doctest.h>

#include <array>
#include <list>
#include <map>
#include <sstream>

#include "errors.h"
#include "tenon/elements.h"
#include "tenon/nn.h"
#include "tenon/tenon.h"

using namespace tn;
using Floats = std::vector<float>;

namespace {
Floats floats(const Tensor& x) { return x.to_vector<float>(); }
Tensor counted(const Shape& shape) {
  return reshape(arange(shape.elements().value(), {}, 1, float32), shape);
}
}  // namespace

TEST_CASE("typed: indexing") {
  Tensor m = counted({4, 3, 2});
  const Tensor& same = m;
  Tensor a = m[0], b = m[{slice(1, -1), all, -1}], c = sum(m, {0, 2});
  CHECK(a.shape() == Shape{3, 2});
  CHECK(floats(b) == Floats{7, 9, 11, 13, 15, 17});
  CHECK(c.shape() == Shape{3});
  CHECK(floats(same[{-1, 0}]) == Floats{18, 19});
  CHECK(floats(m[{0, slice(none, none, -1), 0}]) == Floats{4, 2, 0});
  CHECK(m[{ellipsis, 0}].shape() == Shape{4, 3});
  CHECK(m[{0, newaxis}].shape() == Shape{1, 3, 2});
  CHECK(floats(m[m > 21]) == Floats{22, 23});
  CHECK(floats(m[{array({3, 0}), 0, 0}]) == Floats{18, 0});
  CHECK((m[0] * 2 + m[1]).shape() == Shape{3, 2});
  CHECK(sum(m[0]).item<float>() == 15);
  CHECK(m[0][1][0].item<float>() == 2);
  CHECK(einsum("ij,jk->ik", m[0], array({{1.f}, {1.f}})).shape() == Shape{3, 1});
}

TEST_CASE("typed: assignment to a part") {
  Tensor m = counted({2, 3});
  Tensor before = m;
  m[{0, all}] = 5;
  CHECK(floats(m) == Floats{5, 5, 5, 3, 4, 5});
  CHECK(floats(before) == Floats{0, 1, 2, 3, 4, 5});
  m[1] = array({7.f, 8.f, 9.f});
  m[0] = m[1];
  CHECK(floats(m) == Floats{7, 8, 9, 7, 8, 9});
  m[{all, 0}] += 1;
  m[m > 8.5] = 0;
  m += 1;
  CHECK(floats(m) == Floats{9, 9, 1, 9, 9, 1});
  m[{1, slice(0, 2)}] *= 2;
  CHECK(floats(m) == Floats{9, 9, 1, 18, 18, 1});
  auto f = compile([](Tensor x) {
    x[x < 0] = 0;
    return x;
  });
  CHECK(floats(f(array({-1.f, 2.f}))) == Floats{0, 2});
}

TEST_CASE("typed: iteration over axis 0") {
  Tensor m = counted({3, 2});
  Floats sums;
  for (Tensor row : m) sums.push_back(sum(row).item<float>());
  CHECK(sums == Floats{1, 5, 9});
  std::ostringstream out;
  for (Tensor row : m) out << row[0] << ' ';
  CHECK(contains(out.str(), "tensor(4., dtype=float32)"));
  CHECK(contains(error_in([] {
                   for (Tensor row : array(1.0)) row.eval();
                 }),
                 "has no rows"));
}

TEST_CASE("typed: construction from lists, ranges and spans") {
  CHECK(array({{1.f, 2.f}, {3.f, 4.f}}).shape() == Shape{2, 2});
  CHECK(array({{{1}, {2}}, {{3}, {4}}}).shape() == Shape{2, 2, 1});
  CHECK(array(2.5).dtype() == float32);
  CHECK(array(2).shape() == Shape{});
  std::vector<float> v{1, 2, 3, 4};
  CHECK(floats(array(v, {2, 2})) == v);
  CHECK(floats(array(std::span<const float>(v))) == v);
  CHECK(array(std::array<int, 3>{1, 2, 3}).dtype() == int32);
  CHECK(array(std::list<double>{1, 2}).dtype() == float64);
  CHECK(array(std::vector<bool>{true, false}).dtype() == boolean);
  CHECK(array(std::vector<std::vector<float>>{{1, 2}, {3, 4}, {5, 6}}).shape() == Shape{3, 2});
  CHECK(contains(error_in([] { array({{1.f, 2.f}, {3.f}}); }),
                 "array: rows differ in length: 2 and 1"));
  CHECK(contains(error_in([] { array({1.f, 2.f}, {3}); }), "2 values for the shape"));
}

TEST_CASE("typed: values of the host") {
  Tensor x = array({1.f, 2.f, 3.f});
  std::span<const float> view = x.span<float>();
  CHECK(view[2] == 3);
  CHECK(static_cast<double>(sum(x)) == 6);
  CHECK(int(x[1]) == 2);
  CHECK(allclose(x, x + 1e-7).item<bool>());
  CHECK(contains(error_in([&] { x.span<double>(); }), "elements are float32"));
}

TEST_CASE("typed: elements by their indices") {
  Elements<float, 2> m(counted({2, 3}));
  CHECK(m(1, 2) == 5);
  CHECK(m.extent(1) == 3);
  CHECK(std::vector<float>(m.begin(), m.end()) == Floats{0, 1, 2, 3, 4, 5});
  CHECK(Elements<float, 0>(Tensor(2.5f))() == 2.5f);
  CHECK(contains(error_in([] { Elements<float, 1>(ones({2, 3})); }),
                 "elements: 1 axes are wanted of f32[2,3]"));
}

TEST_CASE("typed: errors of indices name the place") {
  Tensor m = counted({2, 3});
  std::string text = error_in([&] { Tensor row = m[7]; });
  CHECK(contains(text, "index: 7 is out of bounds for axis 0"));
  CHECK(contains(text, "test_typed_tensors.cpp:"));
  CHECK(contains(error_in([&] { Tensor t = m[tn::any]; }),
                 "tn::all is the only function that can be an index"));
}

TEST_CASE("typed: a loss that goes backward") {
  Tensor w = array({1.f, 2.f});
  require_grad(w);
  sum(w * w).backward();
  CHECK(floats(grad(w)) == Floats{2, 4});
}

TEST_CASE("typed: trees are evaluated in one call") {
  tn::Tensor x = tn::linspace(0.0, 1.0, 4), y = x + 1.0, z = x * 2.0;
  tn::eval(x);
  CHECK(x.is_evaluated());
  tn::eval(y, std::pair{std::string("twice"), z});
  CHECK((y.is_evaluated() && z.is_evaluated()));
  std::map<std::string, tn::Tensor> named{{"a", x * 5.0}};
  const tn::nn::Linear layer(4, 2);
  tn::eval(named, layer, std::vector{x - 1.0});
  CHECK((named["a"].is_evaluated() && layer.weight.is_evaluated()));
  tn::Tensor later = tn::exp(x);
  tn::async_eval(later);
  tn::synchronize();
  CHECK(later.is_evaluated());
}
