#pragma once
// Kernels run by the interpreter and by generated code, on the same random elements.
#include <doctest/doctest.h>

#include "backend/cpu/codegen/codegen.h"
#include "loop/interpreter.h"
#include "random_kernel.h"

namespace tn {

/// Every target this machine can run, by level and vector width.
inline std::vector<cpu::CodeTarget> native_targets() {
  std::vector<cpu::CodeTarget> targets{{CpuLevel::v2, 128}};
  if (best_cpu_level() >= CpuLevel::v3)
    targets.insert(targets.end(), {{CpuLevel::v3, 128}, {CpuLevel::v3, 256}});
  if (best_cpu_level() >= CpuLevel::v4) targets.push_back({CpuLevel::v4, 512});
  return targets;
}

/// What the interpreter and the code make of the same random elements, compared.
inline void compare(const loop::Kernel& kernel, const KernelCode& code,
                    std::span<const Binding> sizes, uint32_t seed,
                    const std::vector<Scalar>& arguments = {}, int64_t below = 0) {
  loop::RandomBuffers expected(kernel, seed, below, sizes), got(kernel, seed, below, sizes);
  loop::run(*loop::prepare(kernel, sizes), expected.pointers.data(), arguments.data());
  run(cpu::native_of(*code.bind(sizes)), got.pointers.data(), arguments.data(), true);
  std::string difference = loop::first_difference(kernel, expected, got);
  if (difference == "") return;
  std::string at;
  for (const Binding& b : sizes) at += format("{}={} ", b.symbol, b.value);
  CAPTURE(loop::to_text(kernel));
  CAPTURE(at);
  CHECK(difference == "");
}

/// Whether there is native code; its results are compared with the interpreter's.
inline bool agrees(const loop::Kernel& kernel, const cpu::CodeTarget& target, uint32_t seed = 1,
                   const std::vector<Scalar>& arguments = {}, int64_t below = 0) {
  KernelRequest request{&kernel};
  std::shared_ptr<const KernelCode> code = cpu::compile_kernels({&request, 1}, target)[0];
  if (!code) return false;
  CAPTURE(static_cast<int>(target.level));
  CAPTURE(target.vector_bits);
  compare(kernel, *code, {}, seed, arguments, below);
  return true;
}

}  // namespace tn
