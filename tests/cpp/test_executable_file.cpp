// Executables in files.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/kernel_set.h"
#include "executable_models.h"
#include "files.h"
#include "functions/executable.h"

using namespace tn;

TEST_CASE("an executable is the same after it was saved and loaded") {
  Tensor w = ramp({32, 24}), b = ramp({24});
  auto mlp = [=](const Tensors& x) { return Tensors{tanh(matmul(x[0], w) + b), b, x[0]}; };
  for (int level : {0, 1, 3}) {
    Executable made = compile_ahead(
        mlp, {{.shape = {{1, 8, 64, "batch"}, 32}, .name = "x"}},
        {.optimization_level = level, .name = "mlp", .constants = {{"w", w}, {"b", b}}});
    Folder folder;
    std::string path = folder.path + "/f.tnx";
    made.save(path);
    Executable loaded = Executable::load(path);
    CHECK(loaded.name() == "mlp");
    CHECK(loaded.inputs()[0].shape[0].name == "batch");
    CHECK(loaded.show("graph") == made.show("graph"));
    for (int64_t n : {1, 2, 3, 8, 17, 64})
      check_same(loaded({ramp({n, 32})}), mlp({ramp({n, 32})}));
    CHECK_THROWS_AS(loaded({ones({65, 32})}), UserError);
  }
}

static const Model& model_of(std::string_view name) {
  static const std::vector<Model> all = models();
  return *std::ranges::find(all, name, &Model::name);
}

