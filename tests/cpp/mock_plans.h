#pragma once
// Plans for the mock of the CUDA driver, whose kernels are functions of the host.
#include <doctest/doctest.h>

#include <cstring>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/mock/mock_driver.h"
#include "loop/kernel.h"
#include "plan/plan.h"

namespace tn {

using cuda::mock;

/// The mock for the time of a test.
struct WithMock {
  WithMock() { cuda::replace_driver(&cuda::mock_driver()); }
  ~WithMock() { cuda::replace_driver(nullptr); }
};

/// y = a·x + b, elementwise over f32.
inline std::shared_ptr<const cuda::CudaKernel> affine(float a, float b, int64_t n) {
  using cuda::Param;
  auto made = std::make_shared<cuda::CudaKernel>();
  made->image = std::make_shared<const cuda::KernelImage>();
  uint64_t bits_a = 0, bits_b = 0;
  std::memcpy(&bits_a, &a, 4), std::memcpy(&bits_b, &b, 4);
  auto value = [](uint64_t bits) {
    return Param{Param::Kind::value, 0, DType::i64, static_cast<int64_t>(bits)};
  };
  made->entries.push_back({"affine",
                           1,
                           32,
                           0,
                           {{Param::Kind::buffer, 0},
                            {Param::Kind::buffer, 1},
                            value(bits_a),
                            value(bits_b),
                            value(static_cast<uint64_t>(n))}});
  return made;
}

/// z = s·(x + y).
inline std::shared_ptr<const cuda::CudaKernel> scaled_sum(int64_t n) {
  using cuda::Param;
  auto made = std::make_shared<cuda::CudaKernel>();
  made->image = std::make_shared<const cuda::KernelImage>();
  made->room_bytes = 64;
  made->entries.push_back(
      {"to_room", 1, 32, 0, {{Param::Kind::room}, {Param::Kind::scalar, 0, DType::f32}}});
  made->entries.push_back({"scaled_sum",
                           1,
                           32,
                           0,
                           {{Param::Kind::buffer, 0},
                            {Param::Kind::buffer, 1},
                            {Param::Kind::buffer, 2},
                            {Param::Kind::room},
                            {Param::Kind::value, 0, DType::i64, n}}});
  made->entries.push_back({"never", 0, 32, 0, {}});
  return made;
}

inline float* floats_at(uint64_t address) {
  return static_cast<float*>(cuda::mock_memory(address));
}
inline float as_float(uint64_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline void add_mock_kernels() {
  mock().kernels["affine"] = {5, [](const uint64_t* p, int64_t, int64_t) {
                                for (uint64_t i = 0; i < p[4]; ++i)
                                  floats_at(p[1])[i] =
                                      as_float(p[2]) * floats_at(p[0])[i] + as_float(p[3]);
                              }};
  mock().kernels["to_room"] = {
      2, [](const uint64_t* p, int64_t, int64_t) { floats_at(p[0])[0] = as_float(p[1]); }};
  mock().kernels["scaled_sum"] = {
      5, [](const uint64_t* p, int64_t, int64_t) {
        for (uint64_t i = 0; i < p[4]; ++i)
          floats_at(p[2])[i] = floats_at(p[3])[0] * (floats_at(p[0])[i] + floats_at(p[1])[i]);
      }};
  mock().kernels["never"] = {0, [](const uint64_t*, int64_t, int64_t) { FAIL("it was launched"); }};
}

/// u = 2x + 1; v = 3x; w = s·(u + v); t = 5w, in the memory of u.
inline std::shared_ptr<Plan> diamond(int64_t n) {
  auto plan = std::make_shared<Plan>();
  plan->inputs = 1, plan->scalars = 1;
  plan->target = cuda::target_of(80);
  int64_t bytes = n * 4;
  plan->given_bytes = {bytes};
  plan->bytes = {bytes, bytes, bytes, bytes};
  plan->blocks = {{bytes}, {3 * 256}};
  plan->spots = {{1, 0}, {1, 256}, {1, 512}, {0, 0}};
  auto step = [&](auto code, std::vector<int32_t> buffers, std::vector<int32_t> writes,
                  const char* name) {
    Step made{.what = KernelStep{.kernel = std::make_shared<loop::Kernel>(), .code = code},
              .buffers = std::move(buffers),
              .writes = std::move(writes),
              .name = name};
    plan->steps.push_back(std::move(made));
    return &plan->steps.back();
  };
  step(affine(2, 1, n), {0, 1}, {1}, "u");
  step(affine(3, 0, n), {0, 2}, {1}, "v");
  step(scaled_sum(n), {1, 2, 3}, {2}, "w")->scalars = {0};
  step(affine(5, 0, n), {3, 1}, {1}, "t");
  step(affine(1, 0, n), {1, 4}, {1}, "copy of t");
  plan->outputs = {{4, 0}};
  return plan;
}

}  // namespace tn
