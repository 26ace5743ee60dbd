// Compiled graphs are shared by equal ones, and bounded.
#include <doctest/doctest.h>

#include <thread>

#include "backend/cpu/codegen/codegen.h"
#include "compiler/graph_cache.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

Graph graph_of(std::string_view body, std::string_view type = "f32[4]") {
  return parse_graph(format("func @main(%x: {0}, %y: {0}) {{\n{1}\n}}\n", type, body));
}

Graph scaled(std::string_view number) {
  return graph_of(
      format("  %1 = constant {{value={}}} : f32[]\n  %0 = mul %x, %1\n  return %0", number));
}

}  // namespace

TEST_CASE("graph cache: equal graphs share one, others do not") {
  clear_graph_cache();
  CompileOptions options{.effort = Effort::e2};
  Graph graph = graph_of("  %0 = add %x, %y\n  return %0");
  auto first = compiled_graph(graph, options);
  Graph renamed = graph;
  renamed.name = "other";
  renamed.input_names = {"a", "b"};
  renamed.ops[0].loc = Loc{};
  CHECK(compiled_graph(renamed, options) == first);
  options.sizes = {{Dim::symbol("s0"), 4}};  // they steer
  CHECK(compiled_graph(graph, options) == first);
  options.sizes.clear();

  std::vector<std::shared_ptr<const CompiledGraph>> all = {first};
  auto check_new = [&](const Graph& other, const CompileOptions& with) {
    auto made = compiled_graph(other, with);
    CHECK(std::ranges::count(all, made) == 0);
    all.push_back(made);
  };
  check_new(graph_of("  %0 = add %y, %x\n  return %0"), options);
  check_new(graph_of("  %0 = add %x, %x\n  return %0"), options);
  check_new(graph_of("  %0 = mul %x, %y\n  return %0"), options);
  check_new(graph_of("  %0 = add %x, %y\n  return %0, %x"), options);
  check_new(graph_of("  %0 = add %x, %y\n  return %0", "f32[5]"), options);
  check_new(graph_of("  %0 = add %x, %y\n  return %0", "f64[4]"), options);
  check_new(graph_of("  %0 = sum %x {axis=[0]}\n  return %0", "f32[4,4]"), options);
  check_new(graph_of("  %0 = sum %x {axis=[1]}\n  return %0", "f32[4,4]"), options);
  for (const char* number : {"2.0", "0.0", "-0.0", "nan"}) check_new(scaled(number), options);
  check_new(graph, {.effort = Effort::e1});
  check_new(graph, {.effort = Effort::e2, .donated = {true, false}});
  check_new(graph, {.effort = Effort::e2, .donated = {false, true}});
  check_new(graph, {.effort = Effort::e2, .off = {"fuse"}});
  CHECK(compiled_graph(scaled("nan"), options) == all[12]);
  CHECK(graph_cache_stats().kept == static_cast<int64_t>(all.size()));
}

TEST_CASE("graph cache: constants count by identity, and live as long as those who use them") {
  clear_graph_cache();
  Graph graph = graph_of("  %0 = add %x, %y\n  return %0");
  BufferRef a = allocate(16), b = allocate(16);
  auto with = [&](const BufferRef& buffer) {
    return compiled_graph(graph, {.effort = Effort::e2, .constants = {{buffer, 0}}});
  };
  auto first = with(a), second = with(b);
  CHECK(first != second);
  CHECK(with(a) == first);
  CHECK(graph_cache_stats().kept == 0);
  first.reset();
  CHECK(a.unique());
  CHECK(with(b) == second);
  CHECK(with(a) != second);  // made again
}

TEST_CASE("graph cache: bounded by number and by size") {
  clear_graph_cache();
  CompileOptions options{.effort = Effort::e2};
  for (int i = 0; i < 2000; ++i) compiled_graph(scaled(format("{}.5", i)), options);
  CHECK(graph_cache_stats().kept == 512);
  Graph large = graph_of("  %0 = add %x, %y\n  return %0");
  for (int i = 0; i < 70000; ++i) {
    Val in[] = {0, large.outputs[0]};
    large.outputs[0] = large.add(*large.ops[0].op, nullptr, in, {large.types.data(), 1});
    if (i % 60000 == 0) compiled_graph(large, options);
  }
  compiled_graph(large, options);
  CHECK(graph_cache_stats().kept == 1);
  clear_graph_cache();
  CHECK(graph_cache_stats().kept == 0);
}

TEST_CASE("graph cache: fresh functions that record the same compile nothing") {
  Tensor x = full({50}, 2.0f), c = full({50}, 3.0f);
  auto call = [&] {
    CompiledFunction f = compile([&](const Tensors& in) { return Tensors{exp(in[0]) * 2 + c}; });
    return f({x});
  };
  Tensors kept = call();
  CompiledFunction alive = compile([&](const Tensors& in) { return Tensors{exp(in[0]) * 2 + c}; });
  alive({x});
  auto before = cpu::kernel_cache_stats();
  auto graphs = graph_cache_stats();
  for (int i = 0; i < 1000; ++i) call();
  CHECK(cpu::kernel_cache_stats().compiled == before.compiled);
  CHECK(graph_cache_stats().made == graphs.made);
  CHECK(graph_cache_stats().hits == graphs.hits + 1000);
}

TEST_CASE("graph cache: threads share it") {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 300; ++i) {
        auto made =
            compiled_graph(scaled(format("{}.25", (i * (t + 1)) % 50)), {.effort = Effort::e1});
        if (i % 100 == 0) clear_graph_cache();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(graph_cache_stats().kept <= 50);
}
