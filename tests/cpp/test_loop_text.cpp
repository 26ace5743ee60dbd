// Kernels print as they parse.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "loop/builder.h"
#include "tenon/error.h"

using namespace tn;
using namespace tn::loop;

static std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("every golden kernel parses and prints as it is") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/loop")) {
    if (entry.path().extension() != ".tn") continue;
    CAPTURE(entry.path().string());
    std::string text = read(entry.path());
    std::string first = to_text(parse_kernel(text));
    CHECK(first == text);
    CHECK(to_text(parse_kernel(first)) == first);
    ++count;
  }
  CHECK(count >= 7);
}

TEST_CASE("literals keep their bits through text") {
  for (double x : {0.1, 1e300, 5e-324, -0.0, 1.0 / 3, 16777217.0}) {
    Builder b("k");
    int y = b.add_buffer("y", DType::f64, 1, true);
    b.store(y, b.polys().constant(0), b.constant(x, DType::f64));
    Kernel back = parse_kernel(to_text(b.finish()));
    CHECK(std::bit_cast<uint64_t>(back.values[0].literal.real) == std::bit_cast<uint64_t>(x));
  }
}

TEST_CASE("wrong kernel text is refused with its line") {
  auto refused = [](const char* text) {
    try {
      parse_kernel(text);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused("kernel f() -> () {\n").find("ends before") != std::string::npos);
  CHECK(refused("kernel f() -> () {\n  v0 = load x[0] : f32\n}").find("no such buffer") !=
        std::string::npos);
  CHECK(refused("kernel f() -> () {\n  v0 = frob v1 : f32\n}").find("unknown operation") !=
        std::string::npos);
  CHECK(refused("kernel f() -> () {\n  v0 = neg v3 : f32\n}").find("line 2") != std::string::npos);
}

TEST_CASE("the verifier names what is wrong") {
  Builder b("k");
  int y = b.add_buffer("y", DType::f32, 1, true);
  S one = b.constant(1.0, DType::f32);
  b.store(y, b.polys().constant(0), one + one);
  b.kernel().values[1].type = DType::f64;
  CHECK_THROWS_AS(verify(b.kernel()), InternalError);
}
