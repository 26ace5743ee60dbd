// Which kernels behind a product cuBLASLt can do itself.
#include <doctest/doctest.h>

#include <algorithm>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "backend/cuda/product_tail.h"
#include "base/error.h"
#include "compiler/compile_graph.h"
#include "ir/graph.h"

using namespace tn;

namespace {

/// A kernel behind a product x0 of 4 × 8. `lines`, from v7 on, make its result of v1, the product
/// in float32, and v6, its sum with the bias. `more` stores something besides.
std::optional<cuda::ProductTail> tail_with(std::string_view lines, std::string_view result,
                                           std::string_view bias_at = "p2",
                                           std::string_view more = "") {
  std::string text = "kernel k(x0: bf16[32], x1: bf16[32]) -> (y2: bf16[32], y3: bf16[32]) {\n";
  text += format(R"(  axes p0:1 par, p1:4 par, p2:8 par
  v0 = load x0[8*p1 + p2] : bf16
  v1 = cast v0 : f32
  v2 = load x1[{}] : bf16
  v3 = cast v2 : f32
  v4 = add v3, v1 : f32
  v5 = cast v4 : bf16
  v6 = cast v5 : f32
)",
                 bias_at);
  auto last = 7 + std::ranges::count(lines, '\n');
  text += format("{}  v{} = cast {} : bf16\n", lines, last, result);
  text += format("  store y2[8*p1 + p2] = v{}\n{}}}\n", last, more);
  return cuda::tail_of(loop::parse_kernel(text), 0);
}

constexpr std::string_view kGeluTanh = R"(  v7 = mul v6, v6 : f32
  v8 = mul v7, v6 : f32
  v9 = constant 0.044715 : f32
  v10 = mul v8, v9 : f32
  v11 = add v6, v10 : f32
  v12 = constant 1.5957692 : f32
  v13 = mul v11, v12 : f32
  v14 = sigmoid v13 : f32
  v15 = mul v6, v14 : f32
)";
constexpr std::string_view kRelu = R"(  v7 = constant 0 : f32
  v8 = max v6, v7 : f32
)";

}  // namespace

TEST_CASE("cuda: a bias and an activation behind a product are recognised") {
  auto bias = tail_with("", "v6"), relu = tail_with(kRelu, "v8"),
       gelu = tail_with(kGeluTanh, "v15");
  REQUIRE((bias && relu && gelu));
  CHECK(bias->activation == cuda::Activation::none);
  CHECK(relu->activation == cuda::Activation::relu);
  CHECK(gelu->activation == cuda::Activation::gelu_tanh);
  for (const auto& tail : {bias, relu, gelu}) {
    CHECK(tail->bias == 1);
    CHECK(tail->result == 2);
  }
  auto alone = tail_with("  v7 = constant 0 : f32\n  v8 = max v1, v7 : f32\n", "v8");
  REQUIRE(alone);
  CHECK(alone->bias == -1);
  CHECK(alone->activation == cuda::Activation::relu);
}

TEST_CASE("cuda: what cuBLASLt cannot do behind a product is left to kernels") {
  CHECK(!tail_with("", "v1"));        // nothing to do
  CHECK(!tail_with("", "v6", "p1"));  // a bias for each row
  CHECK(!tail_with("", "v6", "8*p1 + p2"));
  CHECK(!tail_with("", "v6", "p2", "  store y3[8*p1 + p2] = v5\n"));  // its operand is wanted too
  CHECK(!tail_with("  v7 = constant 0.5 : f32\n  v8 = max v6, v7 : f32\n", "v8"));
  CHECK(!tail_with("  v7 = constant 2 : f32\n  v8 = mul v6, v7 : f32\n", "v8"));
  std::string other(kGeluTanh);  // another cubic
  other.replace(other.find("0.044715"), 8, "0.045   ");
  CHECK(!tail_with(other, "v15"));
  CHECK(!tail_with(R"(  v7 = constant -0.70710677 : f32
  v8 = mul v6, v7 : f32
  v9 = erfc v8 : f32
  v10 = constant 0.5 : f32
  v11 = mul v6, v10 : f32
  v12 = mul v11, v9 : f32
)",
                   "v12"));
}

TEST_CASE("cuda: tails of products in plans") {
  if (cuda::product_ptx().empty()) return;
  auto tail_in = [](std::string_view lines) {
    std::string text = "func @main(%x: bf16[256,128], %w: bf16[128,384], %b: bf16[384]) {\n";
    text += format("  %0 = dot %x, %w {{lhs_contract=[1], rhs_contract=[0]}}\n{}}}\n", lines);
    std::shared_ptr<const Plan> plan =
        compile(parse_graph(text), {.effort = Effort::e1, .target = cuda::target_of(90)});
    REQUIRE(plan->steps.size() == 1);
    REQUIRE(plan->steps[0].kernel());
    return cuda::tail_of(plan->steps[0]);
  };
  auto bias = tail_in("  %1 = add %0, %b\n  return %1\n");
  REQUIRE(bias);
  CHECK(bias->bias >= 0);
  auto gelu = tail_in("  %1 = add %0, %b\n  %2 = gelu_tanh %1\n  return %2\n");
  REQUIRE(gelu);
  CHECK(gelu->activation == cuda::Activation::gelu_tanh);
  CHECK(!tail_in("  %1 = add %0, %b\n  %2 = relu %1\n  return %0, %2\n"));  // it is wanted too
  CHECK(!tail_in("  %1 = add %0, %b\n  %2 = relu %1\n  return %1, %2\n"));
}
