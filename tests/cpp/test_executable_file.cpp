// Executables in files.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "tenon/tenon.h"

using namespace tn;

static Tensor ramp(Shape shape) {
  int64_t n = shape.elements().value();
  return reshape(arange(n) % 13, shape) * 0.25f - 1;
}

static void check_same(const Tensors& got, const Tensors& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].shape() == want[i].shape());
    CHECK(std::memcmp(got[i].data(), want[i].data(), static_cast<size_t>(want[i].bytes())) == 0);
  }
}

namespace {

struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / "tenon_test.tnx").string();
  ~TemporaryFile() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("an executable is the same after it was saved and loaded") {
  Tensor w = ramp({32, 24}), b = ramp({24});
  auto mlp = [=](const Tensors& x) { return Tensors{tanh(matmul(x[0], w) + b), b, x[0]}; };
  for (int level : {0, 1, 3}) {
    Executable made = compile_ahead(
        mlp, {{.shape = {{1, 8, 64, "batch"}, 32}, .name = "x"}},
        {.optimization_level = level, .name = "mlp", .constants = {{"w", w}, {"b", b}}});
    TemporaryFile file;
    made.save(file.path);
    Executable loaded = Executable::load(file.path);
    CHECK(loaded.name() == "mlp");
    CHECK(loaded.inputs()[0].shape[0].name == "batch");
    CHECK(loaded.show("graph") == made.show("graph"));
    for (int64_t n : {1, 2, 3, 8, 17, 64})
      check_same(loaded({ramp({n, 32})}), mlp({ramp({n, 32})}));
    CHECK_THROWS_AS(loaded({ones({65, 32})}), UserError);
  }
}
