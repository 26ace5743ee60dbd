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
        if (!inner.op->rules->lower ||
            !library_kernel(*inner.op, graph->in_types(inner), host_target()))
          continue;
        INFO(to_text(*graph));
        CHECK(difference(*graph, inner, sample) == "");
        ++compared;
      }
    }
  CHECK(compared > 10);
}
