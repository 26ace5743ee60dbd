// Programs on a GPU beside the CPU, bit for bit. They run where TENON_TEST_CUDA is set
// (tools/test_cuda.sh), in a process that uses no mock of the driver.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tenon/tenon.h"

using namespace tn;

namespace {

bool has_gpu() {
  static const bool wanted = std::getenv("TENON_TEST_CUDA") != nullptr;
  return wanted;
}

std::vector<float> values(const Tensor& t) { return astype(t, float32).to_vector<float>(); }

bool same_bits(const Tensor& a, const Tensor& b) {
  std::vector<float> x = values(a), y = values(b);
  if (x.size() != y.size()) return false;
  if (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0) return true;
  size_t shown = 0;
  for (size_t i = 0; i < x.size() && shown < 3; ++i)
    if (std::memcmp(&x[i], &y[i], sizeof(float)) != 0)
      std::printf("  element %zu: %.9g and %.9g\n", i, static_cast<double>(x[i]),
                  static_cast<double>(y[i])),
          ++shown;
  return false;
}

using Program = Tensors (*)(const Tensors&);
struct Case {
  const char* name;
  Program run;
};

const Case kCases[] = {
    {"add", [](const Tensors& x) { return Tensors{x[0] + 1}; }},
    {"chain", [](const Tensors& x) { return Tensors{exp(-x[0]) * x[0] + sin(x[0])}; }},
    {"sums",
     [](const Tensors& x) { return Tensors{sum(x[0]), sum(x[0], Axes(0)), sum(x[0], Axes(1))}; }},
    {"max", [](const Tensors& x) { return Tensors{max(x[0], Axes(1)), max(x[0])}; }},
    {"softmax", [](const Tensors& x) { return Tensors{softmax(x[0], Axes(-1))}; }},
    {"transposed", [](const Tensors& x) { return Tensors{transpose(x[0]) * 2}; }},
    {"product", [](const Tensors& x) { return Tensors{matmul(x[0], transpose(x[0]))}; }},
    {"bfloat16", [](const Tensors& x) { return Tensors{astype(x[0], bfloat16) * 3}; }},
    {"sorted", [](const Tensors& x) { return Tensors{sort(x[0], 1)}; }},
    {"sorted places",
     [](const Tensors& x) {
       TopKResult top = top_k(floor(x[0] * 4), 3, 1);
       return Tensors{argsort(floor(x[0] * 4), 0, true), top.values, top.indices};
     }},
    {"scattered",
     [](const Tensors& x) {
       Tensor rows = astype(abs(x[0][0]) * 100, int64) % 4;
       Tensor zeros = tn::zeros({4, 3}, float32, x[0].device());
       Tensor updates = broadcast_to(expand_dims(x[0][0], Axes(1)), {x[0].shape()[1], 3});
       return Tensors{scatter(zeros, updates, {rows}, Axes(0), "add"),
                      scatter(zeros, updates, {rows}, Axes(0))};
     }},
    {"convolution",
     [](const Tensors& x) {
       Tensor wide = reshape(x[0], {1, 1, x[0].shape()[0], x[0].shape()[1]});
       auto loss = [&](const Tensors& w) { return Tensors{sum(square(conv(wide, w[0])))}; };
       Tensor w = reshape(sin(arange(0, 12, 1, float32, x[0].device())), {2, 1, 3, 2});
       return Tensors{conv(wide, w, Ints{2}, Offsets{1}), grad(loss)(Tensors{w})[0]};
     }},
    {"gradient",
     [](const Tensors& x) {
       auto loss = [](const Tensors& w) { return Tensors{sum(square(tanh(w[0])))}; };
       return Tensors{grad(loss)(x)[0]};
     }},
};

}  // namespace

TEST_CASE("gpu: programs have the bits of the CPU") {
  if (!has_gpu()) return;
  Device gpu("cuda");
  for (Shape shape : {Shape{7, 5}, Shape{64, 256}, Shape{300, 1030}, Shape{3, 20000}}) {
    Tensor x = random::normal(shape);
    Tensor there = x.to(gpu);
    for (const Case& c : kCases)
      for (bool compiled : {false, true}) {
        CAPTURE(c.name);
        CAPTURE(compiled);
        CAPTURE(shape[1].value());
        try {
          Tensors got = compiled ? compile(c.run)({there}) : c.run({there});
          Tensors want = compiled ? compile(c.run)({x}) : c.run({x});
          for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], want[i]));
        } catch (const std::exception& error) {
          FAIL_CHECK(error.what());
        }
      }
  }
}

TEST_CASE("gpu: repeated runs are graphs") {
  if (!has_gpu()) return;
  Device gpu("cuda");
  Tensor x = ones({4}, float32, gpu);
  auto f = compile([](const Tensors& in) { return Tensors{in[0] * 2 + 1}; });
  f({x})[0].eval();
  for (int i = 0; i < 2000; ++i) f({x})[0].eval();
  CHECK(f({x})[0].to_vector<float>() == std::vector<float>{3, 3, 3, 3});
}

TEST_CASE("gpu: lack of memory is an error, and work goes on") {
  if (!has_gpu()) return;
  Device gpu("cuda");
  CHECK_THROWS_AS(ones({int64_t{1} << 40}, float32, gpu).eval(), UserError);
  CHECK(sum(ones({1000}, float32, gpu)).item<double>() == 1000);
}
