// Comparisons of sizes and shapes in programs: by value, also where only compile.h is included.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "errors.h"
#include "tenon/compile.h"
#include "tenon/operators.h"
#include "tenon/ops.h"

using namespace tn;

TEST_CASE("sizes and shapes are compared by value in traces") {
  int traces = 0;
  auto same = compile(
      [&](const Tensor& x, const Tensor& y) {
        ++traces;
        bool sizes = x.shape()[0] == y.shape()[0], shapes = x.shape() == y.shape();
        bool four = x.shape()[0] == 4,
             found = std::count(x.shape().begin(), x.shape().end(), 4) == 1;
        return array(float(sizes) + 2 * float(shapes) + 4 * float(four) + 8 * float(found));
      },
      {.shapeless = true});
  auto result = [&](int64_t a, int64_t b) { return same(ones({a}), ones({b})).item<int>(); };
  CHECK(result(3, 3) == 3);
  CHECK(result(5, 5) == 3);
  CHECK(traces == 1);
  CHECK(result(3, 5) == 0);
  CHECK(result(4, 4) == 15);
  CHECK(result(4, 5) == 12);
  CHECK(result(7, 7) == 3);
  CHECK(traces == 4);
}

TEST_CASE("sizes are compared with numbers of every type") {
  constexpr Dim four = 4;
  static_assert(four == 4 && 4u == four && four != -4 && four != SIZE_MAX);
  static_assert(four > -5 && four >= -5 && !(four < -5) && !(four <= -5) && -5 < four);
  static_assert(four < SIZE_MAX && four <= SIZE_MAX && !(four > SIZE_MAX) && SIZE_MAX >= four);
  static_assert(four < uint8_t{5} && !(four >= int8_t{5}) && 3 <= four && 5 > four && !(4 < four));
  static_assert(Dim(INT64_MAX) < UINT64_MAX && Dim(INT64_MAX) != UINT64_MAX);
  static_assert(Dim(-1) == -1 && Dim(-1) != -2 && Dim(-3) == -3 && four != Dim(-1));
  Dim n = Dim::symbol("n", 2, 8);
  CHECK((n > -5 && n >= 2 && n < 9 && n != 9 && n != -1 && n < SIZE_MAX && 1 < n && 8u >= n));
  CHECK((n == n && !(n > n) && n <= n));
}

TEST_CASE("outside of traces an order that depends on symbols is an error") {
  Dim n = Dim::symbol("n", 2, 8), m = Dim::symbol("m", 2, 8);
  auto refuses = [](auto ask) {
    std::string error = error_in(ask);
    return contains(error, "depends on the values of symbols") &&
           contains(error, "inside a compiled function");
  };
  CHECK(refuses([&] { (void)(n < m); }));
  CHECK(refuses([&] { (void)(m >= n); }));
  CHECK(refuses([&] { (void)(n > 4); }));
  CHECK(contains(error_in([&] { (void)(n >= m); }), "size: whether n >= m depends"));
  CHECK((n != m && n != 4 && Shape{n, 4} != Shape{m, 4} && Shape{n, 4} == Shape{n, 4}));
}

TEST_CASE("a negative size is an error of the op that is given it, with its line") {
  for (const auto& [error, text] : {
           std::pair{error_in([] { zeros({-3}); }), "zeros: a size is negative: -3"},
           std::pair{error_in([] { ones({2, -1}); }), "a size is negative: -1"},
           std::pair{error_in([] { reshape(ones({4}), {-2}); }), "cannot be negative: -2"},
           std::pair{error_in([] { broadcast_to(ones({1}), {-7}); }), "does not broadcast to [-7]"},
           std::pair{error_in([] { iota({-2}); }), "negative"},
       }) {
    CHECK_MESSAGE(contains(error, text), error);
    CHECK_MESSAGE(contains(error, "test_typed_sizes.cpp"), error);
  }
  CHECK(contains(error_in([] { (void)Dim(-3).value(); }), "a size cannot be negative: -3"));
}

TEST_CASE("arithmetic on sizes gives sizes") {
  Tensor x = ones({6, 4});
  Dim n = x.shape()[0], m = x.shape()[1];
  CHECK((n * 2 == 12 && 2 * n == 12 && n + m == 10 && n + 1 == 7 && 1 + n == 7 && n - m == 2));
  CHECK((n / 4 == 1 && n % 4 == 2 && 13 / n == 2 && 13 % n == 1 && 10 - n == 4 && n * m == 24));
  CHECK((m - n == -2 && -m == -4 && m - n + 2u == 0 && (m - n) * 3 == -6));
  n *= m, n += 1, n -= 5, n /= 2, n %= 4;
  CHECK(n == 2);
  CHECK(reshape(x, {x.shape()[0] * 2, m / 2}).shape() == Shape{12, 2});
  CHECK(Tensor(x[slice(x.shape()[0] - 2, none)]).dim(0) == 2);
  CHECK((m * 0.5).item<float>() == 2);  // with a fraction, and with a tensor, it is a tensor
  CHECK((ones({2}) / (m * 2)).to_vector<float>() == std::vector<float>{0.125f, 0.125f});
  for (const auto& [error, text] : {
           std::pair{error_in([&] { (void)(m / 0); }), "size: 4 / 0: a divisor must be at least 1"},
           std::pair{error_in([&] { (void)(m % -3); }), "size: 4 % -3: a divisor must be"},
           std::pair{error_in([&] { zeros({m - 6}); }), "zeros: a size is negative: -2"},
           std::pair{error_in([&] { (void)(Dim(INT64_MAX) * 2); }), "does not fit in 64 bits"},
       }) {
    CHECK_MESSAGE(contains(error, text), error);
    CHECK_MESSAGE(contains(error, "test_typed_sizes.cpp"), error);
  }
}

TEST_CASE("arithmetic on sizes varies with them in traces") {
  int traces = 0;
  auto halves = compile(
      [&](const Tensor& x) {
        ++traces;
        Dim n = x.shape()[0];
        Tensor upper = x[slice(n / 2, none)];
        return std::tuple{upper, reshape(x, {n * 2 / 2, 1}), sum(x) / (n - 1), zeros({n % 3 + 2})};
      },
      {.shapeless = true});
  for (int64_t n : {4, 9, 16}) {
    auto [upper, column, mean, rest] = halves(ones({n}));
    CHECK(upper.dim(0) == n - n / 2);
    CHECK(column.shape() == Shape{n, 1});
    CHECK(mean.item<double>() == doctest::Approx(double(n) / double(n - 1)));
    CHECK(rest.dim(0) == n % 3 + 2);
  }
  CHECK(traces == 1);
  auto below = compile([&](const Tensor& x) { return array(x.shape()[0] - 5 == -2 ? 1 : 0); },
                       {.shapeless = true});
  CHECK(below(ones({3})).item<int>() == 1);
  CHECK(below(ones({4})).item<int>() == 0);
}
