// examples/cpp/typed.cpp, the programs of the first page, as a test.
#include <doctest/doctest.h>

#include <sstream>

#include "errors.h"

#define main typed_main
#include "../../examples/cpp/typed.cpp"
#undef main

TEST_CASE("the programs of examples/cpp/typed.cpp run") {
  std::ostringstream printed;
  std::streambuf* before = std::cout.rdbuf(printed.rdbuf());
  int status = typed_main();
  std::cout.rdbuf(before);
  CHECK(status == 0);
  CHECK(tn::contains(printed.str(), "w is found: 1"));
  CHECK(tn::contains(printed.str(), "the loss falls: 1 in tensor(12"));
  CHECK(tn::contains(printed.str(), "tensor(6., dtype=float32)"));
}
