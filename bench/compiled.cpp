// What a call of a compiled function costs beyond its arithmetic.
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

}  // namespace tn::bench
