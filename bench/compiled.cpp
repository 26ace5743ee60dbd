// What a call of a compiled function costs beyond its arithmetic, and what its types cost.
#include <tenon/tenon.h>

#include "goal.h"

namespace tn::bench {

static void cached_call(benchmark::State& state) {
  Tensors in{full({16}, 0.5f).eval(), full({16}, 2.f).eval()};
  auto f = compile([](const Tensors& in) { return Tensors{exp(-in[0]) + in[1]}; });
  f(in);
  measure(state, 400, [&] { benchmark::DoNotOptimize(f(in)); });
}
BENCHMARK(cached_call)->Name("compiled_exp(-x)+y_on_16_elements/goal");

/// The same on two tensors. It is to cost at most 20 ns more than the list.
static void typed_call(benchmark::State& state) {
  Tensor x = full({16}, 0.5f).eval(), y = full({16}, 2.f).eval();
  auto f = compile([](const Tensor& x, const Tensor& y) { return exp(-x) + y; });
  f(x, y);
  measure(state, 420, [&] { benchmark::DoNotOptimize(f(x, y)); });
}
BENCHMARK(typed_call)->Name("compiled_exp(-x)+y_of_two_tensors/goal");

struct Params {
  Tensor w, b;
  static void fields(auto& p, auto&& f) { f("w", p.w), f("b", p.b); }
};

static void tree_call(benchmark::State& state) {
  Params p{full({16}, 0.5f).eval(), full({16}, 2.f).eval()};
  auto f = compile([](const Params& p) { return std::tuple(exp(-p.w) + p.b); });
  f(p);
  measure(state, 420, [&] { benchmark::DoNotOptimize(f(p)); });
}
BENCHMARK(tree_call)->Name("compiled_exp(-x)+y_of_a_struct/goal");

}  // namespace tn::bench
