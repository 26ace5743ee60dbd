// Branches, maps and prefixes in C++, and functions of trees.
#include <doctest/doctest.h>

#include "errors.h"
#include "tenon/dtype_info.h"
#include "tenon/loops.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

struct Pair {
  Tensor a, b;
  static void fields(auto& p, auto&& f) { f("a", p.a), f("b", p.b); }
};

}  // namespace

TEST_CASE("switch_ runs one of several branches") {
  std::tuple branches{[](Tensor x) { return x; }, [](Tensor x) { return x * 10; },
                      [](Tensor x) { return x * 100; }};
  auto f = [&](Tensor i, Tensor x) { return switch_(i, branches, x); };
  Tensor x = array(3.0);
  for (int i : {-1, 0, 1, 2, 7}) {
    float want = i <= 0 ? 3 : i == 1 ? 30 : 300;
    CHECK(switch_(i, branches, x).item<float>() == want);
    CHECK(compile(f)(Tensor(i), x).item<float>() == want);
  }
  CHECK(
      contains(error_in([&] { switch_(1.5, branches, x); }), "the index is one integer, not f32"));
}

TEST_CASE("map calls a function for each element") {
  Tensor xs = array({1.f, 2.f, 3.f});
  CHECK(tn::map([](Tensor x) { return x * x; }, xs).to_vector<float>() ==
        std::vector<float>{1, 4, 9});
  auto [sums, ones] =
      tn::map([](Pair p) { return std::pair(p.a + p.b, ones_like(p.a)); }, Pair{xs, xs});
  CHECK(sums.to_vector<float>() == std::vector<float>{2, 4, 6});
  CHECK(ones.dim(0) == 3);
}

TEST_CASE("prefixes of an associative function") {
  for (int64_t n : {1, 2, 3, 4, 7, 8}) {
    Tensor x = arange(n) + 1;
    CHECK(all(associative_scan([](Tensor a, Tensor b) { return a + b; }, x) == cumulative_sum(x, 0))
              .item<bool>());
  }
  Tensor m = reshape(arange(6), {2, 3});
  CHECK(associative_scan([](Tensor a, Tensor b) { return maximum(a, b); }, m,
                         {.reverse = true, .axis = 1})
            .to_vector<int64_t>() == std::vector<int64_t>{2, 2, 2, 5, 5, 5});
  Pair both{array({1.f, 2.f, 3.f}), array({1.f, 1.f, 1.f})};
  Pair made = associative_scan([](Pair x, Pair y) { return Pair{x.a * y.a, x.b + y.b}; }, both);
  CHECK(made.a.to_vector<float>() == std::vector<float>{1, 2, 6});
  CHECK(made.b.to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(contains(
      error_in([&] { associative_scan([](Tensor a, Tensor) { return sum(a); }, arange(4)); }),
      "changes the shape"));
  CHECK(contains(error_in([&] {
                   associative_scan([](Pair a, Pair) { return a; }, Pair{arange(2), arange(3)});
                 }),
                 "lengths differ: 2 and 3"));
  CHECK(
      contains(error_in([&] { associative_scan([](Tensors a, Tensors) { return a; }, Tensors{}); }),
               "there are no tensors"));
  CHECK(contains(error_in([&] {
                   associative_scan([](Tensors, Tensors) { return Tensors{}; }, Tensors{arange(2)});
                 }),
                 "changes the structure"));
}

TEST_CASE("functions of trees") {
  Pair p{ones({2}), array({1.f, 2.f, 3.f})}, g{ones({2}), ones({3})};
  Pair next = tree::map([](const Tensor& w, const Tensor& d) { return w - d; }, p, g);
  CHECK(next.b.to_vector<float>() == std::vector<float>{0, 1, 2});
  CHECK(tree::leaves(p).size() == 2);
  CHECK(tree::reduce([](int64_t n, const Tensor& x) { return n + x.size(); }, p, int64_t{0}) == 5);
  std::vector<std::string> paths;
  tree::map_with_path(
      [&](const std::string& path, const Tensor& x) { return paths.push_back(path), x; },
      std::vector<Pair>{p, p});
  CHECK(paths == std::vector<std::string>{"[0].a", "[0].b", "[1].a", "[1].b"});
  CHECK(contains(error_in([&] { tree::unflatten(p, {ones({1})}); }),
                 "tree::unflatten: the tree has 2 tensors, given 1"));
  CHECK(contains(error_in([&] { tree::map([](auto& x, auto&) { return x; }, p, Tensors{}); }),
                 "tree::map: a tree has another structure: nothing in the place of a"));
}

TEST_CASE("limits of element types") {
  CHECK(finfo(float32).eps == std::numeric_limits<float>::epsilon());
  CHECK(finfo(complex128).max == std::numeric_limits<double>::max());
  CHECK(finfo(bfloat16).bits == 16);
  CHECK(finfo(float8_e4m3).max == 448);
  CHECK(iinfo(int8).min == -128);
  CHECK(iinfo(uint64).max == std::numeric_limits<uint64_t>::max());
  CHECK(iinfo(int64).min == std::numeric_limits<int64_t>::min());
  CHECK(isdtype(int8, {Kind::integer, Kind::natural}));
  CHECK(can_cast(int8, float32));
  CHECK(!can_cast(float32, int8));
  CHECK(result_type({int8, uint8, float16}) == float16);
  CHECK(broadcast_shapes({{2, 1}, {3}, {}}) == Shape{2, 3});
  CHECK(contains(error_in([] { finfo(int8); }), "finfo: not a floating-point type: int8"));
  CHECK(contains(error_in([] { iinfo(float32); }), "iinfo: not an integer type: float32"));
  CHECK(contains(error_in([] { result_type({}); }), "there are no types"));
}
