// Executables as typed functions.
#include <doctest/doctest.h>

#include <map>
#include <optional>

#include "errors.h"
#include "files.h"
#include "tenon/tenon.h"

using namespace tn;
using Floats = std::vector<float>;

namespace {

struct Params {
  Tensor w, b;
  static constexpr auto fields(auto& p, auto&& f) { f("w", p.w), f("b", p.b); }
};

}  // namespace

TEST_CASE("typed: an executable is saved, loaded and called with trees") {
  Folder folder;
  std::string path = folder.path + "/f.tnx";
  auto f = [](const Params& p, const Tensor& x) { return std::pair{matmul(x, p.w) + p.b, sum(x)}; };
  auto made = compile_ahead(f, {{.shape = {2, 1}}, {.shape = {1}}, {.shape = {{1, 4, 8, "n"}, 2}}});
  CHECK(made.inputs()[0].name == "arg0.w");
  CHECK(made.inputs()[2].name == "arg1");
  made.save(path);

  Params p{array({{1.f}, {2.f}}), array({0.5f})};
  Tensor x = array({{1.f, 1.f}, {2.f, 3.f}});
  auto loaded = Executable::load<std::pair<Tensor, Tensor>(Params, Tensor)>(path);
  for (auto [y, total] : {made(p, x), loaded(p, x)}) {
    CHECK(y.to_vector<float>() == Floats{3.5f, 8.5f});
    CHECK(total.item<float>() == 7);
  }
  CHECK(contains(error_in([&] { Executable::load<Tensor(Tensor)>(path); }),
                 "has 3 inputs, and the signature 1"));
  Executable plain = Executable::load(path);
  CHECK(plain({p.w, p.b, x})[1].item<float>() == 7);
}

TEST_CASE("typed: signatures of tensors, generic functions and lists") {
  auto product = compile_ahead<Tensor(Tensor, Tensor)>([](auto a, auto b) { return a * b; },
                                                       {{.shape = {2}}, {.shape = {2}}});
  Tensor x = array({2.f, 3.f});
  CHECK(product(x, x).to_vector<float>() == Floats{4, 9});
  auto list = compile_ahead([](const Tensors& in) { return Tensors{in[0] + in[1]}; },
                            {{.shape = {2}}, {.shape = {2}}});
  CHECK(list({x, x})[0].to_vector<float>() == Floats{4, 6});
  CHECK(contains(
      error_in([] { compile_ahead([](Tensor a, Tensor b) { return a + b; }, {{.shape = {2}}}); }),
      "1 inputs are described, and the function takes 2 tensors"));
}

namespace {

struct Scaled {
  Tensor w;
  double scale = 2;
  static void fields(auto& s, auto&& f) { f("w", s.w), f("scale", s.scale); }
};

}  // namespace

TEST_CASE("typed: a result whose length is not known takes none") {
  Folder folder;
  std::string path = folder.path + "/f.tnx";
  compile_ahead([](Tensor x) { return x * 2; }, {{.shape = {2}}}).save(path);
  CHECK(contains(error_in([&] { Executable::load<std::optional<Tensor>(Tensor)>(path); }),
                 "main has 1 outputs, and the signature 0"));
  CHECK(Executable::load<Tensors(Tensor)>(path)(array({1.f, 2.f}))[0].to_vector<float>() ==
        Floats{2, 4});
}

TEST_CASE("typed: settings in arguments are constants of an executable") {
  Folder folder;
  std::string path = folder.path + "/f.tnx";
  auto f = [](const Scaled& s, const Tensor& x) { return x * s.w * s.scale; };
  auto made = compile_ahead(f, {{.shape = {1}}, {.shape = {1}}});
  made.save(path);
  auto loaded = Executable::load<Tensor(Scaled, Tensor)>(path);
  Tensor one = ones({1});
  for (const auto& exe : {made, loaded}) {
    CHECK(exe(Scaled{one}, one).item<float>() == 2);
    std::string error = error_in([&] { exe(Scaled{one, 5}, one); });
    CHECK(contains(error, "executable: argument 0.scale is not what the function was compiled"));
    CHECK(contains(error, "test_typed_executable.cpp"));
    CHECK(contains(error, "hint: settings are those of default-constructed arguments"));
  }
  auto named = compile_ahead([](const std::pair<std::string, Tensor>& p) { return p.second + 1; },
                             {{.shape = {1}}});
  CHECK(contains(error_in([&] { named({"other", one}); }), "executable: argument 0[0] is not"));
}