TEST_CASE("a file has code for several targets, and the best that fits runs") {
  std::vector<Target> targets;
  for (std::string_view name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"})
    if (Target t = target_named(name, "test"); runs_here(t)) targets.push_back(t);
  const Model& model = model_of("mlp");
  std::string file = saved(model.compiled(), targets);
  Tensors args = arguments(model, 0.5), want = model.f(args);
  while (!targets.empty()) {
    Executable exe = loaded(file);
    CHECK(exe.stats().target == name_of(targets.back()));
    CHECK(exe.stats().origin == "loaded");
    check_same(exe(args), want);
    CHECK(exe.stats().kernels_compiled == 0);
    std::string_view best = name_of(targets.back());
    file =
        without(file, [&](const auto& s) { return s.kind == tnx::Kind::code && s.name == best; });
    targets.pop_back();
  }
  Executable exe = loaded(file);
  CHECK(exe.stats().origin == "rebuilt: it has no code for " + std::string(name_of(host_target())));
  check_same(exe(args), want);
}

TEST_CASE("code runs if this user's machine wrote it, or on trust") {
  const Model& model = model_of("mlp");
  Target target = host_target();
  std::string file = saved(model.compiled(), {&target, 1});
  std::string strange = without(file, [](const auto& s) { return s.kind == tnx::Kind::seal; });
  CHECK(loaded(file).stats().origin == "loaded");
  CHECK(loaded(strange, true).stats().origin == "loaded");
  Executable rebuilt = loaded(strange);
  CHECK(rebuilt.stats().origin ==
        "rebuilt: this user's machine did not write it, and trust was not given");
  // What was loaded or rebuilt is saved as it was.
  CHECK(saved(loaded(file), {&target, 1}) == file);
  CHECK(saved(rebuilt, {&target, 1}) == file);
}

TEST_CASE("the same function gives the same bytes, whatever was called between") {
  for (const Model& model : models()) {
    CAPTURE(model.name);
    Target target = host_target();
    Executable one = model.compiled();
    std::string file = saved(one, {&target, 1});
    for (double way : {0.9, 0.2, 0.4}) one(arguments(model, way));
    CHECK(saved(one, {&target, 1}) == file);
    CHECK(saved(model.compiled(), {&target, 1}) == file);
  }
}

TEST_CASE("effects, draws, derivatives and nested functions are saved") {
  auto square = compile([](const Tensors& x) { return Tensors{x[0] * x[0]}; });
  auto f = [&](const Tensors& x) {
    check(all(x[0] > -5), "too small: {}", {min(x[0])});
    print("sum {}", {sum(x[0])});
    Tensor slope = grad([&](const Tensors& y) { return Tensors{sum(square(y)[0] * y[0])}; })(x)[0];
    return Tensors{slope, random::uniform({3}, 0.0, 1.0, DType::f32, random::key(7)),
                   checkpoint(square)(x)[0]};
  };
  Executable made = compile_ahead(f, {{.shape = {{1, 4, 8}}, .name = "x"}});
  Target target = host_target();
  Executable again = loaded(saved(made, {&target, 1}));
  std::vector<std::string> lines;
  set_print_sink([&](std::string_view line) { lines.emplace_back(line); });
  Tensors args{full({5}, 2.f)};
  check_same(again(args), made(args));
  CHECK(lines == std::vector<std::string>{"sum 10.", "sum 10."});
  CHECK(again(args)[0].to_vector<float>()[0] == 12);
  for (const Executable& exe : {made, again})
    CHECK_THROWS_WITH_AS(exe({full({5}, -6.f)}), doctest::Contains("too small: -6"), UserError);
  set_print_sink({});
}

TEST_CASE("constants may be empty") {
  Tensor none = zeros({0, 3});
  Executable made =
      compile_ahead([&](const Tensors& x) { return Tensors{none, concat({x[0], none})}; },
                    {{.shape = {{1, 2, 3}, 3}}});
  Target target = host_target();
  check_same(loaded(saved(made, {&target, 1}))({ramp({2, 3})}), {none, ramp({2, 3})});
}

TEST_CASE("sizes at opt have kernels of their own where that gains") {
  auto f = [](const Tensors& x) {
    return Tensors{softmax(x[0], Axes(-1)), permute_dims(x[0], Perm{1, 0}) + 1};
  };
  Executable open = compile_ahead(f, {{.shape = {{1, 20, 40}, {1, 100, 200}}, .name = "x"}});
  Target target = host_target();
  std::string file = saved(open, {&target, 1});
  Executable again = loaded(file, true);
  for (int64_t rows : {19, 20, 21})
    for (int64_t columns : {99, 100, 101}) {
      Tensors args{ramp({rows, columns})}, want = f(args);
      check_same(open(args), want);
      check_same(again(args), want);
    }
  CHECK(again.stats().kernels_compiled == 0);
  CHECK(saved(again, {&target, 1}) == file);
  Executable batch =
      compile_ahead([](const Tensors& x) { return Tensors{softmax(x[0], Axes(-1))}; },
                    {{.shape = {{1, 20, 40}, 100}, .name = "x"}});
  CHECK(open.state()->program->sets().size() == 2);
  CHECK(batch.state()->program->sets().size() == 1);
}

TEST_CASE("a file is small besides weights and code") {
  for (const Model& model : models()) {
    CAPTURE(model.name);
    Target target = host_target();
    std::string bytes = saved(model.compiled(), {&target, 1});
    uint64_t payload = 0;
    auto file = tnx::File::over(bytes);
    for (const tnx::SectionInfo& s : file->sections())
      if (s.kind == tnx::Kind::weights || s.kind == tnx::Kind::code) payload += s.length;
    CHECK(bytes.size() - payload < 64 * 1024);
  }
}

TEST_CASE("kernels of another version are made again") {
  auto f = [](const Tensors& x) { return Tensors{exp(x[0]) + 1}; };
  Target target = host_target();
  std::string bytes = saved(compile_ahead(f, {{.shape = {{1, 2, 9}}, .name = "x"}}), {&target, 1});
  auto file = tnx::File::over(bytes);
  tnx::Writer changed;
  for (const tnx::SectionInfo& s : file->sections()) {
    if (s.kind == tnx::Kind::weights) continue;  // there are none
    std::string section = file->read(s.kind, s.name);
    if (s.kind == tnx::Kind::plan) section[0] += 1;  // the number of its format
    changed.add(s.kind, s.name, std::move(section), s.codec);
  }
  for (bool trust : {false, true}) {
    Executable exe = loaded(changed.bytes(), trust);
    CHECK(exe.stats().origin == "rebuilt: it has no kernels that this tenon knows");
    check_same(exe({ramp({5})}), f({ramp({5})}));
  }
}
