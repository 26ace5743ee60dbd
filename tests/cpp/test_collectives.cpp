// Collectives as ops, and the text of meshes and layouts.
#include <doctest/doctest.h>

#include "errors.h"
#include "ops/collectives.h"
#include "ops/op_decls.h"
#include "run_workers.h"
#include "tenon/flat.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphOp& op : graph.ops) names.emplace_back(op.op->name);
  return names;
}

/// The graph from x and a cotangent of f(x) to the cotangent of x.
Graph transposed(const Function& f, const Shape& x, const Shape& out) {
  return traced([&](const Tensors& in) { return flat::vjp(f, {in[0]}, {in[1]}).derivatives; },
                {x, out});
}

const ops::GroupAttrs kGroup{"data", 2};
const ops::DigitAttrs kRows{"data", 2, Axis(0), 1};
const ops::ExchangeAttrs kRowsToColumns{"data", 2, Axis(0), 1, Axis(1), 1};

template <class A>
Function calling(const OpDef& op, const A& attrs) {
  return [&op, attrs](const Tensors& in) { return Tensors{emit(op, {in[0]}, attrs)}; };
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("transposes of collectives") {
  Shape small{4, 6}, large{8, 6};
  CHECK(ops_of(transposed(calling(ops::all_sum, kGroup), small, small)) == Names{"vary"});
  CHECK(ops_of(transposed(calling(ops::vary, kGroup), small, small)) == Names{"all_sum"});
  CHECK(ops_of(transposed(calling(ops::all_gather, kRows), small, large)) ==
        Names{"reduce_scatter"});
  CHECK(ops_of(transposed(calling(ops::reduce_scatter, kRows), large, small)) ==
        Names{"all_gather"});
  CHECK(ops_of(transposed(calling(ops::slice_of_worker, kRows), large, small)) ==
        Names{"all_gather"});
  Graph back = transposed(calling(ops::all_to_all, kRowsToColumns), {4, 6}, {8, 3});
  CHECK(to_text(back) ==
        "func @main(%x0: f32[4,6], %x1: f32[8,3]) -> f32[4,6] {\n"
        "  %0 = all_to_all %x1 {mesh_axis=\"data\", workers=2, axis=1, to_axis=0} : "
        "f32[4,6]\n"
        "  return %0\n"
        "}\n");
}

TEST_CASE("a batch of collectives is one collective") {
  Function each = flat::vmap(calling(ops::all_gather, kRows), {0}, {0});
  Graph graph = traced(each, {{5, 4, 6}});
  CHECK(ops_of(graph) == Names{"all_gather"});
  CHECK(graph.types.back()->shape == Shape{5, 8, 6});
}

TEST_CASE("the gradient of a sum that every worker weighs differently") {
  // Of Σ_r (r + 1) all_sum(x) it is 3 on both of two workers.
  Function f = [](const Tensors& in) {
    Tensor all = emit(ops::vary, {emit(ops::all_sum, {in[0]}, kGroup)}, kGroup);
    return Tensors{all * in[1]};
  };
  Graph graph = traced([&](const Tensors& in) { return flat::grad(f)(in); }, {{}, {}});
  Tensor one = array<float>({1}, {});
  auto out = run_workers(graph, parse_mesh("data=2"),
                         {{one, array<float>({1}, {})}, {one, array<float>({2}, {})}});
  for (const Tensors& of_worker : out) CHECK(of_worker[0].item<float>() == 3);
}

TEST_CASE("one worker has all there is, more need a group") {
  Tensor x = array<float>({1, 2, 3, 4}, {2, 2});
  ops::DigitAttrs alone{"data", 1, Axis(0), 1};
  for (const OpDef* op : {&ops::all_gather, &ops::reduce_scatter, &ops::slice_of_worker})
    CHECK(bytes_of(emit(*op, {x}, alone)) == bytes_of(x));
  std::string error = error_in([&] { emit(ops::all_sum, {x}, kGroup).eval(); });
  CHECK(contains(error, "workers: there is no group 'data'"));
  ops::GroupAttrs world{"world", 2};
  error = error_in([&] { emit(ops::all_sum, {x}, world).eval(); });
  CHECK(contains(error, "workers: group 'world' has 1 workers, not 2"));
}

TEST_CASE("collectives refuse what they cannot divide") {
  Tensor x = zeros({4, 6});
  auto error = [&](const OpDef& op, int64_t workers, int64_t radix) {
    ops::DigitAttrs attrs{"data", workers, Axis(0), radix};
    return error_in([&] { emit(op, {x}, attrs); });
  };
  CHECK(contains(error(ops::reduce_scatter, 3, 1),
                 "reduce_scatter: 3 workers at radix 1 do not divide axis 0: f32[4,6]"));
  CHECK(contains(error(ops::all_gather, 2, 3),
                 "all_gather: 1 workers at radix 3 do not divide axis 0: f32[4,6]"));
  ops::ExchangeAttrs same{"data", 2, Axis(1), 1, Axis(-1), 3};
  CHECK(contains(error_in([&] { emit(ops::all_to_all, {x}, same); }),
                 "all_to_all: axis and to_axis must differ: both are 1"));
  CHECK(contains(error(ops::all_gather, 0, 1), "all_gather: a group has 1 to 1048576 workers: 0"));
}

TEST_CASE("meshes and layouts print and parse") {
  CHECK(to_text(parse_mesh("data=4, model=2:8")) == "data=4, model=2:8");
  CHECK(parse_mesh("data=4").workers() == 4);
  Mesh mesh = parse_mesh("data=4, model=2");
  Type type{DType::f32, {24, 6, 5}};
  for (std::string_view text :
       {"@[data,-,-]", "@[-,model:3,-]", "@[data+model,-,-]", "@[model:3,-,-] stored(model)",
        "@[-,-,-] partial(data,model)", "@[data:3+model,-,-]"})
    CHECK(to_text(mesh, parse_layout(text, mesh, type), 3) == text);
  auto error = [&](std::string_view text) {
    return error_in([&] { parse_layout(text, mesh, type); });
  };
  CHECK(contains(error("@[data,-]"), "layout: '@[data,-]' does not describe f32[24,6,5]"));
  CHECK(contains(error("@[rows,-,-]"), "layout: the mesh has no axis 'rows': data=4, model=2"));
  CHECK(contains(error("@[-,data,-]"), "layout: axis 'data' does not fit dimension 1 of f32"));
  CHECK(contains(error("@[data,data,-]"), "does not fit dimension 1"));
  CHECK(contains(error("@[-,-,-] given(data)"), "layout: 'stored(...)' or 'partial(...)'"));
  CHECK(contains(error_in([] { parse_mesh("data=4:6"); }),
                 "mesh: parts are a multiple of the workers: 'data=4:6'"));
  CHECK(contains(error_in([] { parse_mesh("a=2, a=2"); }), "mesh: at most 8 axes"));
}
