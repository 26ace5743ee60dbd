// Batches, progress and formatting in C++.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "errors.h"
#include "tenon/format.h"
#include "tenon/nn.h"
#include "tenon/tenon.h"

using namespace tn;

TEST_CASE("batches of several tensors, with progress") {
  Tensor x = reshape(arange(10.0), {5, 2}), y = arange(5);
  std::vector<int64_t> sizes, seen;
  for (auto [a, b] : progress(data::batches(x, y, 2), "train")) {
    sizes.push_back(a.dim(0));
    for (Tensor label : b) seen.push_back(label.item<int64_t>());
  }
  CHECK(sizes == std::vector<int64_t>{2, 2, 1});
  CHECK(seen == std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK(data::batches(x, 2, {.drop_last = true}).size() == 2);
}

TEST_CASE("a key decides the order of examples, another one in each epoch") {
  Tensor y = arange(100);
  std::vector<std::vector<int64_t>> epochs;
  for (Tensor batch : data::batches(y, 100, {.key = random::key(3), .epochs = 2}))
    epochs.push_back(batch.to_vector<int64_t>());
  REQUIRE(epochs.size() == 2);
  CHECK(epochs[0] != epochs[1]);
  std::vector<int64_t> again =
      (*data::batches(y, 100, {.key = random::key(3)}).begin()).to_vector<int64_t>();
  CHECK(again == epochs[0]);
  std::sort(again.begin(), again.end());
  CHECK(again == y.to_vector<int64_t>());
}

TEST_CASE("a batch by its number") {
  auto [x, y] = data::batches(arange(6), 10 * arange(6), 2).at(1);
  CHECK(x.to_vector<int64_t>() == std::vector<int64_t>{2, 3});
  CHECK(y.to_vector<int64_t>() == std::vector<int64_t>{20, 30});
  CHECK(data::batches(arange(6), 4).at(1).to_vector<int64_t>() == std::vector<int64_t>{4, 5});
}

TEST_CASE("what batches refuse") {
  CHECK(contains(error_in([] { data::batches(arange(3), arange(4), 2); }), "3 and 4 examples"));
  CHECK(contains(error_in([] { data::batches(arange(3), 0); }), "size must be 1 or more: 0"));
  CHECK(contains(error_in([] { data::batches(array(1.0), 1); }), "it is a scalar"));
  std::string error = error_in([] { data::batches(arange(3), 1, {.key = ones({2})}); });
  CHECK(contains(error, "batches: a key is u32[2]: f32[2]"));
  CHECK(contains(error, "test_typed_data.cpp"));
  auto all = data::batches(arange(4), 2);
  CHECK(contains(error_in([&] { *all.end(); }), "test_typed_data.cpp"));
  CHECK(contains(error_in([&] { all.at(2); }), "test_typed_data.cpp"));
}

TEST_CASE("tensors in format strings") {
  Tensor x = array({1.f, 2.f});
  CHECK(fmt::format("x = {}", x) == "x = tensor([1., 2.], dtype=float32)");
  CHECK(fmt::format("{} {} {}", tn::printed(x.shape()), tn::printed(x.dtype()), x.device()) ==
        "[2] float32 cpu");
}

TEST_CASE("random integers in the order of Python's arguments, and with the shape first") {
  Tensor key = random::key(0);
  CHECK(random::randint(0, 9, {3}, int64, key).to_vector<int64_t>() ==
        random::randint({3}, 0, 9, int64, key).to_vector<int64_t>());
  CHECK(random::uniform(1, 2, {3}, float32, key).to_vector<float>() ==
        random::uniform({3}, 1, 2, float32, key).to_vector<float>());
}

TEST_CASE("a model prints its tensors") {
  nn::Sequential model{nn::Linear(4, 8), nn::BatchNorm1d(8)};
  model.layers[0].as<nn::Linear>()->freeze({"bias"});
  CHECK(model.to_string() ==
        "layers.0.weight        f32[8,4]\n"
        "layers.0.bias          f32[8]  frozen\n"
        "layers.1.weight        f32[8]\n"
        "layers.1.bias          f32[8]\n"
        "layers.1.running_mean  f32[8]  buffer\n"
        "layers.1.running_var   f32[8]  buffer\n"
        "48 trainable elements");
}

TEST_CASE("a model of layers and functions, and a loss") {
  nn::Sequential model{nn::Linear(4, 8), nn::relu, nn::Linear(8, 3)};
  Tensor x = ones({5, 4}), y = zeros({5}, int64);
  Tensor loss = nn::cross_entropy(model(x), y);
  CHECK(loss.shape() == Shape{});
  nn::Sequential d =
      grad([&](const nn::Sequential& m) { return nn::cross_entropy(m(x), y); })(model);
  CHECK(d.state_dict().size() == 4);
}

TEST_CASE("batches that there are not") {
  CHECK(contains(error_in([] { data::batches(zeros({0, 2}), 4).at(0); }),
                 "batches: there is no batch 0: the last one is -1"));
  CHECK(contains(error_in([] { data::batches(arange(4), 2).at(77); }),
                 "batches: there is no batch 77: the last one is 1"));
}

TEST_CASE("a batch is split into parts of equal size") {
  std::vector<std::vector<int64_t>> parts;
  for (auto [x, y] : data::split(arange(4), arange(4), 2)) parts.push_back(y.to_vector<int64_t>());
  CHECK(parts == std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}});
  CHECK(contains(error_in([] { data::split(arange(4), 3); }),
                 "split: 4 examples do not divide into 3 parts"));
  CHECK(contains(error_in([] { data::split(arange(4), 0); }), "must be 1 or more: 0"));
}
