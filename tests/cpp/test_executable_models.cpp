// Executables of models and random graphs: the bits of compiled functions and of the interpreter,
// before and after they were in a file.
#include <doctest/doctest.h>

#include "executable_models.h"
#include "fuzz_check.h"
#include "fuzz_graph.h"
#include "ir/node.h"
#include "ir/rewrite.h"

using namespace tn;

namespace {

std::string file_of(const Executable& exe) {
  Target target = host_target();
  return saved(exe, {&target, 1});
}

bool is_seal(const tnx::SectionInfo& s) { return s.kind == tnx::Kind::seal; }

/// The graph on parameters whose sizes may be other symbols than its own.
Tensors replayed(const Graph& graph, const Tensors& args) {
  std::vector<Replacement> sizes;
  for (size_t i = 0; i < args.size(); ++i)
    for (int k = 0; k < args[i].rank(); ++k)
      if (Dim own = graph.types[i]->shape[k]; !own.is_const())
        sizes.push_back({own, args[i].shape()[k]});
  return replay(substitute(graph, sizes), args);
}

}  // namespace

TEST_CASE("executables of models have the bits of compiled functions and of the interpreter") {
  for (const Model& model : models()) {
    CAPTURE(model.name);
    Executable made = model.compiled(), plain = model.compiled(0);
    std::string file = file_of(made);
    Executable again = loaded(file, true), rebuilt = loaded(without(file, is_seal));
    CompiledFunction jit = compile(model.f);
    for (double way : {0.0, 0.1, 0.3, 0.5, 0.8, 1.0}) {
      CAPTURE(way);
      Tensors args = arguments(model, way), want = model.f(args);
      check_same(made(args), want);
      check_same(plain(args), want);
      check_same(jit(args), want);
      check_same(again(args), want);
      check_same(rebuilt(args), want);
    }
    CHECK(made.stats().kernels_compiled == 0);
    CHECK(again.stats().kernels_compiled == 0);
    CHECK(again.stats().kernels == made.stats().kernels);
    CHECK(again.stats().interpreted == made.stats().interpreted);
    CHECK(again.stats().origin == "loaded");
    CHECK(rebuilt.stats().origin.starts_with("rebuilt: "));
  }
}

TEST_CASE("executables of random graphs have the bits of the interpreter") {
  int refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    SymbolicGraph drawn = fuzz_symbolic_graph(seed);
    std::vector<InputInfo> inputs;
    for (Val v = 0; v < drawn.graph.inputs(); ++v) {
      InputInfo& in = inputs.emplace_back();
      in.dtype = drawn.graph.types[static_cast<size_t>(v)]->dtype;
      for (Dim d : drawn.graph.types[static_cast<size_t>(v)]->shape) {
        int64_t opt = evaluate(d, drawn.sizes);
        in.shape.push_back(d.is_const() ? DimensionInfo(d.raw)
                                        : DimensionInfo(1, opt, opt + 7, symbol_name(d)));
      }
    }
    std::optional<Executable> made;
    try {
      made =
          compile_ahead([&](const Tensors& args) { return replayed(drawn.graph, args); }, inputs);
    } catch (const UserError& e) {
      ++refused;
      continue;
    }
    Executable again = loaded(file_of(*made), true);
    for (int64_t more : {0, 1, 5}) {
      std::vector<Binding> sizes = drawn.sizes;
      for (Binding& b : sizes) b.value += more;
      Graph fixed = substitute(drawn.graph, replacements(sizes));
      Tensors in = fuzz_inputs(fixed, seed), want = run_interpreted(fixed, in);
      CHECK(first_difference(want, (*made)(in)) == "");
      CHECK(first_difference(want, again(in)) == "");
    }
  }
  CHECK(refused < 6);
}
