// Indices out of bounds on the C++ side: errors at once, and in compiled functions on demand.
#include <doctest/doctest.h>

#include "errors.h"
#include "tenon/tenon.h"

using namespace tn;

TEST_CASE("an index out of bounds is an error where values are computed at once") {
  Tensor x = array<float>({1, 2, 3}), i = array<int64_t>({0, 3});
  CHECK(contains(error_in([&] { take(x, i); }), "take: 3 is out of bounds for axis 0 of extent 3"));
  Tensor pending = take(x, i - 4);
  std::string text = error_in([&] { pending.eval(); });
  CHECK(contains(text, "take: -4 is out of bounds for axis 0 of extent 3"));
  CHECK(contains(text, "test_index_bounds.cpp:12"));
  CHECK(error_in([&] { gather(x, {i}, {0}, 0, "clamp").eval(); }) == "");
}

TEST_CASE("compiled functions check indices on demand") {
  CompiledFunction f = compile([](const Tensors& in) -> Tensors { return {take(in[0], in[1])}; });
  Tensor x = array<float>({1, 2, 3}), i = array<int64_t>({0, 3});
  CHECK(f({x, i})[0].to_vector<float>()[1] == 3);
  bool before = debug_indices();
  CHECK(contains(error_in([&] { f({x, i}); }), "gather: 3 is out of bounds"));
  debug_indices(before);
  CHECK(error_in([&] { f({x, i}); }) == "");
}
