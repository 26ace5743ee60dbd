// Compiled typed functions: several arguments and results, structure and numbers as a part of the
// key, state.
#include <doctest/doctest.h>

#include <map>
#include <optional>

#include "errors.h"
#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tenon/tenon.h"

using namespace tn;
using Floats = std::vector<float>;

namespace {

struct Params {
  Tensor w, b;
  static constexpr auto fields(auto& p, auto&& f) { f("w", p.w), f("b", p.b); }
};

const auto loss = [](const Params& p, const Tensor& x, const Tensor& y) {
  return mean(square(matmul(x, p.w) + p.b - y));
};

Floats floats(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("typed: a compiled step of several arguments and results") {
  auto step = compile([](Params p, Tensor x, Tensor y) {
    auto [l, g] = value_and_grad(loss)(p, x, y);
    return std::tuple{l, Params{p.w - 0.1 * g.w, p.b - 0.1 * g.b}};
  });
  Params params{array({{1.f}, {2.f}}), array({0.f})};
  Tensor x = array({{1.f, 0.f}, {0.f, 1.f}}), y = array({{3.f}, {1.f}});
  Floats before;
  for (int i = 0; i < 50; ++i) {
    auto [l, next] = step(params, x, y);
    before.push_back(l.item<float>());
    params = next;
  }
  CHECK(before.back() < before.front() * 0.01f);
  CHECK(step.stats().traces == 1);
  CHECK(step.stats().hits == 49);
  auto first = value_and_grad(loss)(Params{array({{1.f}, {2.f}}), array({0.f})}, x, y);
  CHECK(before[0] == first.first.item<float>());
}

TEST_CASE("typed: numbers, keys and lengths in arguments decide the trace") {
  int calls = 0;
  auto f = compile([&](const std::map<std::string, Tensor>& m, const std::vector<Tensor>& v, int n,
                       std::string_view mode, std::optional<Tensor> more) {
    ++calls;
    Tensor all = sum(stack(v)) * n;
    for (const auto& [key, x] : m) all = all + x * static_cast<double>(key.size());
    if (mode == "half") all = all / 2;
    return more ? all + *more : all;
  });
  Tensor x = array(1.0);
  CHECK(f({{"a", x}}, {x, x}, 3, "all", {}).item<float>() == 7);
  CHECK(f({{"a", x}}, {x, x}, 3, "all", {}).item<float>() == 7);
  CHECK(calls == 1);
  CHECK(f({{"a", x}}, {x, x}, 4, "all", {}).item<float>() == 9);
  CHECK(f({{"bc", x}}, {x, x}, 4, "all", {}).item<float>() == 10);
  CHECK(f({{"bc", x}}, {x, x}, 4, "half", {}).item<float>() == 5);
  CHECK(f({{"bc", x}}, {x, x}, 4, "half", x).item<float>() == 6);
  CHECK(f({}, {x, x, x}, 4, "half", {}).item<float>() == 6);
  CHECK(calls == 6);
  CHECK(f({{"a", x}}, {x, x}, 3, "all", {}).item<float>() == 7);
  CHECK(calls == 6);
  bool named = false;
  for (const std::string& why : f.why_recompiled())
    named |= contains(why, "argument 2 was 3, now 4");
  CHECK(named);
}

TEST_CASE("typed: results of any structure") {
  auto f = compile([](const Tensor& x) {
    std::map<std::string, std::vector<Tensor>> made;
    for (int64_t i = 0; i < x.dim(0); ++i) made["row"].push_back(x[i] * 2);
    return std::tuple{made, x.dim(0), std::optional<Tensor>()};
  });
  for (int again = 0; again < 2; ++again) {
    auto [two, count, nothing] = f(array({{1.f}, {2.f}}));
    CHECK(two["row"].size() == 2);
    CHECK(floats(two["row"][1]) == Floats{4});
    CHECK(count == 2);
    CHECK(!nothing);
  }
  CHECK(std::get<1>(f(array({{1.f}, {2.f}, {3.f}}))) == 3);
  auto module = compile([](nn::Linear l) {
    l.weight = l.weight * 2;
    return l;
  });
  nn::Linear layer(2, 3), plain(2, 3, false);
  for (int again = 0; again < 2; ++again) {
    CHECK(floats(module(layer).weight) == floats(layer.weight * 2));
    CHECK(floats(module(layer).bias) == floats(layer.bias));
    CHECK(!module(plain).bias.defined());
  }
}

TEST_CASE("typed: generic functions, and lists as before") {
  auto f = compile([](auto x, auto y) { return x * y; });
  CHECK(f(array(2.0), array(3.0)).template item<float>() == 6);
  CHECK(f(array(2.0), 5).template item<float>() == 10);
  auto list = compile([](const Tensors& x) { return Tensors{x[0] + x[1], x[0]}; });
  CHECK(list({array(1.0), array(2.0)})[0].item<float>() == 3);
  CHECK(contains(list.show("graph", {array(1.0), array(2.0)}), "add"));
  CHECK(contains(list.explain({array(1.0), array(2.0)}), "kernel"));
}

TEST_CASE("typed: state with trees as arguments") {
  Tensor total = array({0.f, 0.f});
  auto add = compile(
      [&](const Params& p) {
        total = total + p.w;
        return std::pair{total, p.b * 2};
      },
      std::tie(total));
  for (int i = 1; i <= 3; ++i) {
    auto [sum_now, doubled] = add(Params{array({1.f, 2.f}), array({3.f})});
    CHECK(floats(sum_now) == Floats{float(i), float(2 * i)});
    CHECK(floats(doubled) == Floats{6});
  }
  CHECK(floats(total) == Floats{3, 6});
  CHECK(add.stats().traces == 1);
}

TEST_CASE("typed: errors of compiled functions name arguments") {
  auto f = compile(loss);
  CHECK(contains(error_in([&] { f(Params{array(1.0), {}}, array(1.0), array(1.0)); }),
                 "compile: argument 0.b is a null tensor"));
  CHECK(contains(error_in([&] { compile([](Tensor) { return Tensor(); })(array(1.0)); }),
                 "compile: the result is a null tensor"));
}

TEST_CASE("typed: reasons of traces show texts") {
  auto f = compile([](std::string_view mode, int n, std::map<std::string, Tensor> m) {
    return sum(m.begin()->second) * n + static_cast<double>(mode.size());
  });
  Tensor x = array({1.f, 2.f});
  f("relu", 2, {{"a", x}}), f("gelu", 2, {{"a", x}});
  f("a longer text", 3, {{"a", x}}), f("a longer text", 3, {{"b", x}});
  auto reasons = f.why_recompiled();
  CHECK(contains(reasons.at(1), R"(argument 0 was "relu", now "gelu")"));
  CHECK(contains(reasons.at(2),
                 R"(argument 0 was "gelu", now "a longer text", argument 1 was 2, now 3)"));
  CHECK(contains(reasons.at(3), R"(argument 2 was "a", now "b")"));
  auto lists = compile([](std::vector<int> n, const Tensor& t, std::optional<std::string> mode) {
    return t * static_cast<double>(n.size() + mode.value_or("").size());
  });
  lists({1, 2}, x, {}), lists({1, 2, 3}, x, {}), lists({1, 2, 3}, x, "sum");
  CHECK(contains(lists.why_recompiled().at(1), "argument 0.size() was 2, now 3"));
  CHECK(contains(lists.why_recompiled().at(2), "argument 2.has_value() was 0, now 1"));
  lists({1, 2, 3, 4}, x, "sum");
  CHECK(contains(lists.why_recompiled().at(3), "argument 0.size() was 3, now 4"));
  // As many words, but others: nothing behind the first difference is compared.
  auto both = compile([](std::optional<int> n, std::string_view mode, const Tensor& t) {
    return t * static_cast<double>(n.value_or(0)) + static_cast<double>(mode.size());
  });
  both({}, "twelve chars", x), both(7, "short", x), both(7, "a text of 3 words", x);
  CHECK(contains(both.why_recompiled().at(1), "argument 0.has_value() was 0, now 1"));
  CHECK_FALSE(contains(both.why_recompiled().at(1), "12"));
  CHECK(
      contains(both.why_recompiled().at(2), R"(argument 1 was "short", now "a text of 3 words")"));
  auto tensors = compile([](const std::vector<Tensor>& all) { return sum(stack(all)); });
  tensors({x, x}), tensors({x, x, x});
  CHECK(contains(tensors.why_recompiled().at(1), "argument 0.size() was 2, now 3"));
}

TEST_CASE("typed: errors about settings name the user's line") {
  auto f = [](const Tensor& x) { return x * 2; };
  Tensor total = array(0.0);
  CHECK(contains(error_in([&] { compile(f, {.mode = "fast"}); }), "test_typed_compile.cpp:"));
  CHECK(contains(error_in([&] { compile(f, std::tie(total), {.mode = "fast"}); }),
                 "test_typed_compile.cpp:"));
}

TEST_CASE("typed: a compiled function branches on a size") {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        return x.shape()[0] > 4 ? x * 2 : x;
      },
      {.shapeless = true});
  auto total = [&](int64_t size) { return sum(f(ones({size}))).item<float>(); };
  CHECK(total(3) == 3);
  CHECK(total(4) == 4);
  CHECK(total(5) == 10);
  CHECK(total(9) == 18);
  CHECK(total(2) == 2);
  CHECK(traces == 2);
  auto is_four =
      compile([](const Tensor& x) { return x.shape()[0] == 4 ? x * 0.0 : x; }, {.shapeless = true});
  for (int64_t size : {8, 4, 2, 4, 9})
    CHECK(sum(is_four(ones({size}))).item<float>() == (size == 4 ? 0 : float(size)));
  auto product = compile([](const Tensor& x, const Tensor& y) {
    return x.shape() == y.shape() ? sum(x * y) : array(-1.f);
  });
  for (auto [a, b] : {std::pair{2, 2}, {3, 4}, {5, 5}, {7, 9}, {8, 8}})
    CHECK(product(ones({a}), ones({b})).item<float>() == (a == b ? float(a) : -1));
}
