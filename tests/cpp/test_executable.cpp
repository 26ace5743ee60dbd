// Executables in one process: values, ranges, errors.
#include <doctest/doctest.h>

#include <functional>

#include "errors.h"
#include "executable_models.h"

using namespace tn;

static Tensors geglu(const Tensors& x) {
  Tensor a = x[0] * 2, b = x[0] + 1;
  return {a * (b * (1 + erf(b / 1.4142135f)) / 2)};
}

/// What a call fails with, without the line of the call.
static std::string failure(const std::function<void()>& f) {
  std::string text = error_in(f);
  size_t place = text.find("\n  at ");
  if (place == text.npos || text.find("test_executable.cpp", place) == text.npos) return text;
  return text.erase(place, text.find('\n', place + 1) - place);
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
  CHECK(exe.to_text().starts_with(
      "geglu(x: float32[s0, 2]) -> float32[s0, 2]\n  x.shape[0] = s0: 1 to 16, best at 8\n"));
}

TEST_CASE("calls that do not fit are refused with what is wrong") {
  Executable exe = compile_ahead(
      geglu, {{.shape = {{1, 8, 16}, 2}, .name = "x", .place = "train.py:14"}}, {.name = "geglu"});
  auto refused = [&](const Tensors& args, const char* text) {
    CHECK(failure([&] { exe(args); }) == text);
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

TEST_CASE("sizes of one name are equal, and others where the function needs it") {
  auto add = [](const Tensors& x) { return Tensors{x[0] + x[1]}; };
  DimensionInfo s(1, 4, 8, "s"), t(1, 4, 8, "t");
  Executable one =
      compile_ahead(add, {{.shape = {s}, .name = "q"}, {.shape = {s}, .name = "k"}}, {.name = "f"});
  check_same(one({ramp({3}), ramp({3})}), {ramp({3}) * 2});
  CHECK(failure([&] { one({ones({3}), ones({4})}); }) ==
        "f(): dimension `s` is 3 in q.shape[0] and 4 in k.shape[0]: sizes with one name are equal");
  Executable two =
      compile_ahead(add, {{.shape = {s}, .name = "q"}, {.shape = {t}, .name = "k"}}, {.name = "f"});
  check_same(two({ramp({3}), ramp({3})}), {ramp({3}) * 2});
  std::string text = failure([&] { two({ones({3}), ones({4})}); });
  CHECK(
      text.starts_with("f(): dimensions `s` (q.shape[0] = 3) and `t` (k.shape[0] = 4) must be "
                       "equal (required by add at "));
  DimensionInfo other(1, 4, 9, "s");
  CHECK(failure([&] {
          compile_ahead(add, {{.shape = {s}, .name = "q"}, {.shape = {other}, .name = "k"}});
        }) ==
        "compile: dimension `s` is (1, 4, 8) in q.shape[0] and (1, 4, 9) in k.shape[0]: one name "
        "has one range");
}

TEST_CASE("what a function asks about sizes has one answer on their ranges") {
  auto branch = [](const Tensors& x) { return Tensors{x[0].dim(0) > 4 ? x[0] + 1 : x[0]}; };
  std::string text =
      failure([&] { compile_ahead(branch, {{.shape = {{1, 8, 16}}, .name = "x"}}); });
  CHECK(
      text.starts_with("main(): x.shape[0] == 8 holds at opt (x.shape[0] = 8) and not at min "
                       "(x.shape[0] = 1)"));
  auto halves = [](const Tensors& x) { return Tensors{reshape(x[0], {2, -1})}; };
  Executable even = compile_ahead(halves, {{.shape = {{2, 8, 16}}, .name = "x"}}, {.name = "f"});
  check_same(even({ramp({6})}), {reshape(ramp({6}), {2, 3})});
  CHECK(failure([&] { even({ones({7})}); }).starts_with("f(): "));
  CHECK(failure([&] { compile_ahead(geglu, {{.shape = {{4, 2, 8}, 2}, .name = "x"}}); }) ==
        "compile: x.shape[0] needs 0 <= min <= opt <= max, given (4, 2, 8)");
  CHECK(failure([&] {
          compile_ahead(geglu, {{.shape = {2, 2}}}, {.memory_limit = 8});
        }).starts_with("main(): memory_limit is 8 bytes, the smallest peak is 16 bytes"));
  CHECK(failure([&] { compile_ahead([](const Tensors&) { return Tensors(); }, {}); }) ==
        "main(): returns no tensor, expected 1 or more");
}

TEST_CASE("a size may be an input") {
  auto f = [](const Tensors& x, const std::vector<Dim>& n) {
    return Tensors{broadcast_to(x[0], {n[0], 2}) * 2, x[0]};
  };
  Executable exe = flat::compile_ahead_sized(
      f, {{.shape = {1, 2}, .name = "x"}, size_input({1, 2, 5}, "n")}, {.name = "f"});
  for (int64_t n = 1; n <= 5; ++n)
    check_same(exe({ramp({1, 2})}, {n}), {broadcast_to(ramp({1, 2}), {n, 2}) * 2, ramp({1, 2})});
  CHECK(failure([&] { exe({ramp({1, 2})}); }) == "f(): takes 1 size (n), was given 0");
  CHECK(failure([&] { exe({ramp({1, 2})}, {6}); })
            .starts_with("f(): argument `n` = 6 is outside "
                         "[1, 5]"));
}

TEST_CASE("results may be constants and arguments; executables need values") {
  Tensor w = ramp({4});
  Executable exe = compile_ahead([&](const Tensors& x) { return Tensors{w, x[0], x[0] * w}; },
                                 {{.shape = {{1, 2, 3}, 4}}}, {.constants = {{"w", w}}});
  check_same(exe({ramp({3, 4})}), {w, ramp({3, 4}), ramp({3, 4}) * w});
  CHECK(exe.show("graph").find("%w: f32[4]") != std::string::npos);
  auto inside = compile([&](const Tensors& x) { return exe(x); });
  CHECK(failure([&] { inside({ramp({3, 4})}); }).find("an executable cannot run inside") !=
        std::string::npos);
}
