// The structural key: which flushes share a plan.
#include <doctest/doctest.h>

#include <complex>
#include <functional>

#include "eval/eval.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

using Program = std::function<Tensor(const Tensor& x, const Tensor& y, const Tensor& z)>;

struct Operands3 {
  Tensor x = array({1.0f, 2.0f, 3.0f}), y = array({4.0f, 5.0f, 6.0f}),
         z = array({7.0f, 8.0f, 9.0f});
};

/// Whether the second program runs by the plan of the first.
bool share_plan(const Program& a, const Program& b) {
  clear_plans();
  Operands3 in;
  a(in.x, in.y, in.z).eval();
  uint64_t before = flush_stats().hits;
  b(in.x, in.y, in.z).eval();
  return flush_stats().hits == before + 1;
}

}  // namespace

TEST_CASE("key: names of operands do not count, their places do") {
  CHECK(share_plan([](auto& x, auto& y, auto&) { return x + y; },
                   [](auto&, auto& y, auto& z) { return y + z; }));
  CHECK_FALSE(share_plan([](auto& x, auto& y, auto&) { return x + y; },
                         [](auto& x, auto&, auto&) { return x + x; }));
  CHECK_FALSE(share_plan([](auto& x, auto& y, auto&) { return (x - y) / x; },
                         [](auto& x, auto& y, auto&) { return (x - y) / y; }));
  CHECK(share_plan([](auto& x, auto& y, auto&) { return x - y; },
                   [](auto& x, auto& y, auto&) { return y - x; }));
  CHECK_FALSE(share_plan([](auto& x, auto& y, auto&) { return tn::exp(x) - y; },
                         [](auto& x, auto& y, auto&) { return y - tn::exp(x); }));
}

TEST_CASE("key: the op counts") {
  CHECK_FALSE(share_plan([](auto& x, auto& y, auto&) { return x + y; },
                         [](auto& x, auto& y, auto&) { return x - y; }));
  CHECK_FALSE(share_plan([](auto& x, auto&, auto&) { return tn::log(x); },
                         [](auto& x, auto&, auto&) { return log2(x); }));
}

TEST_CASE("key: every attribute counts, in its canonical form") {
  auto m = [](const Tensor& x) { return reshape(x, {1, 3}); };
  CHECK(share_plan([&](auto& x, auto&, auto&) { return sum(m(x), Axes(-1)); },
                   [&](auto& x, auto&, auto&) { return sum(m(x), Axes(1)); }));
  CHECK_FALSE(share_plan([&](auto& x, auto&, auto&) { return sum(m(x), Axes(0)); },
                         [&](auto& x, auto&, auto&) { return sum(m(x), Axes(1)); }));
  CHECK_FALSE(share_plan([](auto& x, auto&, auto&) { return sort(x); },
                         [](auto& x, auto&, auto&) { return sort(x, -1, true); }));
  CHECK_FALSE(share_plan([](auto& x, auto&, auto&) { return leaky_relu(x, 0.1); },
                         [](auto& x, auto&, auto&) { return leaky_relu(x, 0.2); }));
  CHECK_FALSE(share_plan([](auto& x, auto&, auto&) { return astype(x, int32); },
                         [](auto& x, auto&, auto&) { return astype(x, int64); }));
  CHECK_FALSE(
      share_plan([&](auto& x, auto&, auto&) { return layer_norm(m(x), nullptr, nullptr, 1e-5); },
                 [&](auto& x, auto&, auto&) { return layer_norm(m(x), nullptr, nullptr, 1e-3); }));
  CHECK_FALSE(share_plan([](auto& x, auto&, auto&) { return cumulative(x, 0, "sum"); },
                         [](auto& x, auto&, auto&) { return cumulative(x, 0, "max"); }));
}

TEST_CASE("key: numbers count by type and class only") {
  auto times = [](double a) { return [a](auto& x, auto&, auto&) { return x * a; }; };
  CHECK(share_plan(times(0.1), times(0.2)));
  CHECK_FALSE(share_plan(times(0.0), times(-0.0)));
  CHECK_FALSE(share_plan(times(0.0), times(1.0)));
  CHECK_FALSE(share_plan(times(1.0), times(0.1)));
  CHECK_FALSE(share_plan([](auto& x, auto&, auto&) { return astype(x, int32) * 3; },
                         [](auto& x, auto&, auto&) { return astype(x, int32) * 3.5; }));
  Operands3 in;
  clear_plans();
  CHECK((in.x * 0.25).to_vector<float>()[2] == 0.75f);
  CHECK((in.x * 0.75).to_vector<float>()[2] == 2.25f);
  CHECK((in.x * -0.0).to_vector<float>()[2] == 0.0f);
}

TEST_CASE("key: weak numbers take the tensor's type") {
  CHECK((array({1.0f}) * 2).dtype() == float32);
  CHECK((astype(array({1.0f}), float16) + 1.5).dtype() == float16);
  CHECK((array({int8_t{1}}) + 1).dtype() == int8);
  CHECK((array({1}) + 1.5).dtype() == float32);
  CHECK((array({true}) + 1).dtype() == int64);
  CHECK((array({1.0}) * std::complex<double>(0, 1)).dtype() == complex128);
  // A 0-d tensor is not weak.
  CHECK((astype(array({1.0f}), float16) + astype(Tensor(1.0f), float32)).dtype() == float32);
}

TEST_CASE("key: what is held becomes an output") {
  clear_plans();
  Operands3 in;
  Tensor held = in.x + in.y;
  Tensor result = held * in.z;
  result.eval();
  CHECK(held.is_evaluated());
  uint64_t flushes = flush_stats().flushes;
  CHECK(held.to_vector<float>() == std::vector<float>{5, 7, 9});
  CHECK(flush_stats().flushes == flushes);

  uint64_t hits = flush_stats().hits;
  Tensor alone = (in.x + in.y) * in.z;  // the sum is not held: another set of outputs, another plan
  alone.eval();
  CHECK(flush_stats().hits == hits);
  Tensor again = (in.y + in.z) * in.x;
  again.eval();
  CHECK(flush_stats().hits == hits + 1);
}

TEST_CASE("key: types and shapes count") {
  clear_plans();
  Tensor a = array({1.0f, 2.0f}), b = array({1.0, 2.0}), c = array({1.0f, 2.0f, 3.0f});
  uint64_t hits = flush_stats().hits;
  tn::exp(a).eval(), tn::exp(b).eval(), tn::exp(c).eval();
  CHECK(flush_stats().hits == hits);
  tn::exp(c).eval();
  CHECK(flush_stats().hits == hits + 1);
}

TEST_CASE("key: plans are bounded") {
  Tensor x = array({1.0f, 2.0f});
  for (int i = 0; i < 5000; ++i) leaky_relu(x, 1e-3 * (i + 1)).eval();
  CHECK(flush_stats().plans <= 4096);
  CHECK(leaky_relu(x, 0.5).to_vector<float>() == std::vector<float>{1, 2});
  clear_plans();
  CHECK(flush_stats().plans == 0);
}
