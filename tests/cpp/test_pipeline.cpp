// Parts of meshes and pipelines, from C++; the order of the parts of a plan.
#include <doctest/doctest.h>

#include "compiler/part_order.h"
#include "errors.h"
#include "ir/mesh_layout.h"
#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tenon/tenon.h"

namespace tn {
namespace {

std::vector<float> values(const Tensor& x) { return x.to(Device()).to_vector<float>(); }

}  // namespace

TEST_CASE("mesh: a part of a mesh prints, parses and is itself a mesh") {
  Mesh mesh = make_mesh({{"stage", 2}, {"data", 2, 4}});
  Mesh part = mesh.at("stage", 1);
  CHECK(to_text(part) == "data=2:4 at stage=1 of stage=2, data=2:4");
  CHECK(to_text(part.at("data", 0)) == "at stage=1, data=0 of stage=2, data=2:4");
  for (const Mesh& each : {mesh, part, part.at("data", 0)}) {
    CHECK(parse_mesh(to_text(each)) == each);
    CHECK(mesh_of(device_of(each)) == each);
    CHECK(each.whole() == mesh);
  }
  CHECK(part.workers() == 2);
  CHECK(part.at("data", 0).workers() == 1);
  CHECK_THROWS_WITH_AS(parse_mesh("data=2 at stage=1"), doctest::Contains("'at axis=number of"),
                       UserError);
  CHECK_THROWS_WITH_AS(parse_mesh("data=3 at stage=1 of stage=2, data=2"),
                       doctest::Contains("'at axis=number of"), UserError);
}

TEST_CASE("mesh: values go between parts of a mesh, and back") {
  Mesh mesh = make_mesh({{"stage", 2}, {"data", 2}});
  Tensor x = reshape(arange(16.0F), {4, 4});
  MeshScope on(mesh);
  Tensor y = place(shard(x, "data"), mesh.at("stage", 1));
  CHECK(layout(y) == "f32[4,4] @[data,-]");
  Tensor z = place(y + 1, mesh.at("stage", 0));
  CHECK(layout(z) == "f32[4,4] @[data,-]");
  CHECK(values(place(z, mesh)) == values(x + 1));
}

TEST_CASE("nn: a pipeline trains as its stages do without one") {
  auto losses = [](int64_t stages) {
    random::seed(0);
    Mesh mesh = make_mesh({{"stage", stages, 2}, {"data", 2}});
    MeshScope on(mesh);
    nn::Sequential first{nn::Linear(4, 8), relu};
    nn::Pipeline pipe(4, place(first, mesh.at("stage", 0)),
                      place(nn::Linear(8, 1), mesh.at("stage", stages - 1)));
    optim::AdamW optimizer(0.01);
    Tensor x = shard(sin(reshape(arange(64.0F), {16, 4})), "data");
    Tensor y = mean(x, {1}, true);
    auto square = [](const Tensor& a, const Tensor& b) { return mean(tn::square(a - b)); };
    auto step = nn::value_and_grad(
        pipe, [&](const Tensor& a, const Tensor& b) { return pipe.loss(square, a, b); });
    std::vector<double> found;
    for (int i = 0; i < 4; ++i) {
      auto [loss, gradients] = step(x, y);
      auto [clipped, norm] = optim::clip_grad_norm(gradients, 0.5);  // of all stages
      found.push_back(norm.item<double>());
      optimizer.update(pipe, clipped);
      found.push_back(loss.item<double>());
    }
    CHECK(layout(pipe(x)) == "f32[16,1] @[data,-]");
    return found;
  };
  std::vector<double> two = losses(2);
  CHECK(two.back() < two[1]);
  CHECK(two == losses(1));
}

TEST_CASE("nn: errors of pipelines") {
  nn::Pipeline pipe(3, nn::Linear(4, 1));
  CHECK_THROWS_WITH_AS(pipe(ones({4, 4})), doctest::Contains("cannot be split into 3 microbatches"),
                       UserError);
  auto rows = [](const Tensor& a, const Tensor&) { return a; };
  CHECK_THROWS_WITH_AS(pipe.loss(rows, ones({3, 4}), ones({3})),
                       doctest::Contains("a loss is a scalar"), UserError);
  CHECK_THROWS_WITH_AS(pipe.loss(rows, ones({3, 4}), ones({6})),
                       doctest::Contains("arguments have 3 and 6 rows"), UserError);
  CHECK_THROWS_WITH_AS(nn::Pipeline(0, nn::Linear(4, 1))(ones({4, 4})),
                       doctest::Contains("must be a positive integer: 0"), UserError);
}

/// Forward and backward passes of microbatches on stages: part k of a microbatch is on stage k,
/// then back again.
static std::vector<OrderedPart> passes(int stages, int microbatches) {
  std::vector<OrderedPart> parts;
  for (int m = 0; m < microbatches; ++m)
    for (int k = 0; k < 2 * stages; ++k) {
      int stage = k < stages ? k : 2 * stages - 1 - k, own = m * 2 * stages;
      OrderedPart part{Device(1, static_cast<uint8_t>(stage)), k + 1, 1, 1, {}};
      if (k > 0) part.after.push_back(own + k - 1);
      if (k > stages) part.after.push_back(own + stage);
      parts.push_back(part);
    }
  return parts;
}

TEST_CASE("placing: stages run one forward and one backward pass in turn") {
  for (int stages : {2, 3, 4}) {
    std::vector<OrderedPart> parts = passes(stages, 8);
    PartOrder made = order_parts(parts);
    for (int stage = 0; stage < stages; ++stage) {
      std::string text;
      for (int p : made.order)
        if (parts[static_cast<size_t>(p)].device.index == stage)
          text += p % (2 * stages) < stages ? 'F' : 'B';
      int open = 0, most = 0;
      for (char pass : text) most = std::max(most, open += pass == 'F' ? 1 : -1);
      CHECK(most == stages - stage);
      std::string expected(static_cast<size_t>(stages - stage), 'F');
      for (int m = stages - stage; m < 8; ++m) expected += "BF";
      CHECK(text == expected + std::string(static_cast<size_t>(stages - stage), 'B'));
    }
  }
}

}  // namespace tn
