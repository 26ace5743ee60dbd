// Loop nests beside library kernels: a target without the kernel must get the same bits.
#include <doctest/doctest.h>

#include "fuzz_graph.h"
#include "loop/interpreter.h"
#include "loop/lowering.h"
#include "plan/library.h"
#include "run_graph.h"

using namespace tn;

namespace {

std::vector<std::byte> room_for(TypeRef type) {
  return std::vector<std::byte>(static_cast<size_t>(type->bytes()));
}

/// The first operand whose results differ, or "".
std::string difference(const Graph& graph, const GraphOp& op, const Sample& sample) {
  std::vector<TypeRef> in = graph.in_types(op);
  Types out = graph.out_types(op);
  Tensors operands;
  std::vector<const void*> from;
  for (size_t i = 0; i < in.size(); ++i) {
    operands.push_back(random_tensor(in[i], 3 + i, sample.lo, sample.hi));
    from.push_back(operands.back().data());
  }
  std::vector<std::vector<std::byte>> by_library, by_loops;
  std::vector<void*> to, buffers;
  for (const void* data : from) buffers.push_back(const_cast<void*>(data));
  for (TypeRef type : out) by_library.push_back(room_for(type)), by_loops.push_back(room_for(type));
  for (auto& result : by_library) to.push_back(result.data());
  for (auto& result : by_loops) buffers.push_back(result.data());
  library_kernel(*op.op, in, host_target())->run({op.attr_data(), in, out, from.data(), to.data()});
  loop::Lowering nest("nest", in, out);
  op.op->rules->lower(op.attr_data(), nest);
  loop::run(*loop::prepare(nest.b.finish()), buffers.data());
  return by_library == by_loops ? "" : std::string(op.op->name);
}

}  // namespace

TEST_CASE("loop nests give the bits of the library kernels beside them") {
  int compared = 0;
  for (const OpDef* op : op_table())
    for (const Sample& sample : op->rules->samples) {
      std::optional<Graph> graph = sample_graph(*op, sample);
      if (!graph) continue;
      for (const GraphOp& inner : graph->ops) {
        const LibraryKernel* kernel =
            library_kernel(*inner.op, graph->in_types(inner), host_target());
        if (!inner.op->rules->lower || !kernel || kernel->only_checks) continue;
        INFO(to_text(*graph));
        CHECK(difference(*graph, inner, sample) == "");
        ++compared;
      }
    }
  CHECK(compared > 4);
}

TEST_CASE("loop nests by boxes and rows give the bits of the general path") {
  struct Case {
    const char *types, *op;
    double lo, hi;    // of indices
    int boxes, rows;  // programs that it falls into, and how many of them read rows by index
  };
  constexpr Case kCases[] = {
      {"%0: f32[40,7], %1: f32[]", "pad_with %0, %1 {pad_width=[1,2,3,0]}", 0, 0, 4, 0},
      {"%0: c64[40,7], %1: c64[]", "pad_with %0, %1 {pad_width=[0,0,3,1]}", 0, 0, 3, 0},
      {"%0: i8[40,7], %1: i8[]", "pad_with %0, %1 {pad_width=[1,2,3,0], mode=edge}", 0, 0, 6, 0},
      {"%0: f64[5,1], %1: f64[]", "pad_with %0, %1 {pad_width=[6,9,4,4], mode=reflect}", 0, 0, 6,
       0},
      {"%0: bool[5,40], %1: bool[]", "pad_with %0, %1 {pad_width=[9,1,4,4], mode=wrap}", 0, 0, 12,
       0},
      {"%0: f16[2,2], %1: f16[]", "pad_with %0, %1 {pad_width=[99,0,0,99], mode=wrap}", 0, 0, 1, 0},
      {"%0: f32[9,3], %1: f32[9,5], %2: f32[9,8]", "concat %0, %1, %2 {axis=1}", 0, 0, 3, 0},
      {"%0: f32[90], %1: f32[20]",
       "slice_update %0, %1 {start=[10], stop=[68], step=[3], axis=[0]}", 0, 0, 1, 0},
      {"%0: bf16[9,30], %1: bf16[4,20]",
       "slice_update %0, %1 {start=[1,2], stop=[5,22], step=[1,1], axis=[0,1]}", 0, 0, 5, 0},
      {"%0: f32[50,70], %1: i64[90]", "gather %0, %1 {axes=[0]}", -3, 60, 1, 1},
      {"%0: c64[50,3], %1: i32[90]", "gather %0, %1 {axes=[0]}", -3, 60, 1, 1},
      {"%0: i16[4,50,70], %1: i64[4,9,1], %2: u8[4]",
       "gather %0, %1, %2 {axes=[1,2], batch_dims=1, outside=drop}", -3, 60, 1, 0},
      {"%0: u8[50,9000], %1: i64[7]", "gather %0, %1 {axes=[0], outside=drop}", -3, 60, 1, 1},
      {"%0: f32[50,70], %1: i64[], %2: i64[]", "dynamic_slice %0, %1, %2 {sizes=[30,60]}", 5, 15, 1,
       0},
  };
  for (const Case& c : kCases) {
    Graph graph =
        parse_graph(format("func @f({}) {{\n  %9 = {}\n  return %9\n}}\n", c.types, c.op));
    INFO(std::string(c.op));
    const GraphOp& op = graph.ops.back();
    std::vector<TypeRef> in = graph.in_types(op);
    loop::Lowering nest("nest", in, graph.out_types(op));
    op.op->rules->lower(op.attr_data(), nest);
    loop::Kernel kernel = nest.b.finish();
    Tensors operands;
    std::vector<void*> buffers;
    for (size_t i = 0; i < in.size(); ++i) {
      bool index = i > 0 && is_integer(in[i]->dtype) && in[0]->dtype != in[i]->dtype;
      operands.push_back(random_tensor(in[i], 3 + i, index ? c.lo : -2, index ? c.hi : 2));
      buffers.push_back(const_cast<void*>(static_cast<const void*>(operands.back().data())));
    }
    std::vector<std::byte> expected = room_for(graph.out_types(op)[0]), got = expected;
    buffers.push_back(expected.data());
    loop::run(*loop::prepare(kernel, {}, {.whole_values = true}), buffers.data());
    buffers.back() = got.data();
    auto program = loop::prepare(kernel);
    loop::run(*program, buffers.data());
    CHECK(got == expected);
    std::string text = to_text(*program);
    auto count = [&](std::string_view word) {
      int found = 0;
      for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
      return found;
    };
    CHECK(count(" points ") == c.boxes);
    CHECK(count("rows points ") == c.rows);
  }
}
