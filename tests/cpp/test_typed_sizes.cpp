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
