#pragma once
// Kernels run by the interpreter and by the simulation of a GPU, on the same random elements.
#include <doctest/doctest.h>

#include "backend/cuda/codegen/cuda_codegen.h"
#include "loop/interpreter.h"
#include "random_kernel.h"

namespace tn {

/// Whether every place is written by one point only.
inline bool writes_once(const loop::Kernel& kernel) {
  loop::Analysis a = loop::analyse(kernel);
  for (size_t i = 0; i < kernel.stores.size(); ++i) {
    const loop::Store& store = kernel.stores[i];
    loop::AxisSet index = loop::axes_in(kernel, store.index), axes = a.par | a.stores[i].axes;
    for (size_t k = 0; k < kernel.axes.size(); ++k)
      if (bounds(kernel.axes[k].extent).hi > 1 && axes >> k & 1 && !(index >> k & 1)) return false;
    if (store.scattered || store.combine != loop::Combine::set) return false;
    if (a.stores[i].axes & a.inner() && (a.stores[i].axes & a.inner()) != a.inner()) return false;
  }
  return true;
}

/// Compares the bits of both, for both orders of the threads.
inline void compare_simulated(const loop::Kernel& kernel, const cuda::Schedule& schedule,
                              const cuda::SimulatedKernel& code, std::span<const Binding> sizes,
                              uint32_t seed, const std::vector<Scalar>& arguments = {},
                              int64_t below = 0) {
  using Order = cuda::SimulatedKernel::Order;
  loop::RandomBuffers expected(kernel, seed, below, sizes);
  loop::run(*loop::prepare(kernel, sizes), expected.pointers.data(), arguments.data());
  for (Order order : {Order::forward, Order::backward}) {
    loop::RandomBuffers got(kernel, seed, below, sizes);
    std::vector<int64_t> bytes;
    for (const auto& data : got.data) bytes.push_back(static_cast<int64_t>(data.size()));
    std::string fault = code.run(sizes, got.pointers.data(), bytes, arguments.data(), order,
                                 writes_once(kernel) && schedule.parts.size() == 1);
    std::string difference = fault.empty() ? loop::first_difference(kernel, expected, got) : fault;
    std::string at;
    for (const Binding& b : sizes) at += format("{}={} ", b.symbol, b.value);
    INFO(loop::to_text(kernel));
    INFO(to_text(schedule));
    CAPTURE(at);
    CHECK(difference == "");
    if (!difference.empty()) return;
  }
}

inline void simulated_agrees(const loop::Kernel& kernel, uint32_t seed = 1,
                             const std::vector<Scalar>& arguments = {}, int64_t below = 0) {
  KernelRequest request{&kernel};
  cuda::Schedule schedule = cuda::make_schedule(request);
  compare_simulated(kernel, schedule, cuda::SimulatedKernel(schedule), {}, seed, arguments, below);
}

}  // namespace tn
