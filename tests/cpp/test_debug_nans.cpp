// debug_nans on the C++ side: the op, its operands and the line, eager and compiled.
#include <doctest/doctest.h>

#include "errors.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

struct Looking {
  explicit Looking(BadValues sought = BadValues::nan) : before(debug_nans(sought)) {}
  ~Looking() { debug_nans(before); }
  BadValues before;
};

}  // namespace

TEST_CASE("a NaN is traced to the op that made it") {
  Tensor x = array<float>({4, -1, 9});
  Tensor y = sqrt(x) * 2;
  Looking looking;
  std::string text = error_in([&] { sum(y).eval(); });
  CHECK(contains(text,
                 "debug_nans: sqrt(f32[3]) made NaN: 1 of 3 elements of f32[3], "
                 "first at [1]: sqrt(-1) (called at "));
  CHECK(contains(text, "test_debug_nans.cpp:21"));
}

TEST_CASE("infinities count on demand, and nothing does by default") {
  Tensor x = array<float>({1, 0});
  CHECK(error_in([&] { (x / x).eval(); }) == "");
  Looking looking;
  CHECK(error_in([&] { (1 / x).eval(); }) == "");
  Looking for_both(BadValues::nan_and_inf);
  CHECK(contains(error_in([&] { (1 / x).eval(); }), "divide(f32[], f32[2]) made NaN or infinity"));
}

TEST_CASE("compiled functions of all sizes are looked at") {
  CompiledFunction f = compile([](const Tensors& x) -> Tensors { return {log(x[0] - 1)}; });
  Looking looking;
  for (int64_t n : {2, 3, 5}) {
    CHECK(error_in([&] { f({full({n}, 2.0)}); }) == "");
    CHECK(contains(error_in([&] { f({zeros({n})}); }), ": log(-1)"));
  }
}
