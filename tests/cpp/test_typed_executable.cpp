// Executables as typed functions.
#include <doctest/doctest.h>

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
