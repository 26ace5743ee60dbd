// Checkpointed segments, and plans of one thread.
#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "compiler/compile_graph.h"
#include "errors.h"
#include "ops/call.h"
#include "ops/op_decls.h"
#include "plan/library.h"
#include "run_graph.h"
#include "runtime/threads.h"
#include "tenon/operators.h"
#include "tenon/ops.h"
#include "transforms/variants.h"

using namespace tn;

namespace {

Graph chain(int layers) {
  return traced(
      [&](const Tensors& in) {
        Tensor x = in[0];
        for (int i = 0; i < layers; ++i) x = tn::tanh(tn::matmul(x, in[1]) + 0.5f) * in[2];
        return Tensors{tn::sum(x), x};
      },
      {{16, 8}, {8, 8}, {8}});
}

int64_t calls(const Graph& graph) {
  return std::ranges::count(graph.ops, &ops::call, &GraphOp::op);
}

}  // namespace

TEST_CASE("segments: the same values, with calls that are computed again") {
  Graph graph = chain(12);
  Tensors in = random_inputs(graph, 3);
  std::vector<std::string> expected = run_compiled(graph, in);
  for (int segments : {1, 2, 3, 4, 7, 1000}) {
    CAPTURE(segments);
    Graph cut = in_segments(graph, segments);
    verify(cut, "segments");
    CHECK(run_compiled(cut, in) == expected);
    CHECK(cut.input_names == graph.input_names);
    if (segments <= 7) CHECK(calls(cut) == segments - 1);
    for (const GraphOp& op : cut.ops)
      if (op.op == &ops::call)
        CHECK(static_cast<const ops::CallAttrs*>(op.attr_data())->kind == ops::CallKind::remat);
  }
  CHECK(error_in([&] { in_segments(graph, 0); }) == "checkpoint: segments must be 1 or more: 0");
}

TEST_CASE("segments: one value passes from one to the next, where that is all that is alive") {
  Graph cut = in_segments(chain(12), 4);
  for (const GraphOp& op : cut.ops)
    if (op.op == &ops::call) CHECK(op.outs == 1);
}

TEST_CASE("plans: one that stays on the thread that calls it does") {
  static std::set<std::thread::id> seen;
  static std::mutex mutex;
  Plan plan;
  static constexpr LibraryKernel kernel{&ops::copy, [](const LibraryCall&) {
                                          parallel_for(64, [](int64_t) {
                                            std::lock_guard lock(mutex);
                                            seen.insert(std::this_thread::get_id());
                                          });
                                        }};
  plan.steps.push_back({LibraryStep{{&ops::copy, nullptr, {}, {}}, &kernel}});
  plan.one_thread = true;
  for (int i = 0; i < 20; ++i) run(plan, {}, nullptr, {});
  CHECK(seen == std::set<std::thread::id>{std::this_thread::get_id()});
}
