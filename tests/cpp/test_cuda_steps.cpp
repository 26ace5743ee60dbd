// Which kernels of a training step wait for which, on a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "backend/cuda/tail_program.h"
#include "backend/cuda/tile_choice.h"
#include "compiler/fusion.h"
#include "ir/graph.h"
#include "loop/kernel.h"
#include "loop/reduction_tree.h"

using namespace tn;

namespace {

// The loss of a network of two layers, and what one step of gradient descent makes of its weights.
constexpr std::string_view kStep =
    "func @main(%x0: f32[128,784], %x1: i64[128], %x2: f32[256,784], %x3: f32[256], "
    "%x4: f32[10,256], %x5: f32[10], %x6: i64[], %x7: f32[]) {"
    R"(
  %0 = constant {value=0.0078125} : f32[]
  %1 = dot %x0, %x2 {lhs_contract=[1], rhs_contract=[1]} : f32[128,256]
  %2 = add %1, %x3 : f32[128,256]
  %3 = relu %2 : f32[128,256]
  %4 = dot %3, %x4 {lhs_contract=[1], rhs_contract=[1]} : f32[128,10]
  %5 = add %4, %x5 : f32[128,10]
  %6 = constant {value=0} : i64[]
  %7 = constant {value=10} : i64[]
  %8 = constant {value=nan} : f32[]
  %9 = greater_equal %x1, %6 : bool[128]
  %10 = less %x1, %7 : bool[128]
  %11 = logical_and %9, %10 : bool[128]
  %12 = constant {value=0.0} : f32[]
  %13 = max %5 {axis=[1], keepdims=true} : f32[128,1]
  %14 = isfinite %13 : bool[128,1]
  %15 = where %14, %13, %12 : f32[128,1]
  %16 = subtract %5, %15 : f32[128,10]
  %17 = exp %16 : f32[128,10]
  %18 = sum %17 {axis=[1], keepdims=true} : f32[128,1]
  %19 = log %18 : f32[128,1]
  %20 = add %19, %15 : f32[128,1]
  %21 = reshape %x1 {shape=[128,1]} : i64[128,1]
  %22 = gather %5, %21 {axes=[1], batch_dims=1} : f32[128,1]
  %23 = subtract %20, %22 : f32[128,1]
  %24 = reshape %23 {shape=[128]} : f32[128]
  %25 = where %11, %24, %8 : f32[128]
  %26 = sum %25 {axis=[0], keepdims=true} : f32[1]
  %27 = multiply %26, %0 : f32[1]
  %28 = reshape %27 {shape=[]} : f32[]
  %29 = greater %2, %12 : bool[128,256]
  %30 = reshape %11 {shape=[128,1]} : bool[128,1]
  %31 = constant {value=-inf} : f32[]
  %32 = equal %5, %31 : bool[128,10]
  %33 = subtract %5, %13 : f32[128,10]
  %34 = exp %33 : f32[128,10]
  %35 = sum %34 {axis=[1], keepdims=true} : f32[128,1]
  %36 = divide %34, %35 : f32[128,10]
  %37 = where %32, %12, %36 : f32[128,10]
  %38 = iota {shape=[1,10], axis=1} : i64[1,10]
  %39 = equal %38, %21 : bool[128,10]
  %40 = astype %39 {dtype=f32} : f32[128,10]
  %41 = subtract %37, %40 : f32[128,10]
  %42 = multiply %0, %41 : f32[128,10]
  %43 = where %30, %42, %12 : f32[128,10]
  %44 = dot %43, %x4 {lhs_contract=[1], rhs_contract=[0]} : f32[128,256]
  %45 = where %29, %44, %12 : f32[128,256]
  %46 = dot %45, %x0 {lhs_contract=[0], rhs_contract=[0]} : f32[256,784]
  %47 = multiply %x7, %46 : f32[256,784]
  %48 = subtract %x2, %47 : f32[256,784]
  %49 = sum %45 {axis=[0], keepdims=true} : f32[1,256]
  %50 = multiply %x7, %49 : f32[1,256]
  %51 = subtract %x3, %50 : f32[1,256]
  %52 = reshape %51 {shape=[256]} : f32[256]
  %53 = dot %43, %3 {lhs_contract=[0], rhs_contract=[0]} : f32[10,256]
  %54 = multiply %x7, %53 : f32[10,256]
  %55 = subtract %x4, %54 : f32[10,256]
  %56 = sum %43 {axis=[0], keepdims=true} : f32[1,10]
  %57 = multiply %x7, %56 : f32[1,10]
  %58 = subtract %x5, %57 : f32[1,10]
  %59 = reshape %58 {shape=[10]} : f32[10]
  %60 = constant {value=1} : i64[]
  %61 = add %x6, %60 : i64[]
  return %28, %48, %52, %55, %59, %61
}
)";

/// Whether the product of a step does what is behind it: on an H200 its tiles are small enough.
bool finishes(const Step& step) {
  if (!cuda::tail_program_of(step)) return false;
  constexpr int kAll[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const loop::Kernel& behind = *step.kernel()->kernel;  // over batch, rows and columns
  int64_t m = behind.axes[1].extent.value(), n = behind.axes[2].extent.value();
  int64_t k = step.library()->in[0]->elements / m;
  cuda::TiledProduct product{m, n, 1, k, loop::product_depth(k), {4, 8, 8, 16, true}, true, true};
  const TileForm& form = cuda::choose_form(kAll, product, 132, 228 << 10);
  return form.each_m * form.each_n <= kTailMostResults;
}

/// Launches of a plan on an H200, and those of its longest chain: each reads what the one before
/// has written.
struct Launches {
  int all = 0, longest = 0;
};
Launches launches_of(const Plan& plan) {
  Launches made;
  std::map<int32_t, int> depth;  // of buffers
  for (const Step& step : plan.steps) {
    int own = step.library() && step.kernel() && !finishes(step) ? 2 : 1;
    int before = 0;
    for (int32_t buffer : step.buffers) before = std::max(before, depth[buffer]);
    for (int32_t at : step.writes) depth[step.buffers[static_cast<size_t>(at)]] = before + own;
    made.all += own;
    made.longest = std::max(made.longest, before + own);
  }
  return made;
}

}  // namespace

TEST_CASE("cuda steps: a training step of an MLP is a chain of five launches on an H200") {
  if (cuda::product_ptx().empty()) return;
  auto plan = compile(parse_graph(kStep), {.effort = Effort::e2, .target = cuda::target_of(90)});
  Launches launches = launches_of(*plan);
  CHECK(launches.all == 10);
  CHECK(launches.longest == 5);
}

TEST_CASE("cuda steps: a value is not said to wait for a sum that could not write it anyway") {
  Graph graph = parse_graph(R"(
func @main(%x: f32[128,10], %y: f32[10]) {
  %0 = exp %y
  %1 = multiply %x, %0
  %2 = sum %1 {axis=[1]}
  %3 = sort %0 {axis=0}
  return %2, %3
}
)");
  Decisions decisions;
  fuse(graph, {.effort = Effort::e2, .target = cuda::target_of(90)}, {}, &decisions);
  auto of_exp = std::ranges::find(decisions, "exp into its readers", &Decision::what);
  REQUIRE(of_exp != decisions.end());
  CHECK(of_exp->reason == "others need it in memory too, earlier or in another order");
}
