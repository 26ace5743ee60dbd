// Decisions and loops: values against unrolled code, derivatives, batches, errors.
#include <doctest/doctest.h>

#include "base/error.h"
#include "errors.h"
#include "run_graph.h"
#include "runtime/memory_use.h"
#include "tenon/tenon.h"

using namespace tn;
using Floats = std::vector<float>;

namespace {

/// One step of a small recurrence, with a weight it closes over.
flat::ScanBody recurrence(const Tensor& w) {
  return [w](const Tensors& c, const Tensors& x) -> flat::ScanResult {
    Tensor next = sin(c[0] * w + x[0]);
    return {{next}, {next * x[0]}};
  };
}

/// The same steps written out: the carry, and the first y of every step.
flat::ScanResult unrolled(const flat::ScanBody& body, Tensors carry, const Tensors& xs,
                          bool reverse) {
  int64_t length = xs[0].dim(0);
  Tensors ys(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    int64_t at = reverse ? length - 1 - i : i;
    Tensors slices;
    for (const Tensor& x : xs) slices.push_back(index(x, {at}));
    flat::ScanResult step = body(carry, slices);
    carry = step.carry, ys[static_cast<size_t>(at)] = step.ys[0];
  }
  return {carry, ys};
}

Tensor total(const Tensors& list) {
  Tensor all = sum(list[0]);
  for (size_t i = 1; i < list.size(); ++i) all = all + sum(list[i]);
  return all;
}

const Tensor kStart = array({0.3f, -0.2f});
const Tensor kWeight = array({0.9f, 1.1f});
const Tensor kXs = array<float>({0.1f, 0.2f, -0.4f, 0.5f, 0.7f, -0.6f}, {3, 2});

/// From (carry, xs, weight) to one number that depends on all results.
Function loss(bool as_loop, bool reverse = false) {
  return [=](const Tensors& in) {
    flat::ScanResult r = as_loop ? flat::scan(recurrence(in[2]), {in[0]}, {in[1]}, {}, reverse)
                                 : unrolled(recurrence(in[2]), {in[0]}, {in[1]}, reverse);
    return Tensors{sum(r.carry[0] * r.carry[0]) + total(r.ys)};
  };
}

void check_close(const Tensors& a, const Tensors& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    Floats x = a[i].to_vector<float>(), y = b[i].to_vector<float>();
    REQUIRE(x.size() == y.size());
    for (size_t k = 0; k < x.size(); ++k) CHECK(x[k] == doctest::Approx(y[k]).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("scan has the bits of the loop written out") {
  for (bool reverse : {false, true}) {
    flat::ScanResult a = flat::scan(recurrence(kWeight), {kStart}, {kXs}, {}, reverse);
    flat::ScanResult b = unrolled(recurrence(kWeight), {kStart}, {kXs}, reverse);
    CHECK(bytes_of(a.carry) == bytes_of(b.carry));
    CHECK(bytes_of(a.ys) == bytes_of(Tensors{stack(b.ys)}));
  }
}

TEST_CASE("scan of no steps, and without xs") {
  flat::ScanResult none = flat::scan(recurrence(kWeight), {kStart}, {zeros({0, 2})});
  CHECK(none.carry[0].to_vector<float>() == kStart.to_vector<float>());
  CHECK(none.ys[0].shape() == Shape{0, 2});
  flat::ScanBody doubling = [](const Tensors& c, const Tensors&) -> flat::ScanResult {
    return {{c[0] * 2.f}, {}};
  };
  CHECK(flat::scan(doubling, {Tensor(1.f)}, {}, 10).carry[0].item<float>() == 1024);
}

TEST_CASE("functions without results") {
  Function none = [](const Tensors&) { return Tensors(); };
  flat::ScanBody nothing = [](const Tensors&, const Tensors&) -> flat::ScanResult { return {}; };
  CHECK(flat::cond(Tensor(true), none, none, {kStart}).empty());
  CHECK(flat::scan(nothing, {}, {kXs}).ys.empty());
  CHECK(flat::grad([&](const Tensors& x) {
          flat::checkpoint(none)(x);
          flat::custom_function(none, {})(x);
          return Tensors{sum(x[0])};
        })({kStart})[0]
            .to_vector<float>() == Floats{1, 1});
}

TEST_CASE("derivatives of scan are those of the loop written out") {
  for (bool reverse : {false, true}) {
    Tensors in = {kStart, kXs, kWeight};
    Function loop = loss(true, reverse), plain = loss(false, reverse);
    std::vector<int> all = {0, 1, 2};
    check_close(flat::grad(loop, all)(in), flat::grad(plain, all)(in));
    check_close(flat::jvp(loop, in, in).derivatives, flat::jvp(plain, in, in).derivatives);
    auto second = [&](const Function& f) -> Function {
      return [f, all](const Tensors& x) {
        Tensors g = flat::grad(f, all)(x);
        return Tensors{sum(g[0] * g[0]) + sum(g[1] * g[1]) + sum(g[2])};
      };
    };
    check_close(flat::grad(second(loop), all)(in), flat::grad(second(plain), all)(in));
  }
}

TEST_CASE("the gradient of a scan of no steps is that of the carry") {
  Tensors g = flat::grad(loss(true), {0, 2})({kStart, zeros({0, 2}), kWeight});
  check_close(g, {kStart * 2.f, kWeight * 0.f});
}

TEST_CASE("vmap of scan, of its gradient, with some operands shared") {
  Tensor batch = stack({kXs, kXs * 0.5f});
  std::vector<Maybe<int>> axes = {{}, 0, {}};
  Tensors in = {kStart, batch, kWeight};
  check_close(flat::vmap(loss(true), axes)(in), flat::vmap(loss(false), axes)(in));
  Function loop = flat::grad(loss(true), {0, 1, 2}), plain = flat::grad(loss(false), {0, 1, 2});
  check_close(flat::vmap(loop, axes)(in), flat::vmap(plain, axes)(in));
  Function mapped = [axes](const Tensors& x) {
    return Tensors{sum(flat::vmap(loss(true), axes)(x)[0])};
  };
  Function mapped_plain = [axes](const Tensors& x) {
    return Tensors{sum(flat::vmap(loss(false), axes)(x)[0])};
  };
  check_close(flat::grad(mapped, {0, 1, 2})(in), flat::grad(mapped_plain, {0, 1, 2})(in));
}

TEST_CASE("a scan in a scan, with a cond inside") {
  flat::ScanBody inner = [](const Tensors& c, const Tensors& x) -> flat::ScanResult {
    Tensors next = flat::cond(
        sum(x[0]) > 0, [](const Tensors& in) { return Tensors{in[0] * in[1]}; },
        [](const Tensors& in) { return Tensors{in[0] + sin(in[1])}; }, {c[0], x[0]});
    return {next, {next[0]}};
  };
  flat::ScanBody outer = [inner](const Tensors& c, const Tensors& x) -> flat::ScanResult {
    flat::ScanResult r = flat::scan(inner, {c[0]}, {x[0]});
    return {r.carry, {sum(r.ys[0])}};
  };
  Tensor xs = stack({kXs, kXs * -1.f});
  Function f = [&](const Tensors& in) {
    flat::ScanResult r = flat::scan(outer, {in[0]}, {in[1]});
    return Tensors{sum(r.carry[0]) + sum(r.ys[0])};
  };
  auto choose = [](const Tensor& c, const Tensor& x) {
    return where(sum(x) > 0, c * x, c + sin(x));
  };
  Function plain = [&](const Tensors& in) {
    Tensor c = in[0], total;
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t k = 0; k < 3; ++k) {
        c = choose(c, index(in[1], {i, k}));
        total = total.defined() ? total + sum(c) : sum(c);
      }
    return Tensors{sum(c) + total};
  };
  check_close(f({kStart, xs}), plain({kStart, xs}));
  check_close(flat::grad(f, {0, 1})({kStart, xs}), flat::grad(plain, {0, 1})({kStart, xs}));
}

TEST_CASE("cond runs one branch") {
  Function half = [](const Tensors& x) { return Tensors{x[0] * 0.5f}; };
  Function bad = [](const Tensors& x) {
    check(Tensor(false), "the wrong branch ran");
    return x;
  };
  Tensor x = array({2.f, 4.f});
  CHECK(flat::cond(sum(x) > 0, half, bad, {x})[0].to_vector<float>() == Floats{1, 2});
  CHECK(contains(error_in([&] { flat::cond(sum(x) < 0, half, bad, {x})[0].eval(); }),
                 "wrong branch"));
}

TEST_CASE("derivatives of cond, also for what it closes over, and its batches") {
  Function f = [](const Tensors& in) {
    const Tensor& w = in[1];
    return flat::cond(
        sum(in[0]) > 0, [w](const Tensors& x) { return Tensors{sum(x[0] * w)}; },
        [](const Tensors& x) { return Tensors{sum(x[0] * x[0])}; }, {in[0]});
  };
  Tensor x = array({1.f, 2.f}), w = array({3.f, 4.f});
  check_close(flat::grad(f, {0, 1})({x, w}), {w, x});
  check_close(flat::grad(f, {0, 1})({-x, w}), {x * -2.f, w * 0.f});
  CHECK(flat::jvp(f, {x, w}, {x, Tensor()}).derivatives[0].item<float>() == 11);
  Tensor both = stack({x, -x});
  CHECK(flat::vmap(f, {0, {}})({both, w})[0].to_vector<float>() == Floats{11, 5});
  check_close(flat::vmap(flat::grad(f), {0, {}})({both, w}), {stack({w, x * -2.f})});
  CHECK(flat::vmap(f, {{}, 0})({x, stack({w, x})})[0].to_vector<float>() == Floats{11, 5});
}

TEST_CASE("a while loop of a million steps") {
  Tensors carry = {Tensor(int64_t{0}), Tensor(1.0f)};
  size_t before = active_memory();
  reset_peak_memory();
  Tensors out = flat::while_loop(
      [](const Tensors& c) { return Tensors{c[0] < 1'000'000}; },
      [](const Tensors& c) { return Tensors{c[0] + 1, c[1] * 0.5f + 1.f}; }, carry);
  CHECK(out[0].item<int64_t>() == 1'000'000);
  CHECK(out[1].item<float>() == 2);
  CHECK(peak_memory() - before < 4096);
}

TEST_CASE("while_loop under jvp and vmap; backwards is refused") {
  Function power = [](const Tensors& in) {  // x doubled until it passes the limit
    const Tensor& limit = in[1];
    return flat::while_loop([limit](const Tensors& c) { return Tensors{c[0] < limit}; },
                            [](const Tensors& c) { return Tensors{c[0] * 2.f}; }, {in[0]});
  };
  flat::Derivatives d = flat::jvp(power, {Tensor(3.f), Tensor(20.f)}, {Tensor(1.f), Tensor()});
  CHECK(d.values[0].item<float>() == 24);
  CHECK(d.derivatives[0].item<float>() == 8);
  Tensor limits = array({1.f, 20.f, 100.f});
  CHECK(flat::vmap(power, {{}, 0})({Tensor(3.f), limits})[0].to_vector<float>() ==
        Floats{3, 24, 192});
  CHECK(flat::vmap(power, {0, {}})({array({3.f, 30.f}), Tensor(20.f)})[0].to_vector<float>() ==
        Floats{24, 30});
  CHECK(contains(error_in([&] { flat::grad(power)({Tensor(3.f), Tensor(20.f)}); }), "scan"));
}

TEST_CASE("what control flow refuses") {
  flat::ScanBody widening = [](const Tensors& c, const Tensors& x) -> flat::ScanResult {
    return {{concat({c[0], x[0]})}, {}};
  };
  CHECK(contains(error_in([&] { flat::scan(widening, {kStart}, {kXs}); }),
                 "scan: carry 0 is f32[2] but the body returns f32[4]"));
  CHECK(
      contains(error_in([&] { flat::scan(recurrence(kWeight), {kStart}, {kXs}, 7); }), "7 slices"));
  CHECK(contains(error_in([&] { flat::scan(recurrence(kWeight), {kStart}, {Tensor(1.f)}); }),
                 "scalar"));
  Function one = [](const Tensors& x) { return Tensors{x[0]}; };
  Function other = [](const Tensors& x) { return Tensors{sum(x[0])}; };
  CHECK(contains(error_in([&] { flat::cond(kStart > 0, one, one, {kStart}); }),
                 "one bool, not bool[2]"));
  CHECK(contains(error_in([&] { flat::cond(Tensor(true), one, other, {kStart}); }),
                 "f32[2] in one branch and f32[] in the other"));
  Function half = [](const Tensors&) { return Tensors{Tensor(0.5f)}; };
  Function count = [](const Tensors&) { return Tensors{Tensor(1)}; };
  CHECK(contains(error_in([&] { flat::cond(Tensor(true), half, count, {}); }),
                 "f32[] in one branch and i64[] in the other"));
  Function asks = [](const Tensors& x) { return Tensors{x[0] * x[0].item<float>()}; };
  CHECK(contains(error_in([&] { flat::while_loop(asks, one, {Tensor(1.f)}); }),
                 "cannot evaluate a tensor"));
}

TEST_CASE("ops without a batch rule go one example after the other") {
  Tensor x = array<float>({3, 1, 2, 9, 7, 8}, {2, 3});
  Function sorted = [](const Tensors& in) { return Tensors{sort(in[0])}; };
  CHECK(flat::vmap(sorted)({x})[0].to_vector<float>() == Floats{1, 2, 3, 7, 8, 9});
}

TEST_CASE("print inside vmap and scan, once per example and step") {
  std::vector<std::string> lines;
  set_print_sink([&](std::string_view line) { lines.emplace_back(line); });
  Function f = [](const Tensors& in) {
    return flat::scan(
               [](const Tensors& c, const Tensors& x) -> flat::ScanResult {
                 print("c={} x={}", {c[0], x[0]});
                 print("step");
                 return {{c[0] + x[0]}, {}};
               },
               {Tensor(0.f)}, {in[0]})
        .carry;
  };
  Tensors out = flat::vmap(f)({array<float>({1, 2, 3, 4}, {2, 2})});
  CHECK(out[0].to_vector<float>() == Floats{3, 7});
  set_print_sink({});
  CHECK(std::count(lines.begin(), lines.end(), "step") >= 2);
  for (const char* line : {"c=0. x=1.", "c=0. x=3.", "c=1. x=2.", "c=3. x=4."})
    CHECK(std::count(lines.begin(), lines.end(), line) == 1);
}

TEST_CASE("print and check run at once where values are known") {
  std::vector<std::string> lines;
  set_print_sink([&](std::string_view line) { lines.emplace_back(line); });
  Function f = [](const Tensors& x) {
    print("x is {}", {x[0]});
    check(x[0] > 0, "x must be positive: {}", {x[0]});
    return Tensors{x[0] * x[0]};
  };
  CHECK(flat::grad(f)({Tensor(3.f)})[0].item<float>() == 6);
  std::string error = error_in([&] { flat::grad(f)({Tensor(-3.f)}); });
  set_print_sink({});
  CHECK(lines == std::vector<std::string>{"x is 3.", "x is -3."});
  CHECK(contains(error, "check: x must be positive: -3"));
  CHECK(contains(error, "test_control_flow.cpp:"));
}

TEST_CASE("a derivative that computes steps again does not print again") {
  std::vector<std::string> lines;
  set_print_sink([&](std::string_view line) { lines.emplace_back(line); });
  Function f = [](const Tensors& in) {
    flat::ScanBody step = [](const Tensors& c, const Tensors&) -> flat::ScanResult {
      print("c={}", {c[0]});
      return {{c[0] * c[0]}, {}};
    };
    return flat::scan(step, {in[0]}, {}, 2).carry;
  };
  CHECK(flat::grad(f)({Tensor(3.f)})[0].item<float>() == 108);
  set_print_sink({});
  CHECK(lines == std::vector<std::string>{"c=3.", "c=9."});
}
