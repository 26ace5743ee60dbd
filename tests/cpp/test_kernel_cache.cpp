#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "backend/cpu/codegen/codegen.h"
#include "backend/cpu/kernel_bytes.h"
#include "backend/llvm/kernel_cache.h"
#include "base/error.h"
#include "loop/builder.h"

using namespace tn;
using codegen::KernelCache;

namespace {

/// y = x + n.
loop::Kernel add_kernel(int n) {
  loop::Builder b("add");
  int axis = b.add_axis(100), in = b.add_buffer("x", DType::f32, 100);
  int out = b.add_buffer("y", DType::f32, 100, true);
  loop::S x = b.load(in, b.axis(axis)), c = b.constant(Scalar(1.0 * n), DType::f32);
  b.store(out, b.axis(axis), b.binary(loop::Op::add, x, c));
  return b.finish();
}

KernelCache::Kernel some_kernel() {
  static const KernelCache::Kernel only = [] {
    loop::Kernel kernel = add_kernel(1);
    KernelRequest request{&kernel};
    return cpu::compile_kernels({&request, 1})[0];
  }();
  return only;
}

}  // namespace

TEST_CASE("kernel cache: threads that ask for the same kernels make each of them once") {
  KernelCache cache;
  constexpr size_t kKeys = 50;
  std::vector<std::string> keys;
  for (size_t k = 0; k < kKeys; ++k) keys.push_back(std::to_string(k));
  std::array<std::atomic<int>, kKeys> made{};
  KernelCounts counts[8];
  KernelCache::Kernel kernel = some_kernel();
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::string> own = keys;
      std::rotate(own.begin(), own.begin() + static_cast<long>(t * 5), own.end());
      own.push_back(own[3]);  // twice in one request
      auto make = [&](size_t i) {
        ++made[static_cast<size_t>(std::stoi(own[i]))];
        usleep(100);
        return KernelCache::Made{std::stoi(own[i]) % 2 ? kernel : nullptr, i % 3 == 0};
      };
      auto found = cache.get(own, make, &counts[t]);
      for (size_t i = 0; i < own.size(); ++i)
        if ((found[i] != nullptr) != (std::stoi(own[i]) % 2 == 1)) counts[t].compiled += 1000;
    });
  for (std::thread& thread : threads) thread.join();
  for (std::atomic<int>& count : made) CHECK(count == 1);
  KernelCounts all;
  for (const KernelCounts& c : counts) {
    all.compiled += c.compiled;
    all.from_disk += c.from_disk;
    all.from_memory += c.from_memory;
  }
  CHECK(all.from_memory == 8 * (kKeys + 1) - kKeys);
  CHECK(all.compiled + all.from_disk <= kKeys);
  CHECK(cache.stats().compiled == all.compiled);
  CHECK(cache.stats().from_disk == all.from_disk);
  CHECK(cache.stats().hits == all.from_memory);
}

TEST_CASE("kernel cache: who waits for a compilation that fails compiles itself") {
  KernelCache cache;
  std::atomic<bool> started = false;
  std::thread first([&] {
    auto make = [&](size_t) -> KernelCache::Made {
      started = true;
      usleep(20000);
      fail("interrupted");
    };
    CHECK_THROWS_AS(cache.get({"a", "b"}, make, nullptr), Error);
  });
  while (!started) std::this_thread::yield();
  int made = 0;
  auto found = cache.get(
      {"b", "a"}, [&](size_t) { return ++made, KernelCache::Made{some_kernel()}; }, nullptr);
  first.join();
  CHECK(found[0]);
  CHECK(found[1]);
  CHECK(made == 2);
}

TEST_CASE("kernel cache: bounded, the kernels used last stay") {
  KernelCache cache;
  int made = 0;
  auto ask = [&](int k) {
    cache.get({std::to_string(k)}, [&](size_t) { return ++made, KernelCache::Made{}; }, nullptr);
  };
  for (int k = 0; k < 5000; ++k) {
    ask(k);
    ask(0);
  }
  CHECK(made == 5000);
  CHECK(cache.stats().kept == 2048);
  ask(4999);
  CHECK(made == 5000);
  ask(1);
  CHECK(made == 5001);
  cache.clear();
  CHECK(cache.stats().kept == 0);
}

TEST_CASE("kernel cache: kernels survive as bytes, and damaged bytes are no kernel") {
  cpu::KernelNumbers numbers;
  numbers.symbols = {"s0"};
  numbers.units = SizeProgram(3);
  numbers.finish_units = numbers.points = numbers.scratch_bytes = numbers.bypassing_bytes =
      SizeProgram(0);
  numbers.argument_types = {DType::f64, DType::i32};
  numbers.units.steps.push_back({SizeStep::Kind::symbol, 0});
  numbers.units.steps.push_back({SizeStep::Kind::mul});
  std::string bytes = cpu::kernel_to_bytes(numbers, "not an object");
  CHECK(!cpu::kernel_from_bytes(bytes));
  for (size_t length = 0; length < bytes.size(); ++length)
    CHECK(!cpu::kernel_from_bytes(bytes.substr(0, length)));
  for (size_t at = 0; at < bytes.size(); ++at)
    for (char mask : {'\x01', '\x80', '\xff'}) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ mask);
      CHECK(!cpu::kernel_from_bytes(flipped));
    }
}
