// Graphs as attributes, and the calls that checkpoint records.
#include <doctest/doctest.h>

#include "errors.h"
#include "ir/body.h"
#include "run_graph.h"
#include "runtime/memory_use.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

Tensors wave(const Tensors& x) { return {sin(x[0]) * exp(x[0] * 0.3)}; }
Tensors total(const Tensors& x) { return {sum(x[0])}; }

/// `f` repeated, and summed.
Function chain(Function f, int length) {
  return [f, length](const Tensors& x) {
    Tensors y = {x[0]};
    for (int i = 0; i < length; ++i) y = f(y);
    return total(y);
  };
}

Function second(Function f) {
  return flat::grad([f](const Tensors& at) { return total(flat::grad(f)(at)); });
}

}  // namespace

TEST_CASE("graphs of one structure are one body") {
  auto text = [](const char* a, const char* n) {
    return tn::format(
        "func @f(%{0}: f32[3]) {{\n%1 = constant {{value={1}}} : f32[]\n"
        "%2 = add %{0}, %1\nreturn %2\n}}\n",
        a, n);
  };
  GraphRef one = intern(parse_graph(text("a", "1.5")));
  CHECK(one == intern(parse_graph(text("b", "1.5"))));
  CHECK(one != intern(parse_graph(text("a", "2.5"))));
}

