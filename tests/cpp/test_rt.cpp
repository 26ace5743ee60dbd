// Saved executables in libtenon_rt, by the interface for C++.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "fuzz_graph.h"
#include "ir/graph.h"
#include "ir/node.h"
#include "tenon/matmul_precision.h"
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
        (bytes && std::memcmp(got[i].data(), wanted[i].data(), bytes) != 0))
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

TEST_CASE("results of the runtime that are bools are copied to a vector") {
  TemporaryFile file;
  compile_ahead([](const Tensors& x) { return Tensors{x[0] > 1}; }, {{.shape = {3}, .name = "x"}})
      .save(file.path);
  rt::Executable f(file.path, {.trust = true});
  std::vector<float> x{1, 2, 3};
  CHECK(f({{x, {3}}})[0].to_vector<bool>() == std::vector<bool>{false, true, true});
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

/// On a GPU (tools/test_cuda.sh): elementwise ops, reductions and products, with the bits of the
/// CPU, by machine code and by text that the driver assembles.
TEST_CASE("gpu: the runtime runs files with the bits of the CPU") {
  if (!std::getenv("TENON_TEST_CUDA")) return;
  TemporaryFile file;
  Tensor weights = random::normal({96, 48});
  auto model = [&](const Tensors& x) {
    Tensor hidden = gelu(matmul(x[0], weights) + x[1]);
    return Tensors{softmax(hidden, Axes(-1)), sum(square(x[0]), Axes(0)), sort(hidden, 1)};
  };
  set_matmul_precision("exact");
  Executable made = compile_ahead(
      model, {{.shape = {{1, 64, 256}, 96}, .name = "x"}, {.shape = {48}, .name = "bias"}});
  set_matmul_precision("highest");
  for (std::string target : {"sm_80", "sm_90", "ptx_80"}) {
    CAPTURE(target);
    made.save(file.path, {.targets = {"native", target, "ptx_80"}});
    rt::Executable on_cpu(file.path, {.trust = true});
    rt::Executable on_gpu(file.path, {.trust = true, .device = "cuda"});
    CHECK(on_cpu.device() == "cpu");
    CHECK(on_gpu.device() == "cuda:0");
    MESSAGE("it runs ", on_gpu.target());
    for (int64_t rows : {1, 7, 64, 256}) {
      CAPTURE(rows);
      Tensor x = random::normal({rows, 96}), bias = random::normal({48});
      Tensors wanted = made({x, bias});
      std::vector<rt::Input> inputs{input_of(x), input_of(bias)};
      for (int call = 0; call < 3; ++call) CHECK(same(on_gpu(inputs), wanted));  // a graph at last
      CHECK(same(on_cpu(inputs), wanted));
    }
  }
}

TEST_CASE("gpu: results of the runtime stay there, and go from call to call") {
  if (!std::getenv("TENON_TEST_CUDA")) return;
  TemporaryFile file;
  Executable made =
      compile_ahead([](const Tensors& x) { return Tensors{sin(x[0]) * 3 + x[1]}; },
                    {{.shape = {{1, 1000, 100000}}, .name = "x"}, {.shape = {}, .name = "bias"}});
  made.save(file.path, {.targets = {"native", "ptx_80"}});
  rt::Executable f(file.path, {.trust = true, .device = "cuda"});
  std::vector<float> one{1};
  for (int64_t size : {1, 3, 1000, 100000}) {  // copies of less than 64 KiB are made otherwise
    CAPTURE(size);
    Tensor x = random::normal({size}), bias = ones({});
    Tensors wanted{x};
    rt::Tensor there = f.to_device(input_of(x));
    CHECK(there.device() == 1);
    for (int call = 0; call < 20; ++call) {
      there = std::move(f.run_on_device({there, {one, {}}})[0]);
      wanted = made({wanted[0], bias});
    }
    CHECK(there.to_vector<float>() == wanted[0].to_vector<float>());
    CHECK(same(f({there, {one, {}}}), made({wanted[0], bias})));
    CHECK_THROWS_WITH_AS(there.data<float>(),
                         "the result is on a GPU: to_vector() copies it to the host", rt::Error);
  }
  rt::Input elsewhere(TENON_RT_F32, one.data(), {1}, 2);
  CHECK_THROWS_AS(f.run_on_device({elsewhere, {one, {}}}), rt::Error);
}