TEST_CASE("typed: an executable returns tensors only") {
  CHECK(contains(error_in([] {
                   compile_ahead([](const Tensor& x) { return std::pair{x, 3.0}; },
                                 {{.shape = {1}}});
                 }),
                 "an executable returns tensors only, and result[1] is something else"));
}

TEST_CASE("settings in a file that was damaged are an error") {
  typed::Settings none;
  CHECK(typed::settings_in(typed::text_of(none)).empty());
  CHECK(contains(error_in([&] { typed::settings_in(typed::text_of(none) + " zz"); }),
                 "load: the settings of arguments in the file are damaged"));
}

TEST_CASE("typed: what a temporary executable describes is a copy") {
  auto make = [] {
    InputInfo x{.shape = {2}, .name = "x"};
    return compile_ahead([](const Tensor& t) { return t * 2; }, {x}, {.name = "twice"});
  };
  const std::string& name = make().name();
  CHECK(name == "twice");
  for (const InputInfo& input : make().inputs()) CHECK(input.name == "x");
  for (const OutputInfo& output : make().outputs()) CHECK(output.shape == "[2]");
  CHECK(make().surface().empty());
}

TEST_CASE("typed: maps are inputs and outputs by name") {
  Folder folder;
  std::string path = folder.path + "/f.tnx";
  using Map = std::map<std::string, Tensor>;
  auto f = [](const Map& in) {
    return Map{{"sum", in.at("y") + in.at("a")}, {"difference", in.at("y") - in.at("a")}};
  };
  std::vector<InputInfo> inputs{{.shape = {2}, .name = "y"}, {.shape = {1}, .name = "a"}};
  auto made = compile_ahead(f, inputs);
  made.save(path);
  auto loaded = Executable::load<Map(Map)>(path);
  Tensor a = array({1.f}), y = array({2.f, 3.f});
  for (const auto& exe : {made, loaded}) {
    CHECK(exe.inputs()[0].name == "y");
    Map out = exe({{"a", a}, {"y", y}});
    CHECK(out.size() == 2);
    CHECK(out.at("sum").to_vector<float>() == Floats{3, 4});
    CHECK(out.at("difference").to_vector<float>() == Floats{1, 2});
  }
  CHECK(Executable::load<Map(Tensor, Tensor)>(path)(y, a).at("sum").dim(0) == 2);
  std::string error = error_in([&] { loaded({{"a", a}, {"x", y}}); });
  CHECK(contains(error, "main(): there is no input 'x'"));
  CHECK(contains(error, "hint: its inputs are y, a"));
  CHECK(contains(error, "test_typed_executable.cpp"));
  CHECK(contains(error_in([&] { loaded({{"a", a}}); }), "main(): the input 'y' is missing"));
  CHECK(contains(error_in([&] { compile_ahead(f, {{.shape = {2}}}); }),
                 "compile_ahead: input 0 has no name"));
  CHECK(contains(error_in([&] { compile_ahead(f, {inputs[0], inputs[0]}); }),
                 "compile_ahead: two inputs are called y"));
  compile_ahead([](Tensor x) { return x * 2; }, {{.shape = {2}}}).save(path);
  error = error_in([&] { Executable::load<Map(Tensor)>(path); });
  CHECK(contains(error, "load: output 0 of main has no name"));
  CHECK(contains(error, "test_typed_executable.cpp"));
}

TEST_CASE("typed: outputs have the names of the fields") {
  auto made = compile_ahead([](const Tensor& x) { return Params{x, x + 1}; }, {{.shape = {1}}});
  CHECK(made.outputs()[0].name == "w");
  CHECK(made.outputs()[1].name == "b");
  CHECK(made(ones({1})).b.item<float>() == 2);
}
