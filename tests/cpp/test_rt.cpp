// Saved executables in libtenon_rt, by the interface for C++.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "fuzz_graph.h"
#include "ir/graph.h"
#include "ir/node.h"
#include "tenon/runtime.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / "tenon_test_rt.tnx").string();
  ~TemporaryFile() { std::filesystem::remove(path); }
};

rt::Input input_of(const Tensor& x) {
  std::vector<int64_t> shape;
  for (Dim size : x.shape()) shape.push_back(size.value());
  return {static_cast<tenon_rt_dtype>(x.dtype()), x.data(), shape};
}

/// Whether all results are the same, bit for bit.
bool same(const std::vector<rt::Tensor>& got, const Tensors& wanted) {
  if (got.size() != wanted.size()) return false;
  for (size_t i = 0; i < got.size(); ++i) {
    auto bytes = static_cast<size_t>(wanted[i].bytes());
    if (got[i].dtype() != static_cast<tenon_rt_dtype>(wanted[i].dtype()) ||
        got[i].size() != static_cast<size_t>(wanted[i].size()) ||
        (bytes && std::memcmp(got[i].data(), wanted[i].data(), bytes)))
      return false;
  }
  return true;
}

}  // namespace

TEST_CASE("random graphs give the same bits in the runtime") {
  TemporaryFile file;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Graph graph = fuzz_graph(seed);
    Tensors args = fuzz_inputs(graph, seed);
    std::vector<InputInfo> infos;
    std::vector<rt::Input> inputs;
    for (const Tensor& x : args) {
      InputInfo& info = infos.emplace_back(InputInfo{.shape = {}, .dtype = x.dtype()});
      for (Dim size : x.shape()) info.shape.emplace_back(size.value());
      inputs.push_back(input_of(x));
    }
    Executable made = compile_ahead([&](const Tensors& x) { return replay(graph, x); }, infos);
    made.save(file.path);
    rt::Executable loaded(file.path, {.trust = true});
    CHECK(same(loaded(inputs), made(args)));
  }
}

TEST_CASE("the runtime's tensors are checked, passed on and released") {
  TemporaryFile file;
  compile_ahead([](const Tensors& x) { return Tensors{x[0] * 2}; },
                {{.shape = {{1, 2, 4}}, .name = "x"}})
      .save(file.path);
  rt::Executable f(file.path, {.trust = true});
  std::vector<float> x{1, 2, 3};
  rt::Tensor y = std::move(f({{x, {3}}})[0]);
  rt::Tensor z = std::move(f({y})[0]);
  CHECK(z.data<float>()[2] == 12);
  CHECK(f.input(0).sizes[0].max == 4);
  CHECK_THROWS_WITH_AS(z.data<double>(), "the result has elements of another type", rt::Error);
  CHECK_THROWS_WITH_AS(rt::Input(x, {2}), "an input has 3 elements, and its shape 2", rt::Error);
  CHECK_THROWS_AS(f({rt::Input(TENON_RT_F32, nullptr, {3})}), rt::Error);
  CHECK_THROWS_AS(f({{x, {3}}, 1}), rt::Error);
  CHECK_THROWS_AS(f.input(1), rt::Error);
  CHECK_THROWS_AS(rt::Executable("nowhere.tnx"), rt::Error);
}
