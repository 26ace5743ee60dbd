// gelu of f32 where its results matter, and graphs of narrow floats in every way they run.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/half.h"
#include "compiler/compile_graph.h"
#include "loop/math_narrow.h"
#include "run_graph.h"
#include "test_math_cases.h"

namespace tn::math_test {
namespace {

/// The largest error of gelu over [from, to), in ulps.
Worst worst_gelu(float from, float to, uint32_t step) {
  Worst worst;
  Big exact;
  uint32_t a = std::bit_cast<uint32_t>(from), b = std::bit_cast<uint32_t>(to);
  for (uint64_t i = std::min(a, b); i < std::max(a, b); i += step) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(i));
    double error = ulp_error(generic::math::gelu(x), gelu_reference(x));
    if (error > 2) {
      big_gelu(exact, Big(x));
      error = ulp_error(generic::math::gelu(x), mpfr_get_d(exact.v, MPFR_RNDN));
    }
    worst.take(error, x);
  }
  return worst;
}

}  // namespace

TEST_CASE("gelu of f32 is within 4.5 ulp where it is above 1e-7") {
  const char* given = std::getenv("TENON_MATH_STEP");
  const uint32_t step = given != nullptr ? static_cast<uint32_t>(std::atoi(given)) : 4099;
  CHECK(worst_gelu(-0.0f, -5.5f, step).ulp <= 4.5);
  CHECK(worst_gelu(0.0f, 20.0f, step).ulp <= 4.5);
}

TEST_CASE("the derivative of gelu is within 2^-22 of its values") {
  for (int i = -150000; i < 150000; ++i) {
    const double x = static_cast<float>(i * 1e-4);
    const double want =
        std::erfc(-x * std::sqrt(0.5)) / 2 + x * std::exp(-x * x / 2) * 0.3989422804014327;
    const double error = std::abs(generic::math::gelu_slope(static_cast<float>(x)) - want);
    if (error > 0x1p-22) CHECK_MESSAGE(false, x << " is off by " << error);
  }
}

// A GPU's NaN has all bits of the mantissa, which exponents are made of.
TEST_CASE("gelu and erfc of any NaN are NaN") {
  for (uint32_t bits : {0x7fc00000u, 0x7fffffffu, 0xffffffffu, 0xff812345u}) {
    const auto x = std::bit_cast<float>(bits);
    CAPTURE(bits);
    CHECK(std::isnan(generic::math::gelu(x)));
    CHECK(std::isnan(generic::math::gelu_slope(x)));
    CHECK(std::isnan(generic::math::half::gelu(x)));
    CHECK(std::isnan(generic::math::half::erfc(x)));
  }
}

TEST_CASE("narrow math has the same bits fused and alone, interpreted and compiled") {
  for (const char* type : {"f16", "bf16", "f32"}) {
    Graph graph = parse_graph(format(R"(func @main(%x: {}[37,65]) {{
  %0 = gelu %x
  %1 = exp %0
  %2 = tanh %1
  %3 = silu %x
  %4 = softplus %3
  %5 = multiply %4, %2
  %6 = log %5
  %7 = erf %6
  %8 = softmax %7 {{axis=[1]}}
  %9 = expm1 %x
  return %1, %3, %6, %8, %9
}})",
                                     type));
    Tensors in = random_inputs(graph, 5);
    std::vector<std::string> eager = run_eagerly(graph, in);
    CHECK(eager == run_replayed(graph, in));
    CHECK(eager == run_compiled(graph, in));
  }
}

}  // namespace tn::math_test
