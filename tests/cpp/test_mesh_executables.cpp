// Executables that run on a mesh of workers.
#include <doctest/doctest.h>

#include "base/text.h"
#include "errors.h"
#include "files.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

std::string saved_on(const Mesh& mesh, const Tensor& weight) {
  static const Folder folder;
  std::string path = folder.path + "/f.tnx";
  auto f = [&](Tensor x) { return relu(matmul(x, weight)); };
  InputInfo x{.shape = {{2, 4, 8}, 2}, .name = "x"};
  compile_ahead(f, {x}, {.name = "f", .mesh = mesh}).save(path);
  return path;
}

}  // namespace

TEST_CASE("executables on a mesh: a typed function of a file") {
  Mesh mesh = make_mesh({{"model", 2}});
  Tensor weight = [&] {
    MeshScope on(mesh);
    return shard(reshape(arange(16, {}, 1, DType::f32), {2, 8}), {"", "model"});
  }();
  auto f = Executable::load<Tensor(Tensor)>(saved_on(mesh, weight));
  for (int64_t rows : {2, 3, 8}) {
    Tensor x = reshape(arange(static_cast<double>(2 * rows), {}, 1, DType::f32), {rows, 2});
    Tensor made = f(x);
    CHECK(layout(made) == format("f32[{},8] @[-,model]", rows));
    CHECK(array_equal(made, relu(matmul(x.to(device_of(mesh)), weight))).item<bool>());
  }
  CHECK(f.stats().mesh == "model=2");
  CHECK(contains(f.to_text(), "on the mesh model=2, loaded"));
  CHECK(contains(f.show("sharding"), "@[-,model]"));
}

TEST_CASE("executables on a mesh: without it they are undivided") {
  Mesh mesh = make_mesh({{"model", 2}});
  Tensor weight = shard(ones({2, 8}).to(device_of(mesh)), {"", "model"});
  MeshScope on(mesh);
  auto f = compile_ahead([&](Tensor x) { return matmul(x, weight); }, {{.shape = {4, 2}}});
  CHECK(f.stats().mesh == "");
  DeviceScope host{Device()};
  CHECK(f(ones({4, 2})).device() == Device());
}

TEST_CASE("executables on a mesh: arguments of another one") {
  Mesh mesh = make_mesh({{"model", 2}}), other = make_mesh({{"data", 2}});
  auto f = compile_ahead([](Tensor x) { return x + 1; }, {{.shape = {4}}}, {.mesh = mesh});
  CHECK(contains(error_in([&] { f(ones({4}).to(device_of(other))); }),
                 "the executable is for the mesh model=2"));
}