TEST_CASE("checkpoint gives the same bits, nested too, and works to second order") {
  Tensor x = array({0.1f, 0.7f, -1.3f});
  Function plain = chain(wave, 3);
  std::vector<float> expected = second(plain)({x})[0].to_vector<float>();
  for (const Function& f : {chain(flat::checkpoint(wave), 3), flat::checkpoint(plain),
                            flat::checkpoint(chain(flat::checkpoint(wave), 3))}) {
    CHECK(bytes_of(flat::grad(f)({x})) == bytes_of(flat::grad(plain)({x})));
    std::vector<float> found = second(f)({x})[0].to_vector<float>();
    for (size_t i = 0; i < 3; ++i)  // sums of cotangents are added in another order
      CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}

TEST_CASE("gradients flow to what a checkpointed function closes over") {
  Tensor x = array({1.f, 2.f});
  Function f = [&](const Tensors& w) {
    return total(
        flat::checkpoint([&](const Tensors& in) { return Tensors{in[0] * w[0] * w[0]}; })({x}));
  };
  CHECK(flat::grad(f)({array({3.f, 4.f})})[0].to_vector<float>() == std::vector<float>{6, 16});
}

TEST_CASE("values are known inside a checkpointed function") {
  Function f = flat::checkpoint(
      [](const Tensors& x) { return Tensors{x[0].item<float>() > 0 ? x[0] * 2.f : x[0] * 3.f}; });
  CHECK(flat::grad(f)({Tensor(1.f)})[0].item<float>() == 2);
  CHECK(flat::grad(f)({Tensor(-1.f)})[0].item<float>() == 3);
}

TEST_CASE("a derivative through checkpoints needs less memory") {
  auto peak_of = [](const Function& f) {
    Tensor x = random_tensor(intern(DType::f32, {1 << 16}), 1);
    reset_peak_memory();
    size_t before = active_memory();
    flat::grad(f)({x})[0].eval();
    return peak_memory() - before;
  };
  Function segment = [](const Tensors& x) {
    Tensor y = x[0];
    for (int i = 0; i < 8; ++i) y = sin(y) * x[0];
    return Tensors{y};
  };
  size_t plain = peak_of(chain(segment, 8)), less = peak_of(chain(flat::checkpoint(segment), 8));
  CHECK(less * 2 < plain);
}

TEST_CASE("vmap and jvp of a checkpointed function") {
  Tensor x = array<float>({1, 2, 3, 4}, {2, 2});
  Function f = chain(flat::checkpoint(wave), 2), plain = chain(wave, 2);
  CHECK(bytes_of(flat::vmap(f)({x})) == bytes_of(flat::vmap(plain)({x})));
  CHECK(bytes_of(flat::vmap(flat::grad(f))({x})) == bytes_of(flat::vmap(flat::grad(plain))({x})));
  CHECK(bytes_of(flat::jvp(f, {x}, {x}).derivatives) ==
        bytes_of(flat::jvp(plain, {x}, {x}).derivatives));
}

namespace {

/// x * x with a derivative of its own, three times too large.
flat::CustomRules tripled() {
  flat::CustomRules rules;
  rules.vjp = [](const Tensors& x, const Tensors& ct, const Tensors&) {
    return Tensors{ct[0] * x[0] * 6.f};
  };
  return rules;
}
Tensors squared(const Tensors& x) { return {x[0] * x[0]}; }

}  // namespace

TEST_CASE("a custom function has its own derivative, of any order and on a batch") {
  Function f = flat::custom_function(squared, tripled());
  CHECK(f({Tensor(3.f)})[0].item<float>() == 9);
  CHECK(flat::grad(f)({Tensor(3.f)})[0].item<float>() == 18);
  CHECK(flat::grad(flat::grad(f))({Tensor(3.f)})[0].item<float>() == 6);
  Tensor x = array({1.f, 2.f});
  CHECK(flat::vmap(flat::grad(f))({x})[0].to_vector<float>() == std::vector<float>{6, 12});
  Function mapped = [f](const Tensors& in) { return total(flat::vmap(f)(in)); };
  CHECK(flat::grad(mapped)({x})[0].to_vector<float>() == std::vector<float>{6, 12});
  CHECK(flat::grad(flat::checkpoint(f))({Tensor(3.f)})[0].item<float>() == 18);
  Function in_loop = [f](const Tensors& in) {
    return flat::scan(
               [f](const Tensors& c, const Tensors&) -> flat::ScanResult { return {f(c), {}}; }, in,
               {}, 2)
        .carry;
  };
  CHECK(flat::grad(in_loop)({Tensor(2.f)})[0].item<float>() == 6 * 4 * 6 * 2);
}

TEST_CASE("a custom function without vjp uses its jvp backwards, then itself") {
  flat::CustomRules rules;
  rules.jvp = [](const Tensors& x, const Tensors& t) { return Tensors{t[0] * x[0] * 6.f}; };
  Function f = flat::custom_function(squared, rules);
  CHECK(flat::grad(f)({Tensor(3.f)})[0].item<float>() == 18);
  CHECK(flat::jvp(f, {Tensor(3.f)}, {Tensor(1.f)}).derivatives[0].item<float>() == 18);
  CHECK(flat::vmap(flat::grad(f))({array({1.f, 2.f})})[0].to_vector<float>() ==
        std::vector<float>{6, 12});
  CHECK(flat::grad(flat::custom_function(squared, {}))({Tensor(3.f)})[0].item<float>() == 6);
  CHECK(flat::jvp(flat::custom_function(squared, {}), {Tensor(3.f)}, {Tensor(1.f)})
            .derivatives[0]
            .item<float>() == 6);
}

TEST_CASE("a vmap rule is used on batches") {
  flat::CustomRules rules;
  rules.vmap = [](const Tensors& x, const std::vector<bool>&, int64_t) {
    return std::pair(Tensors{x[0] * 100.f}, std::vector<bool>{true});
  };
  Tensor x = array({1.f, 2.f});
  CHECK(flat::vmap(flat::custom_function(squared, rules))({x})[0].to_vector<float>() ==
        std::vector<float>{100, 200});
}

TEST_CASE("what custom functions refuse") {
  Tensor one = Tensor(1.f);
  Function f = flat::custom_function(squared, tripled());
  CHECK(contains(error_in([&] { flat::jvp(f, {one}, {one}); }), "only vjp is given"));
  flat::CustomRules rules;
  rules.vjp = [](const Tensors&, const Tensors&, const Tensors&) { return Tensors(2); };
  CHECK(contains(error_in([&] { flat::grad(flat::custom_function(squared, rules))({one}); }),
                 "vjp returns 2 cotangents for 1 arguments"));
  rules.vjp = [](const Tensors&, const Tensors&, const Tensors&) {
    return Tensors{array({1.f, 2.f})};
  };
  CHECK(contains(error_in([&] { flat::grad(flat::custom_function(squared, rules))({one}); }),
                 "vjp returns f32[2] as the cotangent of argument 0, which is f32[]"));
  Function closing = [](const Tensors& w) {
    Function product = [w](const Tensors& x) { return Tensors{x[0] * w[0]}; };
    return flat::custom_function(product, tripled())({w[0]});
  };
  CHECK(contains(error_in([&] { flat::grad(closing)({one}); }),
                 "of f32[], which the function closes over"));
}

TEST_CASE("the rules of a custom function do not outlive it") {
  auto token = std::make_shared<int>(0);
  {
    flat::CustomRules rules = tripled();
    rules.vjp = [token, inner = rules.vjp](const Tensors& x, const Tensors& ct, const Tensors& o) {
      return inner(x, ct, o);
    };
    CHECK(flat::grad(flat::custom_function(squared, rules))({Tensor(1.f)})[0].item<float>() == 6);
  }
  CHECK(token.use_count() == 1);
}
