#pragma once
// Kernels run by the interpreter and by generated code, on the same random elements.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cpu/codegen.h"
#include "loop/interpreter.h"

namespace tn {

using Bytes = std::vector<std::byte>;

/// Small numbers of the buffer's type, floats with an occasional special one where `special`.
inline Bytes random_elements(DType type, int64_t count, uint64_t seed, bool special = false) {
  std::mt19937_64 random(seed);
  Bytes bytes(static_cast<size_t>(count * size_of(type)) + 64);
  auto put = [&](int64_t i, auto x) {
    std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof x), &x, sizeof x);
  };
  for (int64_t i = 0; i < count; ++i) {
    double x = std::uniform_real_distribution(-4.0, 4.0)(random);
    if (special && random() % 17 == 0) {
      static constexpr double kSpecial[] = {0.0,   -0.0,     1e30,      -1e30,
                                            1e-40, INFINITY, -INFINITY, NAN};
      x = kSpecial[random() % 8];
    }
    if (type == DType::f32)
      put(i, static_cast<float>(x));
    else if (type == DType::f64)
      put(i, x);
    else if (type == DType::b1)
      put(i, static_cast<uint8_t>(random() & 1));
    else if (size_of(type) == 8)
      put(i, special ? static_cast<int64_t>(random()) : static_cast<int64_t>(random() % 9) - 4);
    else if (size_of(type) == 4)
      put(i, special ? static_cast<int32_t>(random()) : static_cast<int32_t>(random() % 9) - 4);
    else if (size_of(type) == 2)
      put(i, static_cast<uint16_t>(random()));
    else
      put(i, static_cast<uint8_t>(random()));
  }
  return bytes;
}

/// The first element that differs, -1 for none. NaNs are equal.
inline int64_t first_difference(DType type, const Bytes& a, const Bytes& b, int64_t count) {
  int64_t size = size_of(type);
  for (int64_t i = 0; i < count; ++i) {
    const std::byte *x = a.data() + i * size, *y = b.data() + i * size;
    if (std::memcmp(x, y, static_cast<size_t>(size)) == 0) continue;
    auto is_nan = [&](const std::byte* at) {
      float f = 0;
      double d = 0;
      uint16_t h = 0;
      std::memcpy(&f, at, std::min<size_t>(4, static_cast<size_t>(size)));
      if (type == DType::f32) return f != f;
      if (type == DType::f64) return std::memcpy(&d, at, 8), d != d;
      std::memcpy(&h, at, std::min<size_t>(2, static_cast<size_t>(size)));
      if (type == DType::f16) return (h & 0x7fff) > 0x7c00;
      if (type == DType::bf16) return (h & 0x7fff) > 0x7f80;
      return false;
    };
    if (is_nan(x) && is_nan(y)) continue;
    return i;
  }
  return -1;
}

/// Whether there is native code; its results are compared with the interpreter's.
inline bool agrees(const loop::Kernel& kernel, const cpu::Target& target, uint64_t seed = 1,
                   bool special = false, const std::vector<Scalar>& arguments = {}) {
  cpu::KernelRequest request{&kernel};
  auto native = cpu::compile_kernels({&request, 1}, target)[0];
  if (!native) return false;
  std::vector<Bytes> expected, got;
  for (size_t k = 0; k < kernel.buffers.size(); ++k)
    expected.push_back(random_elements(kernel.buffers[k].type, kernel.buffers[k].size.value(),
                                       seed * 100 + k, special));
  got = expected;
  std::vector<void*> at, native_at;
  for (size_t k = 0; k < expected.size(); ++k) {
    at.push_back(expected[k].data());
    native_at.push_back(got[k].data());
  }
  loop::run(*loop::prepare(kernel), at.data(), arguments.data());
  run(*native, native_at.data(), arguments.data(), true);
  for (size_t k = 0; k < expected.size(); ++k) {
    const loop::BufferParam& buffer = kernel.buffers[k];
    int64_t bad = first_difference(buffer.type, expected[k], got[k], buffer.size.value());
    if (bad < 0) continue;
    INFO(loop::to_text(kernel));
    CAPTURE(buffer.name);
    CAPTURE(target.vector_bits);
    CAPTURE(bad);
    CHECK(bad == -1);
    break;
  }
  return true;
}

/// Every target this machine can run, by level and vector width.
inline std::vector<cpu::Target> native_targets() {
  std::vector<cpu::Target> targets{{CpuLevel::v2, 128}};
  if (best_cpu_level() >= CpuLevel::v3)
    targets.insert(targets.end(), {{CpuLevel::v3, 128}, {CpuLevel::v3, 256}});
  if (best_cpu_level() >= CpuLevel::v4) targets.insert(targets.end(), {{CpuLevel::v4, 512}});
  return targets;
}

}  // namespace tn
