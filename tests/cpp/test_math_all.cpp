// The math functions on every input there is: of f16 and bf16 always, of f32 when asked for.
//
// `make ulp` takes each unary f32 function through all 2^32 inputs: the test "every f32 input",
// skipped otherwise. TENON_MATH_FUNCTION=exp limits it to one function.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "base/half.h"
#include "loop/builder.h"
#include "loop/interpreter.h"
#include "runtime/threads.h"
#include "test_math_cases.h"
#include "test_math_kernels.h"

namespace tn::math_test {
namespace {

/// A narrow float: significant bits after the first, the least normal exponent, and where rounding
/// reaches infinity.
struct Narrow {
  DType type;
  int bits, least;
  double overflow;
  float (*widen)(uint16_t);
};

const Narrow kNarrow[] = {
    {DType::f16, 10, -14, 65520, [](uint16_t x) { return float16_to_float(x); }},
    {DType::bf16, 7, -126, 0x1.ffp127, [](uint16_t x) { return bfloat16_to_float(x); }}};

/// Error of `got` in units of the last place of the narrow type.
double narrow_error(const Narrow& narrow, float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : kWrong;
  if (std::signbit(want) != std::signbit(got)) return kWrong;
  const double size = std::abs(want);
  if (std::isinf(got) || size >= narrow.overflow) {
    bool close = size > narrow.overflow * (1 - 1e-6) && std::abs(got) > narrow.overflow * 0.99;
    return close ? 0 : kWrong;
  }
  const int exponent = size > 0 ? std::max(std::ilogb(size), narrow.least) : narrow.least;
  return std::ldexp(std::abs(std::abs(got) - size), narrow.bits - exponent);
}

/// Load, compute in f32 in the narrow form if there is one, round once, store.
std::vector<uint16_t> run_narrow(loop::Op op, DType type) {
  constexpr int64_t kAll = 1 << 16;
  loop::Builder b("f");
  int axis = b.add_axis(kAll), in = b.add_buffer("x", type, kAll);
  int out = b.add_buffer("y", type, kAll, true);
  b.compute_for(type);
  loop::S x = loop::sc::cast(b.load(in, b.axis(axis)), DType::f32);
  b.store(out, b.axis(axis), loop::sc::cast(b.unary(op, x), type));
  std::vector<uint16_t> values(kAll), results(kAll);
  for (size_t i = 0; i < kAll; ++i) values[i] = static_cast<uint16_t>(i);
  void* buffers[] = {values.data(), results.data()};
  loop::run(*loop::prepare(b.finish()), buffers);
  return results;
}

loop::Op op_named(std::string_view name) {
  for (int i = 0; i < loop::kOps; ++i)
    if (loop::facts(static_cast<loop::Op>(i)).name == name) return static_cast<loop::Op>(i);
  FAIL("no operation " << std::string(name));
  return loop::Op::constant;
}

}  // namespace

TEST_CASE("every f16 and bf16 input is rounded once") {
  for (const Narrow& narrow : kNarrow)
    for (const UnaryCase& c : kUnary) {
      const loop::Op op = op_named(c.name);
      const std::vector<uint16_t> y = run_narrow(op, narrow.type);
      Worst worst;
      for (uint32_t i = 0; i < 1 << 16; ++i) {
        const float x = narrow.widen(static_cast<uint16_t>(i));
        worst.take(narrow_error(narrow, narrow.widen(y[i]), c.reference(x)), x);
      }
      // Half a unit for the rounding, and what the f32 function was off before: narrow forms are
      // by 2^-16, or 2^-13 where f16 has no results, at most 1/32 of a unit.
      const double f32 = std::ldexp(c.bound_f32, narrow.bits - 23);
      const double bound = 0.5 + (loop::facts(op).narrow ? 0x1p-5 : f32);
      CHECK_MESSAGE(worst.ulp <= bound, std::string(c.name)
                                            << " of " << std::string(name_of(narrow.type)) << ": "
                                            << worst.ulp << " at " << worst.at);
    }
}

namespace {

Kernels best_kernels() {
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) return kernels_v4();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernels_v3();
  return generic::math_test::kernels();
}

/// The f64 functions are the reference: a second, more accurate evaluation, and a vectorised one.
/// Where they see an error beyond the bound, MPFR decides.
Worst worst_of_block(const UnaryCase& c, const UnaryKernel& kernel, uint64_t start, int64_t count) {
  std::vector<float> x(static_cast<size_t>(count)), y(x.size());
  std::vector<double> wide(x.size()), want(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    wide[i] = x[i] = std::bit_cast<float>(static_cast<uint32_t>(start + i));
  kernel.f32(x.data(), y.data(), count);
  kernel.f64(wide.data(), want.data(), count);
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const float rounded = static_cast<float>(want[i]);
    if (std::bit_cast<uint32_t>(rounded) == std::bit_cast<uint32_t>(y[i])) {
      worst.take(0.5, x[i]);
      continue;
    }
    double error = ulp_error(y[i], want[i]);
    if (error > c.bound_f32) {
      Big exact;
      c.exact(exact, Big(x[i]));
      error = ulp_error(y[i], mpfr_get_d(exact.v, MPFR_RNDN));
    }
    worst.take(error, x[i]);
  }
  return worst;
}

Worst worst_of_all(const UnaryCase& c, const UnaryKernel& kernel) {
  constexpr int64_t kBlock = 1 << 14, kBlocks = int64_t{1} << 18, kShown = kBlocks / 20;
  std::atomic<int64_t> done = 0;
  std::mutex lock;
  Worst worst;
  parallel_for(kBlocks, [&](int64_t block) {
    const Worst here = worst_of_block(c, kernel, static_cast<uint64_t>(block) * kBlock, kBlock);
    const int64_t now = done.fetch_add(1) + 1;
    std::lock_guard held(lock);
    worst.take(here.ulp, here.at);
    if (now % kShown == 0)
      std::fprintf(stderr, "\r%-8s %3d %%", c.name, static_cast<int>(now * 100 / kBlocks));
  });
  std::fprintf(stderr, "\r%-8s worst %.4f ulp at %.9g (bound %g)\n", c.name, worst.ulp, worst.at,
               c.bound_f32);
  return worst;
}

}  // namespace

TEST_CASE("every f32 input is within its bound" * doctest::skip()) {
  const char* only = std::getenv("TENON_MATH_FUNCTION");
  const Kernels kernels = best_kernels();
  for (const UnaryCase& c : kUnary) {
    if (only != nullptr && std::string(only) != c.name) continue;
    for (int i = 0; i < kernels.unary_count; ++i)
      if (std::string(kernels.unary[i].name) == c.name) {
        const Worst worst = worst_of_all(c, kernels.unary[i]);
        CHECK_MESSAGE(worst.ulp <= c.bound_f32, std::string(c.name) << " at " << worst.at);
      }
  }
}

}  // namespace tn::math_test
