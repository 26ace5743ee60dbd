// Tensors as text, from C++. What they look like is tested in tests/python/test_printing.py.
#include <doctest/doctest.h>

#include <sstream>

#include "tenon/tenon.h"

using namespace tn;

TEST_CASE("tensors are written to streams") {
  std::ostringstream out;
  out << array<float>({1, 0.25f}) << " " << array<int64_t>({1, 20}, {2, 1});
  CHECK(out.str() ==
        "tensor([1.  , 0.25], dtype=float32) tensor([[ 1],\n        [20]], dtype=int64)");
}

TEST_CASE("shapes, types and devices are written to streams") {
  std::ostringstream out;
  Tensor x = ones({2, 3}, bfloat16);
  out << x.shape() << " " << x.shape()[0] << " " << x.dtype() << " " << x.device() << Shape{};
  CHECK(out.str() == "[2,3] 2 bfloat16 cpu[]");
}

TEST_CASE("print options hold until they are changed") {
  Tensor x = array<double>({3.14159265, 1});
  PrintOptions before = set_print_options({.precision = 2});
  CHECK(x.to_string() == "tensor([3.14, 1.  ], dtype=float64)");
  CHECK(print_options().precision.value == 2);
  set_print_options(before);
  CHECK(x.to_string() == "tensor([3.14159265, 1.        ], dtype=float64)");
  CHECK_THROWS_AS(set_print_options({.edgeitems = -1}), UserError);
}
