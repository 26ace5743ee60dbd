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

TEST_CASE("fusion: on GPUs what others read does not wait for a fold that nothing reads") {
  Graph graph = parse_graph(R"(
func @main(%x: f32[128,10], %y: f32[128,10], %z: f32[128,10]) {
  %0 = multiply %x, %y
  %1 = subtract %0, %z
  %2 = sum %1 {axis=[0]}
  %3 = sort %1 {axis=1}
  return %2, %3
}
)");
  auto first_of = [&](Target target) {
    return compile(graph, {.effort = Effort::e2, .target = target})->steps[0].writes.size();
  };
  CHECK(first_of(host_target()) == 2);  // the sum as well
  CHECK(first_of(cuda::target_of(90)) == 1);
}
