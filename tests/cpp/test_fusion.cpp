// Which ops become one kernel.
#include <doctest/doctest.h>

#include "backend/cuda/cuda_backend.h"
#include "compiler/compile_graph.h"
#include "ir/graph.h"

using namespace tn;

TEST_CASE("fusion: folds of rows that read another fold of them are one kernel with it") {
  Graph graph = parse_graph(R"(
func @main(%x: f32[128,10]) {
  %0 = max %x {axis=[1], keepdims=true}
  %1 = subtract %x, %0
  %2 = exp %1
  %3 = sum %2 {axis=[1]}
  %4 = multiply %x, %0
  %5 = sum %4 {axis=[1]}
  return %3, %5
}
)");
  for (Target target : {host_target(), cuda::target_of(90)})
    CHECK(compile(graph, {.effort = Effort::e2, .target = target})->steps.size() == 1);
}
