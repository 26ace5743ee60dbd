// Transforms of typed functions: trees of every kind, composition, generic functions, errors.
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <map>
#include <optional>

#include "errors.h"
#include "tenon/nn.h"
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

bool close(const Tensor& a, const Tensor& b) { return allclose(a, b, 1e-5, 1e-6).item<bool>(); }

Tensor cubes(const Tensor& x) { return sum(x * x * x); }

const Params kParams{array({{1.f}, {2.f}}), array({0.5f})};
const Tensor kX = array({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}), kY = array({{1.f}, {2.f}, {3.f}});

}  // namespace

TEST_CASE("typed: the gradient of a lambda, a functor and a function pointer") {
  struct Functor {
    Tensor operator()(const Tensor& x) const { return sum(x * x * x); }
  };
  Tensor x = array({1.f, 2.f, 3.f});
  CHECK(floats(grad([](Tensor v) { return sum(v * v * v); })(x)) == Floats{3, 12, 27});
  CHECK(floats(grad(Functor())(x)) == Floats{3, 12, 27});
  CHECK(floats(grad(cubes)(x)) == Floats{3, 12, 27});
  CHECK(floats(grad([](auto v) { return sum(v * v * v); })(x)) == Floats{3, 12, 27});
  std::function<Tensor(Tensor)> held = cubes;
  CHECK(floats(grad(held)(x)) == Floats{3, 12, 27});
  CHECK(floats(vmap(tn::sin)(x)) == floats(tn::sin(x)));
}

TEST_CASE("typed: value and gradient in the parameters of a model") {
  auto [value, d] = value_and_grad(loss)(kParams, kX, kY);
  static_assert(std::is_same_v<decltype(d), Params>);
  Tensor error = matmul(kX, kParams.w) + kParams.b - kY;
  CHECK(close(value, mean(error * error)));
  CHECK(close(d.w, matmul(matrix_transpose(kX), error) * (2.f / 3)));
  CHECK(close(d.b, reshape(mean(error) * 2, {1})));
}

TEST_CASE("typed: several arguments by number") {
  auto f = [](Tensor x, Tensor y) { return sum(x * x * y); };
  Tensor x = array({1.f, 2.f}), y = array({3.f, 4.f});
  auto [dx, dy] = grad(f, wrt<0, 1>)(x, y);
  CHECK(floats(dx) == Floats{6, 16});
  CHECK(floats(dy) == Floats{1, 4});
  CHECK(floats(grad(f, wrt<1>)(x, y)) == Floats{1, 4});
}

TEST_CASE("typed: trees of every kind") {
  using Tree =
      std::tuple<Tensor, std::pair<Tensor, double>, std::array<Tensor, 2>, std::vector<Params>,
                 std::map<std::string, Tensor>, std::optional<Tensor>>;
  auto f = [](const Tree& t) {
    const auto& [a, b, c, d, e, g] = t;
    Tensor all = sum(a * a) + sum(b.first) * b.second + sum(c[0] * c[1]);
    for (const Params& p : d) all = all + sum(p.w * p.b);
    for (const auto& [key, x] : e) all = all + sum(x) * static_cast<double>(key.size());
    return g ? all + sum(*g) * 7 : all;
  };
  Tensor two = array({2.f}), three = array({3.f});
  Tree tree{two, {two, 5.0}, {two, three}, {{two, three}}, {{"ab", two}, {"c", three}}, two};
  Tree d = grad(f)(tree);
  CHECK(floats(std::get<0>(d)) == Floats{4});
  CHECK(floats(std::get<1>(d).first) == Floats{5});
  CHECK(std::get<1>(d).second == 5.0);
  CHECK(floats(std::get<2>(d)[1]) == Floats{2});
  CHECK(floats(std::get<3>(d)[0].w) == Floats{3});
  CHECK(floats(std::get<4>(d)["ab"]) == Floats{2});
  CHECK(floats(*std::get<5>(d)) == Floats{7});
  std::get<5>(tree).reset();
  CHECK(!std::get<5>(grad(f)(tree)));
}

