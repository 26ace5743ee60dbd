// Executables in one process: values, ranges, errors.
#include <doctest/doctest.h>

#include "tenon/tenon.h"

using namespace tn;

static Tensors geglu(const Tensors& x) {
  Tensor a = x[0] * 2, b = x[0] + 1;
  return {a * (b * (1 + erf(b / 1.4142135f)) / 2)};
}

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

TEST_CASE("an executable has the bits of its function on the whole range") {
  int traced = 0;
  auto f = [&](const Tensors& x) {
    ++traced;
    return geglu(x);
  };
  Executable exe = compile_ahead(f, {{.shape = {{1, 8, 16}, 2}, .name = "x"}}, {.name = "geglu"});
  CHECK(traced == 1);
  for (int64_t n = 1; n <= 16; ++n) check_same(exe({ramp({n, 2})}), geglu({ramp({n, 2})}));
  CHECK(traced == 1);
  CHECK(exe.stats().kernels_compiled == 0);
  CHECK(exe.stats().calls == 16);
  CHECK(exe.peak_bytes() == 128);
  CHECK(exe.outputs()[0].shape == "[s0, 2]");
  MESSAGE(exe.to_text());
}

TEST_CASE("calls that do not fit are refused with what is wrong") {
  Executable exe = compile_ahead(
      geglu, {{.shape = {{1, 8, 16}, 2}, .name = "x", .place = "train.py:14"}}, {.name = "geglu"});
  auto refused = [&](const Tensors& args, const char* text) {
    CHECK_THROWS_WITH_AS(exe(args), text, UserError);
  };
  refused({}, "geglu(): takes 1 tensor (x), was given 0");
  refused({ones({32, 2})},
          "geglu(): argument `x` has shape [32,2]; dimension 0 = 32 is outside [1, 16], declared "
          "at train.py:14\n  hint: compile for a range that has 32, or use compile without "
          "InputInfo");
  refused({ones({3, 3})},
          "geglu(): argument `x` has shape [3,3]; dimension 1 = 3, expected 2, "
          "declared at train.py:14");
  refused({ones({3})},
          "geglu(): argument `x` has shape [3] with 1 dimensions, expected 2, "
          "declared at train.py:14");
  refused({ones({3, 2}, DType::i32)},
          "geglu(): argument `x` is int32, expected float32, declared at train.py:14");
}
