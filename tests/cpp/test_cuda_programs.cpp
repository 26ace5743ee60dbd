// What products of GPUs do themselves of the kernels behind them, beside the CPU, bit for bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backend/cuda/cuda_runtime.h"
#include "backend/cuda/mock/mock_driver.h"
#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "backend/cuda/tile_choice.h"
#include "device_threads.h"
#include "eval/eval.h"
#include "runtime/device.h"
#include "tenon/tenon.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
namespace device {  // as in test_cuda_library.cpp
#include "backend/cuda/prebuilt/product_tiles.cuh"
namespace products {
#include "backend/cuda/prebuilt/product_kernels.cu"
}
}  // namespace device
#pragma GCC diagnostic pop

using namespace tn;

namespace {

bool runs_backwards = false;

/// A GPU whose kernels of products are those of the host. The kernels behind them do nothing.
struct WithProducts {
  WithProducts() {
    cuda::replace_driver(&cuda::mock_driver());
    cuda::assembles_own = false;
    cuda::mock().major = 9;
    cuda::mock().kernels["part0"] = {0, [](const uint64_t*, int64_t, int64_t) {}};
#define TN_ADD(name) add_device_kernel(#name, device::products::name, device::turn, runs_backwards);
#define TN_ADD_ALL(form)          \
  TN_ADD(product_f32_##form##_rr) \
  TN_ADD(product_f32_##form##_rk) \
  TN_ADD(product_f32_##form##_kr) \
  TN_ADD(product_f32_##form##_kk)
    TN_ADD_ALL(16)
    TN_ADD_ALL(16deep)
    TN_ADD_ALL(32)
    TN_ADD_ALL(64)
    TN_ADD_ALL(16whole)
    TN_ADD_ALL(32whole)
  }
  ~WithProducts() {
    cuda::form_of_tests = -1;
    cuda::mock().kernels.erase("part0");
    cuda::mock().major = 0;
    cuda::forget_gpus();
    clear_plans();
    cuda::replace_driver(nullptr);
    cuda::assembles_own = true;
  }
};

std::string bytes_of(const Tensor& t) {
  eval({t});
  HostView view(bound_of(t.node()->slots()[0]));
  return {view.data<char>(), static_cast<size_t>(type_of(t)->bytes())};
}

struct Behind {
  Tensor product, bias, h, p, rate;
};
using Results = Tensors (*)(const Behind& o);

/// How many kernels run behind the product of some matrices that make these results of it; their
/// bits are the CPU's where none does.
int64_t kernels_behind(Results results, int form) {
  cuda::forget_gpus();  // and what they keep of plans
  auto normal = [](const Shape& shape, int64_t seed) {
    return random::normal(shape, 0, 1, float32, random::key(seed));
  };
  Tensor h = normal({70, 37}, 3);
  h = where(h > 1, NAN, where(h < -1, -0.0, h));
  Tensors here = {normal({70, 50}, 0), normal({50, 37}, 1), normal({37}, 2), h,
                  normal({70, 37}, 4), array(0.01)};
  eval(here);
  Tensors there;
  for (const Tensor& t : here) there.push_back(t.to(Device("cuda")));
  auto f = compile([=](const Tensors& in) {
    return results({matmul(in[0], in[1]), in[2], in[3], in[4], in[5]});
  });
  cuda::form_of_tests = form;
  Tensors want = f(here);
  eval(want);
  int64_t count = 0;
  for (int run = 0; run < 3; ++run) {  // the later ones by a graph
    runs_backwards = run == 2;
    cuda::mock().log.clear();
    Tensors got = f(there);
    eval(got);
    count = std::ranges::count(cuda::mock().log, "part0");
    REQUIRE(!cuda::mock().log.empty());
    CHECK(cuda::mock().log[0].starts_with(format("product_f32_{}_", kTileForms[form].name)));
    for (size_t i = 0; i < got.size() && count == 0; ++i)
      CHECK(bytes_of(got[i].to(Device())) == bytes_of(want[i]));
  }
  return count;
}

}  // namespace

TEST_CASE("cuda programs: products do what comes after them") {
  if (cuda::product_ptx().empty()) return;
  WithProducts with;
  constexpr Results kDone[] = {
      [](const Behind& o) { return Tensors{relu(o.product + o.bias)}; },
      [](const Behind& o) { return Tensors{o.product, relu(o.product + o.bias)}; },
      [](const Behind& o) { return Tensors{where(o.h > 0, o.product, 0)}; },
      [](const Behind& o) { return Tensors{where(o.h + o.bias > 0.5, o.product, 1)}; },
      [](const Behind& o) { return Tensors{o.p - o.rate * o.product}; },
      [](const Behind& o) { return Tensors{o.p - o.rate * (o.product + o.p * 2)}; },
      [](const Behind& o) { return Tensors{(o.product - o.p) * (o.h - o.bias)}; },
  };
  constexpr Results kLeft[] = {
      [](const Behind& o) { return Tensors{exp(o.product)}; },
      [](const Behind& o) { return Tensors{o.product * (o.product + o.bias)}; },
      [](const Behind& o) { return Tensors{o.product + o.bias, relu(o.product + o.bias)}; },
      [](const Behind& o) { return Tensors{where(o.h > 0, o.product, o.p)}; },
  };
  for (int form : {0, 1, 6, 7, 8}) {
    for (Results results : kDone) CHECK(kernels_behind(results, form) == 0);
    for (Results results : kLeft) CHECK(kernels_behind(results, form) == 1);
  }
  CHECK(kernels_behind(kDone[0], 2) == 1);  // a thread has too many results
}

TEST_CASE("cuda programs: a kernel has the most shared memory that one of its sizes wants") {
  if (cuda::product_ptx().empty()) return;
  WithProducts with;
  cuda::form_of_tests = 7;
  for (int64_t k : {1000, 640, 1000}) {
    CAPTURE(k);
    Tensor x = random::normal({20, k}, 0, 1, float32, random::key(5));
    Tensor y = random::normal({k, 20}, 0, 1, float32, random::key(6));
    Device gpu("cuda");
    CHECK(bytes_of(matmul(x.to(gpu), y.to(gpu)).to(Device())) == bytes_of(matmul(x, y)));
    CHECK(std::ranges::count(cuda::mock().log, "product_f32_16whole_kr") == 1);
    cuda::mock().log.clear();
  }
}