TEST_CASE("typed: a gradient in a module leaves out what is frozen") {
  nn::Linear layer(2, 1);
  auto f = [](const nn::Linear& l, const Tensor& x) { return sum(l(x)); };
  nn::Linear d = grad(f)(layer, kX);
  CHECK(d.weight.shape() == layer.weight.shape());
  CHECK(floats(d.bias) == Floats{3});
  layer.freeze({"bias"});
  nn::Linear fewer = grad(f)(layer, kX);
  CHECK(fewer.weight.defined());
  CHECK(!fewer.bias.defined());
}

TEST_CASE("typed: auxiliary results") {
  auto f = [](Tensor x) { return std::tuple{sum(x * x), x + 1, 5}; };
  auto [values, d] = value_and_grad(f)(array({1.f, 2.f}));
  auto [value, more, number] = values;
  CHECK(value.item<float>() == 5);
  CHECK(floats(more) == Floats{2, 3});
  CHECK(number == 5);
  CHECK(floats(d) == Floats{2, 4});
}

TEST_CASE("typed: transforms compose") {
  auto f = [](Tensor x) { return sum(sin(x) * exp(-x * x)); };
  Tensor x = linspace(-1.0, 1.0, 7), t = ones_like(x);
  Tensor slope = grad(f)(x);
  CHECK(close(compile(grad(f))(x), slope));
  CHECK(close(grad(compile(f))(x), slope));
  CHECK(close(vmap(grad(f))(reshape(x, {7, 1})), reshape(slope, {7, 1})));
  CHECK(close(grad([&](Tensor v) { return sum(grad(f)(v)); })(x), diagonal(hessian(f)(x))));
  auto [y, dy] = jvp(f, x, t);
  CHECK(close(y, f(x)));
  CHECK(close(dy, sum(slope)));
  auto [z, dz] = jvp(grad(f), x, t);
  CHECK(close(dz, matmul(hessian(f)(x), t)));
  CHECK(close(grad(checkpoint(f))(x), slope));
  CHECK(close(jvp(compile(vmap(f)), reshape(x, {7, 1}), reshape(t, {7, 1})).second, slope));
}

TEST_CASE("typed: jvp and vjp of several arguments") {
  auto f = [](Tensor x, Tensor y) { return std::pair{x * y, sum(x)}; };
  Tensor x = array({2.f, 3.f}), y = array({5.f, 7.f});
  auto [out, tangents] = jvp(f, std::tuple(x, y), std::tuple(ones_like(x), Tensor()));
  CHECK(floats(out.first) == Floats{10, 21});
  CHECK(floats(tangents.first) == Floats{5, 7});
  CHECK(tangents.second.item<float>() == 2);
  auto [again, pullback] = vjp(f, x, y);
  auto [dx, dy] = pullback({ones_like(x), Tensor()});
  CHECK(floats(again.first) == Floats{10, 21});
  CHECK(floats(dx) == Floats{5, 7});
  CHECK(floats(dy) == Floats{2, 3});
  auto [whole, back] = vjp([](Tensor v, Tensor i) { return take(v, i); }, x, array({1, 0}));
  auto [dv, di] = back(array({1.f, 2.f}));
  CHECK(floats(dv) == Floats{2, 1});
  CHECK(!di.defined());
}

TEST_CASE("typed: Jacobians and Hessians") {
  Tensor x = array({2.f, 3.f}), y = array({5.f, 7.f});
  auto h = [](Tensor a, Tensor b) { return a * b; };
  for (const Tensor& J : {jacobian(h)(x, y), jacrev(h)(x, y), jacfwd(h)(x, y)})
    CHECK(floats(J) == Floats{5, 0, 0, 7});
  auto [ja, jb] = jacobian(h, wrt<0, 1>)(x, y);
  CHECK(floats(jb) == Floats{2, 0, 0, 3});
  Params by_field = jacobian([](const Params& p) { return p.w * p.b; })(Params{x, y});
  CHECK(floats(by_field.b) == Floats{2, 0, 0, 3});
  auto [first, second] = jacobian([](Tensor v) { return std::pair{v * 2, sum(v)}; })(x);
  CHECK(floats(first) == Floats{2, 0, 0, 2});
  CHECK(floats(second) == Floats{1, 1});
  std::vector<Params> rows = hessian([](const Params& p) { return sum(p.w * p.b); })(Params{x, y});
  REQUIRE(rows.size() == 2);
  CHECK(floats(rows[0].b) == Floats{1, 0, 0, 1});
}

