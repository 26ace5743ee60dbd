// Reductions, movement, joining, padding, gather and scatter, by their values.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <numeric>

#include "base/error.h"
#include "tenon/tenon.h"

using tn::Axes;
using tn::Ints;
using tn::Shape;
using tn::Tensor;
using tn::Tensors;

namespace {

using Longs = std::vector<int64_t>;
using Floats = std::vector<float>;

/// 0, 1, 2, … in `shape`.
Tensor counting(const Shape& shape) {
  Longs list(static_cast<size_t>(shape.elements().value()));
  std::iota(list.begin(), list.end(), 0);
  return tn::array(list, shape);
}

Longs longs(const Tensor& x) { return x.to_vector<int64_t>(); }
Floats floats(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("sums widen small integers and keep axes when asked") {
  Tensor x = counting({2, 3});
  CHECK(tn::sum(x).item<int64_t>() == 15);
  CHECK(longs(tn::sum(x, Axes(0))) == Longs{3, 5, 7});
  CHECK(tn::sum(x, Axes(-1), {}, true).shape() == Shape{2, 1});
  Tensor bytes = tn::array(std::vector<int8_t>{100, 100, 100}, {3});
  CHECK(tn::sum(bytes).dtype() == tn::int64);
  CHECK(tn::sum(bytes).item<int64_t>() == 300);
  CHECK(tn::sum(tn::array({true, true, false})).item<int64_t>() == 2);
  CHECK(tn::prod(tn::array(Longs{}, {0})).item<int64_t>() == 1);
  CHECK(tn::sum(Tensor(3)).item<int64_t>() == 3);
  CHECK(longs(tn::sum(x, Axes(), {}, true)) == longs(x));
  CHECK_THROWS(tn::sum(x, Axes(2)));
  CHECK_THROWS(tn::sum(x, Axes{0, 0}));
}

TEST_CASE("complex products fold in order") {
  using C = std::complex<float>;
  Tensor x = tn::array(std::vector<C>{{1, 1}, {0, 1}, {2, 0}, {1, -1}}, {2, 2});
  CHECK(tn::prod(x, Axes(1)).to_vector<C>() == std::vector<C>{{-1, 1}, {2, -2}});
  CHECK(tn::cumulative_prod(x, 0).to_vector<C>() == std::vector<C>{{1, 1}, {0, 1}, {2, 2}, {1, 1}});
}

TEST_CASE("extremes and their places") {
  Tensor x = tn::array(Floats{3, 1, 4, 1, 5, 9}, {2, 3});
  CHECK(tn::max(x).item<float>() == 9);
  CHECK(floats(tn::min(x, Axes(0))) == Floats{1, 1, 4});
  CHECK(tn::argmax(x).item<int64_t>() == 5);
  CHECK(longs(tn::argmin(x, 1)) == Longs{1, 0});
  CHECK(tn::argmin(x, {}, true).shape() == Shape{1, 1});
  CHECK(longs(tn::argmax(tn::array(Floats{1, NAN, 3, NAN}, {4}))) == Longs{1});
  CHECK_THROWS(tn::max(tn::array(Floats{}, {0, 2}), Axes(0)));
  CHECK(tn::max(tn::array(Floats{}, {0, 2}), Axes(1)).shape() == Shape{0});
  CHECK(tn::any(x).item<bool>());
  CHECK(tn::count_nonzero(tn::array(Floats{0, 2, NAN}, {3})).item<int64_t>() == 2);
}

TEST_CASE("statistics") {
  Tensor x = tn::array(Floats{1, 2, 3, 4, 5, 9}, {2, 3});
  CHECK(floats(tn::mean(x, Axes(1))) == Floats{2, 6});
  CHECK(tn::var(x, Axes(1), 1.0).to_vector<float>() == Floats{1, 7});
  CHECK(tn::median(x).item<float>() == 3.5f);
  CHECK(floats(tn::median(x, Axes(0))) == Floats{2.5f, 3.5f, 6});
  CHECK(floats(tn::quantile(x, tn::array(Floats{0, 0.5f, 1}, {3}), Axes(1))) ==
        Floats{1, 4, 2, 5, 3, 9});
  CHECK(std::isnan(tn::median(tn::array(Floats{1, NAN, 3}, {3})).item<float>()));
  CHECK_THROWS(tn::quantile(x, 1.5));
}

TEST_CASE("running sums") {
  Tensor x = counting({2, 3});
  CHECK(longs(tn::cumulative_sum(x, 1)) == Longs{0, 1, 3, 3, 7, 12});
  CHECK(longs(tn::cumulative_sum(x, 0)) == Longs{0, 1, 2, 3, 5, 7});
  CHECK(longs(tn::cumulative_sum(x, 1, {}, true)) == Longs{0, 0, 1, 3, 0, 3, 7, 12});
  CHECK(longs(tn::cumulative(x, 1, "sum", true, true)) == Longs{3, 2, 0, 9, 5, 0});
  CHECK(longs(tn::cummax(tn::array(Longs{3, 1, 4, 1, 5}, {5}))) == Longs{3, 3, 4, 4, 5});
  Floats log = floats(tn::logcumsumexp(tn::array(Floats{0, 0, 0, 0}, {4})));
  CHECK(log[3] == doctest::Approx(std::log(4.0)));
  CHECK(longs(tn::diff(tn::array(Longs{1, 4, 9, 16}, {4}), nullptr, nullptr, -1, 2)) ==
        Longs{2, 2});
}

TEST_CASE("views") {
  Tensor x = counting({2, 3});
  CHECK(tn::reshape(x, {3, -1}).shape() == Shape{3, 2});
  CHECK(longs(tn::permute_dims(x)) == Longs{0, 3, 1, 4, 2, 5});
  CHECK(longs(tn::flip(x, Axes(-1))) == Longs{2, 1, 0, 5, 4, 3});
  CHECK(longs(tn::broadcast_to(counting({2, 1}), {2, 2, 2})) == Longs{0, 0, 1, 1, 0, 0, 1, 1});
  Tensor line = counting({10});
  CHECK(longs(tn::slice(line, 1, 8, 3)) == Longs{1, 4, 7});
  CHECK(longs(tn::slice(line, -1, -11, -4)) == Longs{9, 5, 1});
  CHECK(longs(tn::slice(x, {1}, {INT64_MAX}, {}, Axes(1))) == Longs{1, 2, 4, 5});
  CHECK(longs(tn::slice(line, 5, 2)).empty());
  CHECK_THROWS(tn::reshape(x, {4, -1}));
  CHECK_THROWS(tn::reshape(x, {5}));
  CHECK_THROWS(tn::broadcast_to(x, {2, 4}));
  CHECK_THROWS(tn::permute_dims(x, tn::Perm{0, 0}));
}

TEST_CASE("axes are added, moved and merged") {
  Tensor x = counting({2, 3, 4});
  CHECK(tn::moveaxis(x, 0, -1).shape() == Shape{3, 4, 2});
  CHECK(tn::moveaxis(x, {2, 0}, {0, 1}).shape() == Shape{4, 2, 3});
  CHECK(tn::expand_dims(x, Axes{-1, 1}).shape() == Shape{2, 1, 3, 4, 1});
  CHECK(tn::squeeze(tn::expand_dims(x, Axes{-1, 1})).shape() == Shape{2, 3, 4});
  CHECK(tn::flatten(x, 1).shape() == Shape{2, 12});
  CHECK(tn::unflatten(x, -1, {2, -1}).shape() == Shape{2, 3, 2, 2});
  CHECK(tn::expand(counting({1, 3}), {2, -1}).shape() == Shape{2, 3});
  CHECK(tn::matrix_transpose(x).shape() == Shape{2, 4, 3});
  CHECK_THROWS(tn::squeeze(x, Axes(0)));
}

TEST_CASE("joining and taking apart") {
  Tensor x = counting({2, 2});
  CHECK(longs(tn::concat({x, x}, 1)) == Longs{0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(longs(tn::concat({x, counting({1})}, {})) == Longs{0, 1, 2, 3, 0});
  CHECK(longs(tn::stack({x, x}, -1)) == Longs{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(longs(tn::unstack(x, 1)[1]) == Longs{1, 3});
  Tensors parts = tn::array_split(counting({5}), 2);
  CHECK(longs(parts[0]) == Longs{0, 1, 2});
  CHECK(longs(tn::split(counting({5}), {}, 0, Ints{1, 3})[1]) == Longs{1, 2});
  CHECK(longs(tn::roll(counting({5}), 2)) == Longs{3, 4, 0, 1, 2});
  CHECK(longs(tn::roll(x, {1, 1}, Axes{0, 1})) == Longs{3, 2, 1, 0});
  CHECK(longs(tn::repeat(counting({2}), 3)) == Longs{0, 0, 0, 1, 1, 1});
  CHECK(longs(tn::repeat(x, tn::array(Longs{2, 0}, {2}), 1)) == Longs{0, 0, 2, 2});
  CHECK_THROWS(tn::repeat(x, tn::array(Longs{1, 1, 1}, {3}), 1));
  CHECK(longs(tn::tile(counting({2}), {2, 2})) == Longs{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK_THROWS(tn::concat({x, counting({3})}));
  CHECK_THROWS(tn::split(counting({5}), 2));
}

TEST_CASE("padding modes") {
  Tensor x = counting({3});
  CHECK(longs(tn::pad(x, {1, 2}, "constant", 7)) == Longs{7, 0, 1, 2, 7, 7});
  CHECK(longs(tn::pad(x, {1, 2}, "edge")) == Longs{0, 0, 1, 2, 2, 2});
  CHECK(longs(tn::pad(x, {3, 3}, "reflect")) == Longs{1, 2, 1, 0, 1, 2, 1, 0, 1});
  CHECK(longs(tn::pad(x, {4, 2}, "wrap")) == Longs{2, 0, 1, 2, 0, 1, 2, 0, 1});
  CHECK(longs(tn::pad(counting({1, 2}), {0, 1, 1, 0})) == Longs{0, 0, 1, 0, 0, 0});
  CHECK(longs(tn::diag(tn::array(Longs{1, 2}, {2}), -1)) == Longs{0, 0, 0, 1, 0, 0, 0, 2, 0});
  CHECK(longs(tn::diagonal(counting({3, 4}), 1)) == Longs{1, 6, 11});
  CHECK(tn::trace(counting({3, 4})).item<int64_t>() == 15);
  CHECK(longs(tn::as_strided(counting({8}), Shape{3, 4}, Ints{2, 1})) ==
        Longs{0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7});
}

TEST_CASE("reading by index") {
  Tensor x = counting({3, 4});
  Tensor at = tn::array(Longs{2, 0}, {2});
  CHECK(longs(tn::gather(x, {at}, Axes(1))) == Longs{2, 0, 6, 4, 10, 8});
  CHECK(longs(tn::gather(x, {at, at}, Axes{1, 0})) == Longs{10, 0});
  CHECK(longs(tn::gather(x, {tn::reshape(at, {2, 1}), at}, Axes{0, 1})) == Longs{10, 8, 2, 0});
  Tensor cube = counting({2, 3, 4});
  CHECK(tn::gather(cube, {at, at}, Axes{0, 2}, 0, "clamp").shape() == Shape{2, 3});
  CHECK(longs(tn::gather(cube, {tn::array(Longs{1, 0}, {2}), at}, Axes{0, 2})) ==
        Longs{14, 18, 22, 0, 4, 8});
  CHECK(longs(tn::take(x, tn::array(Longs{-1, 2}, {2}), 0)) == Longs{8, 9, 10, 11, 8, 9, 10, 11});
  CHECK(longs(tn::gather(x, {tn::array(Longs{-1, 9}, {2})}, Axes(0), 0, "clamp")) ==
        Longs{0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(longs(tn::take_along_axis(x, tn::array(Longs{0, -1, 1}, {3, 1}), 1)) == Longs{0, 7, 9});
  CHECK(longs(tn::dynamic_slice(x, {Tensor(9), Tensor(1)}, {2, 2})) == Longs{5, 6, 9, 10});
  CHECK(floats(tn::one_hot(tn::array(Longs{1, 3}, {2}), 3)) == Floats{0, 1, 0, 0, 0, 0});
  CHECK_THROWS(tn::take(tn::array(Longs{}, {0}), at));
  CHECK_THROWS(tn::take(x, tn::array(Floats{0}, {1}), 0));
}

TEST_CASE("writing by index") {
  Tensor x = counting({2, 3});
  Tensor at = tn::array(Longs{0, 0, 2}, {3}), v = tn::array(Longs{10, 20, 30}, {3});
  CHECK(longs(tn::scatter(x, v, {at}, Axes(1))) == Longs{20, 1, 30, 20, 4, 30});
  CHECK(longs(tn::scatter(x, v, {at}, Axes(1), "add")) == Longs{30, 1, 32, 33, 4, 35});
  CHECK(longs(tn::scatter(x, 2, {Tensor(1)}, Axes(0), "mul")) == Longs{0, 1, 2, 6, 8, 10});
  CHECK(longs(tn::scatter_add(x, 1, {Tensor(-1)}, Axes(1))) == Longs{0, 1, 3, 3, 4, 6});
  CHECK(longs(tn::put_along_axis(x, tn::array(Longs{2, 0}, {2, 1}), 9, 1)) ==
        Longs{0, 1, 9, 9, 4, 5});
  CHECK(longs(tn::segment_sum(v, at, 3)) == Longs{30, 0, 30});
  Tensor beyond = tn::array(Longs{3, 1, -1}, {3});  // only the second one lies inside
  CHECK(longs(tn::scatter(x, 9, {beyond}, Axes(1), "set", 0, "drop")) == Longs{0, 9, 2, 3, 9, 5});
  CHECK(longs(tn::scatter(x, 9, {beyond}, Axes(1), "add", 0, "drop")) == Longs{0, 10, 2, 3, 13, 5});
  CHECK(longs(tn::slice_update(x, 9, {0}, {3}, Ints(2), Axes(1))) == Longs{9, 1, 9, 9, 4, 9});
  CHECK(longs(tn::slice_update(x, v, {2}, {-4}, Ints(-1), Axes(1))) ==
        Longs{30, 20, 10, 30, 20, 10});
  CHECK(longs(tn::dynamic_update_slice(x, tn::array(Longs{9}, {1, 1}), {Tensor(5), Tensor(-5)})) ==
        Longs{0, 1, 2, 9, 4, 5});
  CHECK_THROWS(tn::scatter(x, v, {at}, Axes(2)));
  CHECK_THROWS(tn::slice_update(x, v, {0}, {2}, Ints(1), Axes(1)));
}
