// Random numbers on the C++ side: keys, the state, draws under transforms.
#include <doctest/doctest.h>

#include <thread>

#include "tenon/tenon.h"

using namespace tn;

static std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

TEST_CASE("equal keys give equal numbers, split ones do not") {
  Tensor key = random::key(42);
  CHECK(random::bits({3}, DType::u32, key).to_vector<uint32_t>() ==
        std::vector<uint32_t>{2098992034, 2919706841, 2646866425});
  Tensors keys = unstack(random::split(key));
  CHECK(values(random::normal({4}, 0.0, 1.0, DType::f32, key)) ==
        values(random::normal({4}, 0.0, 1.0, DType::f32, key)));
  CHECK(values(random::uniform({4}, 0.0, 1.0, DType::f32, keys[0])) !=
        values(random::uniform({4}, 0.0, 1.0, DType::f32, keys[1])));
}

TEST_CASE("draws without a key split the state of the thread") {
  random::seed(5);
  Tensor first = random::uniform({3});
  Tensors keys = unstack(random::split(random::key(5)));
  CHECK(values(first) == values(random::uniform({3}, 0.0, 1.0, DType::f32, keys[1])));
  CHECK(random::state().to_vector<uint32_t>() == keys[0].to_vector<uint32_t>());
  std::thread([] { random::seed(0); }).join();
  CHECK(random::state().to_vector<uint32_t>() == keys[0].to_vector<uint32_t>());
}

TEST_CASE("a gradient through a draw") {
  auto f = [](const Tensors& x) {
    return Tensors{sum(random::normal({8}, x[0], x[1], DType::f32, random::key(1)))};
  };
  Tensors g = grad(f)({Tensor(1.0f), Tensor(2.0f)});
  Tensor noise = random::normal({8}, 0.0, 1.0, DType::f32, random::key(1));
  CHECK(g[0].item<float>() == 8);
  CHECK(g[1].item<float>() == doctest::Approx(sum(noise).item<float>()));
}

TEST_CASE("mapped over keys, each example is the single draw") {
  Tensor keys = random::split(random::key(0), {3});
  auto f = [](const Tensors& k) { return Tensors{random::gamma(2.5, Shape{4}, DType::f32, k[0])}; };
  std::vector<float> alone;
  for (const Tensor& key : unstack(keys))
    for (float x : values(f({key})[0])) alone.push_back(x);
  CHECK(values(vmap(f)({keys})[0]) == alone);
}