TEST_CASE("typed: vmap with an axis for each argument and result") {
  auto f = [](const Params& p, Tensor x) { return std::pair{p.w * x, sum(x)}; };
  Tensor xs = array({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  Params p{array({10.f, 20.f}), array({0.f})};
  auto [products, sums] = vmap(f, {none, 1}, {1, 0})(p, xs);
  CHECK(floats(products) == floats(xs * array({{10.f}, {20.f}})));
  CHECK(floats(sums) == Floats{5, 7, 9});
  Params each = vmap(grad(loss), {none, 0, 0})(kParams, reshape(kX, {3, 1, 2}), kY);
  CHECK(each.w.shape() == Shape{3, 2, 1});
  CHECK(close(mean(each.w, 0), grad(loss)(kParams, kX, kY).w));
}

TEST_CASE("typed: custom rules") {
  auto clipped = custom_function([](Tensor x) {
                   return clip(x, -1, 1);
                 }).vjp([](Tensor, Tensor ct, Tensor) { return ct; });
  CHECK(grad([&](Tensor x) { return clipped(x) * 3; })(array(7.0)).item<float>() == 3);
  auto product = custom_function([](const Params& p) {
                   return sum(p.w * p.b);
                 }).jvp([](const Params& p, const Params& t) {
    return sum(p.b * t.w) * 10;  // and none in b
  });
  Params d = grad(product)(Params{array({1.f, 2.f}), array({3.f, 4.f})});
  CHECK(floats(d.w) == Floats{30, 40});
  CHECK(floats(d.b) == Floats{0, 0});
  auto doubled = custom_function([](Tensor x) {
                   return x * 2;
                 }).vmap([](int64_t, const std::array<bool, 1>& batched, Tensor x) {
    return std::pair{x * 100, batched[0]};
  });
  CHECK(floats(vmap(doubled)(array({1.f, 2.f}))) == Floats{100, 200});
}

TEST_CASE("typed: errors name the argument by its path, and the place of the call") {
  Params wrong{kParams.w, array({1})};
  std::string text = error_in([&] { grad(loss)(wrong, kX, kY); });
  CHECK(contains(text, "grad: argument 0.b is i32[1]: derivatives exist"));
  CHECK(contains(text, "test_typed_transforms.cpp:"));
  CHECK(contains(error_in([&] { grad(loss)(Params{kParams.w, {}}, kX, kY); }),
                 "grad: argument 0.b is a null tensor"));
  CHECK(contains(error_in([&] { grad([](Tensor x) { return x * 2; })(kX); }),
                 "must return a scalar first, not f32[3,2]"));
  auto with_map = [](const std::map<std::string, Tensor>& m) { return sum(m.at("w")); };
  CHECK(contains(error_in([&] { grad(with_map)({{"w", array({1, 2})}}); }),
                 "argument 0[\"w\"] is i32[2]"));
  CHECK(contains(error_in([&] { vmap(loss, {0})(kParams, kX, kY); }), "1 in_axes for 3 arguments"));
  CHECK(contains(error_in([&] { vmap(loss)(Params{kX, array(1.0)}, kX, kY); }), "argument 0.b"));
  CHECK(contains(error_in([&] { vjp(cubes, array(1.0)).second(kX); }), "the cotangent of"));
}

TEST_CASE("typed: several results of an op are a tree") {
  Tensor m = array({{4.f, 1.f}, {2.f, 3.f}});
  auto factors = [](const Tensor& x) { return linalg::qr(x); };
  auto [q, r] = compile(factors)(m);
  CHECK(allclose(matmul(q, r), m, 1e-5, 1e-6).item<bool>());
  auto each = vmap(factors)(stack({m, 2 * m}));
  CHECK(each.Q.shape() == Shape{2, 2, 2});
  auto [values, tangents] =
      jvp([](const Tensor& x) { return linalg::slogdet(x); }, m, ones({2, 2}));
  CHECK(tangents.logabsdet.item<float>() == doctest::Approx(0.4f));  // the sum of the inverse
  CHECK(tree::leaves(topk(m, 1)).size() == 2);
}
