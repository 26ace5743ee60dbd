// Graphs as attributes, and the calls that checkpoint records.
#include <doctest/doctest.h>

#include "ir/body.h"
#include "run_graph.h"
#include "runtime/memory.h"
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

Tensors both_grads(const Function& f, const Tensors& x) {
  auto first = [f](const Tensors& at) { return total(grad(f)(at)); };
  return {grad(f)(x)[0], grad(first)(x)[0]};
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

TEST_CASE("checkpoint gives the same bits, to second order and nested") {
  Tensor x = array({0.1f, 0.7f, -1.3f});
  Function plain = chain(wave, 3);
  std::vector<std::string> expected = bytes_of(both_grads(plain, {x}));
  CHECK(bytes_of(both_grads(chain(checkpoint(wave), 3), {x})) == expected);
  CHECK(bytes_of(both_grads(checkpoint(plain), {x})) == expected);
  CHECK(bytes_of(both_grads(checkpoint(chain(checkpoint(wave), 3)), {x})) == expected);
}

TEST_CASE("gradients flow to what a checkpointed function closes over") {
  Tensor x = array({1.f, 2.f});
  Function f = [&](const Tensors& w) {
    return total(checkpoint([&](const Tensors& in) { return Tensors{in[0] * w[0] * w[0]}; })({x}));
  };
  CHECK(grad(f)({array({3.f, 4.f})})[0].to_vector<float>() == std::vector<float>{6, 16});
}

TEST_CASE("values are known inside a checkpointed function") {
  Function f = checkpoint(
      [](const Tensors& x) { return Tensors{x[0].item<float>() > 0 ? x[0] * 2.f : x[0] * 3.f}; });
  CHECK(grad(f)({Tensor(1.f)})[0].item<float>() == 2);
  CHECK(grad(f)({Tensor(-1.f)})[0].item<float>() == 3);
}

TEST_CASE("a derivative through checkpoints needs less memory") {
  auto peak_of = [](const Function& f) {
    Tensor x = random_tensor(intern(DType::f32, {1 << 16}), 1);
    reset_peak_memory();
    size_t before = active_memory();
    grad(f)({x})[0].eval();
    return peak_memory() - before;
  };
  Function segment = [](const Tensors& x) {
    Tensor y = x[0];
    for (int i = 0; i < 8; ++i) y = sin(y) * x[0];
    return Tensors{y};
  };
  size_t plain = peak_of(chain(segment, 8)), less = peak_of(chain(checkpoint(segment), 8));
  CHECK(less * 2 < plain);
}

TEST_CASE("vmap and jvp of a checkpointed function") {
  Tensor x = array<float>({1, 2, 3, 4}, {2, 2});
  Function f = chain(checkpoint(wave), 2), plain = chain(wave, 2);
  CHECK(bytes_of(vmap(f)({x})) == bytes_of(vmap(plain)({x})));
  CHECK(bytes_of(vmap(grad(f))({x})) == bytes_of(vmap(grad(plain))({x})));
  CHECK(bytes_of(jvp(f, {x}, {x}).derivatives) == bytes_of(jvp(plain, {x}, {x}).derivatives));
}
