// Values of C++ beside tensors: numbers of every type, shapes, axes, items, ranges, trees.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <ranges>

#include "errors.h"
#include "tenon/progress.h"
#include "tenon/tenon.h"

using namespace tn;

TEST_CASE("values: numbers of every type are operands") {
  Tensor x = ones({2});
  unsigned u = 3;
  long long ll = 4;
  unsigned long long ull = 5;
  long double ld = 0.5L;
  Tensor y = x * u + ll + ull + ld + short{1} + 2u;
  CHECK(y.dtype() == DType::f32);
  CHECK(y.to_vector<float>() == std::vector<float>{15.5F, 15.5F});
  CHECK(full({2}, 3u).to_vector<int64_t>() == std::vector<int64_t>{3, 3});
  CHECK(arange(3LL).size() == 3);
  CHECK(arange(x.shape()[0]).size() == 2);
  CHECK(array(std::numeric_limits<uint64_t>::max()).item<uint64_t>() == UINT64_MAX);
  CHECK(Tensor(7u).item<int>() == 7);
}

TEST_CASE("values: shapes and axes are made of integers and of ranges of them") {
  Tensor m = reshape(arange(6.0), std::vector<int>{2, 3});
  CHECK(reshape(m, std::array<long, 2>{3, 2}).shape() == Shape{3, 2});
  CHECK(reshape(m, 6).shape() == Shape{6});
  CHECK(zeros(3).shape() == Shape{3});
  CHECK(zeros(m.shape()[1]).shape() == Shape{3});
  CHECK(sum(m, std::vector<int>{0, 1}).item<float>() == 15);
  CHECK(sum(m, 1LL).shape() == Shape{2});
  CHECK(random::split(random::key(0), 3).shape() == Shape{3, 2});
  CHECK(array({{{{1, 2}, {3, 4}}}}).shape() == Shape{1, 1, 2, 2});
}

TEST_CASE("values: items are checked") {
  auto text = [](auto&& read) { return error_in([&] { read(); }); };
  CHECK(contains(text([] { return array(300).item<uint8_t>(); }), "300 is not between 0 and 255"));
  CHECK(contains(text([] { return array(-1).item<unsigned>(); }), "-1 is not between 0 and"));
  CHECK(contains(text([] { return array(std::nan("")).item<int>(); }), "nan is not between"));
  CHECK(contains(text([] { return array(1e30).item<int64_t>(); }), "is not between"));
  Tensor c = array(std::complex<float>(1, 5));
  CHECK(contains(text([&] { return c.item<float>(); }), "a complex number is not real: c64[]"));
  CHECK(contains(text([&] { return static_cast<int>(c); }), "not real"));
  CHECK(c.item<std::complex<float>>() == std::complex<float>(1, 5));
  CHECK(array(std::complex<float>(0, 5)).item<bool>());
  CHECK(array(2.9).item<int>() == 2);
  CHECK(array(-2.9).item<int>() == -2);
  CHECK(array(255).item<uint8_t>() == 255);
  CHECK(array(1e10).item<int64_t>() == 10'000'000'000);
}

TEST_CASE("values: a tensor is a range of rows") {
  Tensor m = ones({2, 3});
  CHECK(std::ranges::distance(m) == 2);
  int64_t rows = 0;
  for (const Tensor& row : m | std::views::take(4)) rows += row.size();
  CHECK(rows == 6);
  rows = 0;
  for (const Tensor& row : progress(m)) rows += row.rank();
  CHECK(rows == 2);
}

TEST_CASE("values: an element of a variable has what a tensor has") {
  Tensor m = reshape(arange(6.0), {2, 3});
  CHECK(m[0].eval().shape() == Shape{3});
  CHECK(m[0].device() == m.device());
  CHECK(m[1].to(Device()).to_vector<float>() == std::vector<float>{3, 4, 5});
  auto row = m[1];
  CHECK(row.span<float>()[2] == 5);
  m[1] %= 2;
  CHECK(m[1].to_vector<float>() == std::vector<float>{1, 0, 1});
  Tensor w = ones({2});
  require_grad(w);
  Tensor losses = w * 3;
  losses[0].backward();
  CHECK(grad(w).to_vector<float>() == std::vector<float>{3, 0});
}

TEST_CASE("values: trees must be alike, not only as long") {
  using Map = std::map<std::string, Tensor>;
  Tensor x = ones({2});
  Map p{{"a", x}, {"b", x}}, other{{"a", x}, {"zzz", x}};
  auto f = [](const Map& m) { return m.at("a") * m.at("b"); };
  CHECK(contains(error_in([&] { jvp(f, p, other); }),
                 R"(jvp: the tangent has another structure: ["zzz"] in the place of ["b"])"));
  auto [y, back] = vjp([](Tensor t) { return Map{{"q", t}, {"r", t}}; }, x);
  CHECK(contains(error_in([&] { back(Map{{"q", x}, {"s", x}}); }),
                 R"(vjp: the cotangent has another structure: ["s"] in the place of ["r"])"));
  auto add_all = [](const Tensor& a, const Tensor& b) { return a + b; };
  CHECK(contains(error_in([&] { tree::map(add_all, p, other); }),
                 R"(["zzz"] in the place of ["b"])"));
  CHECK(contains(error_in([&] { tree::map(add_all, p, Map{{"a", x}}); }),
                 R"(nothing in the place of ["b"])"));
  auto count = [](int64_t n, const Tensor& t) { return n + t.size(); };
  CHECK(tree::reduce(count, p, 0) == 4);
  CHECK(std::is_same_v<decltype(tree::reduce(count, p, 0)), int64_t>);
}

TEST_CASE("values: a tangent is not rounded to the type of its argument") {
  auto square = [](const Tensor& x) { return x * x; };
  std::string text = error_in([&] { jvp(square, array(2.0), array(1.0, float64)); });
  CHECK(contains(text, "jvp: the tangent of argument 0 is f64[] but must be f32[]"));
  CHECK(contains(text, "test_cpp_values.cpp:"));
  CHECK(jvp(square, array(2.0, float64), array(1.0)).second.item<double>() == 4);
}

TEST_CASE("values: arrays of a chosen element type") {
  CHECK(array(0.3, float64).item<double>() == 0.3);
  CHECK(array(0.3, float64).dtype() == DType::f64);
  CHECK(array(1.5, int32).item<int>() == 1);
  CHECK(array(std::complex<double>(0.1, 2), complex128).dtype() == DType::c128);
  CHECK(array(UINT64_MAX, uint64).item<uint64_t>() == UINT64_MAX);
  CHECK(array({1, 2}, float32).to_vector<float>() == std::vector<float>{1, 2});
  CHECK(array({{1, 2}, {3, 4}}, float64).to_vector<double>() == std::vector<double>{1, 2, 3, 4});
  CHECK(array({{{1}, {2}}}, int8).shape() == Shape{1, 2, 1});
  std::vector<double> v{0.1, 0.2};
  CHECK(array(v, float32).to_vector<float>() == std::vector<float>{0.1f, 0.2f});
  CHECK(array(std::vector{v, v}, float32).shape() == Shape{2, 2});
  auto twice = v | std::views::transform([](double x) { return 2 * x; });
  CHECK(array(twice, float32).to_vector<float>() == std::vector<float>{0.2f, 0.4f});
  CHECK(array(std::vector<bool>{true, false}, int8).to_vector<int8_t>() ==
        std::vector<int8_t>{1, 0});
  CHECK(array({1.f}, {}).rank() == 0);  // a shape
  CHECK(contains(error_in([] { array(300, int8); }), "array: the number 300 does not fit i8"));
  CHECK(contains(error_in([] { array({1, -1}, uint8); }), "the number -1 does not fit u8"));
  CHECK(contains(error_in([] { array(UINT64_MAX, int8); }), "18446744073709551615 does not fit"));
  CHECK(contains(error_in([] { ones({2}, int8) + UINT64_MAX; }),
                 "add: the number 18446744073709551615 does not fit i8"));
  std::string uneven = error_in([] { array(std::vector<std::vector<int>>{{1}, {2, 3}}, int8); });
  CHECK(contains(uneven, "test_cpp_values.cpp:"));
}

TEST_CASE("values: products of elements and of matrices hint at each other") {
  Tensor x = ones({8, 16}), w = ones({16, 4}), batch = ones({2, 3, 4});
  CHECK(contains(error_in([&] { multiply(x, w); }),
                 "hint: matmul(x1, x2) is the product of matrices"));
  CHECK(contains(error_in([&] { matmul(batch, batch); }), "hint: x1 * x2 multiplies element by"));
}

TEST_CASE("values: what holds nothing says so") {
  auto f = compile([](Tensor t) { return t + 1; });
  auto moved = std::move(f);
  CHECK(contains(error_in([&] { f(ones({2})); }), "was moved from"));  // NOLINT: that is the test
  CHECK(contains(error_in([] { Tensor().graph(); }), "null tensor"));
  CHECK(contains(error_in([] { ones({2}).to(Device(7, 1)); }), "no devices of kind 7"));
  CHECK(contains(error_in([] { Device(static_cast<const char*>(nullptr)); }), "no such device"));
}

TEST_CASE("values: functions of headers name the user's line") {
  Tensor m = ones({2, 3});
  auto has_line = [](auto&& call) { return contains(error_in(call), "test_cpp_values.cpp:"); };
  CHECK(has_line([&] { einsum("ij,jk->ik", m, m); }));
  CHECK(has_line([&] { tn::random::choice(m, {3}, true, ones({7})); }));
  CHECK(has_line([&] { tn::random::bernoulli(array(std::complex<float>(0, 1))); }));
  CHECK(has_line([&] { tn::random::normal({2}, 0.0, 1.0, DType::f32, ones({2})); }));
}
