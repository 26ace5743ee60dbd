// Copies to GPUs beside work that is under way, against a mock of the driver.
#include <algorithm>

#include "backend/cuda/cuda_runtime.h"
#include "mock_plans.h"
#include "runtime/device.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

constexpr size_t kLarge = size_t{5} << 20;  // of two pieces

/// Work that is not done for some time.
struct Busy {
  Busy() { cuda::set_mock_busy(true); }
  ~Busy() { cuda::set_mock_busy(false); }
};

Bound host_bytes(size_t bytes) {
  BufferRef made = allocate(bytes);
  for (size_t i = 0; i < bytes; ++i) made.data<char>()[i] = static_cast<char>(i * 7);
  return {std::move(made), 0};
}

bool waited(cuda::Stream stream) { return std::ranges::count(mock().waiting, stream) > 0; }

}  // namespace

TEST_CASE("cuda: large copies run ahead, and work that reads them waits once") {
  WithMock with;
  Device gpu("cuda");
  cuda::Gpu& its = cuda::gpu_of(gpu);
  its.wait_for_all();
  Bound from = host_bytes(kLarge), there;
  {
    Busy busy;
    there = copy_to(gpu, from, kLarge);
    CHECK((there.buffer->ready & cuda::Gpu::kCopyBit) != 0);
    mock().waiting.clear();
    its.join(there.buffer->ready);
    CHECK(mock().waiting == std::vector{its.stream});
    its.join(there.buffer->ready);
    CHECK(mock().waiting.size() == 1);
    CHECK_FALSE(its.is_done(there.buffer->ready));
  }
  wait_for(there);
  CHECK(its.is_done(there.buffer->ready));
  HostView back(there);
  CHECK(std::memcmp(back.data<char>(), from.buffer.data(), kLarge) == 0);
  Bound small = copy_to(gpu, host_bytes(100), 100);
  CHECK((small.buffer->ready & cuda::Gpu::kCopyBit) == 0);
}

TEST_CASE("cuda: a copy waits for the last work that used its memory") {
  WithMock with;
  Device gpu("cuda");
  cuda::Gpu& its = cuda::gpu_of(gpu);
  its.wait_for_all();
  auto give = [&] { return its.give([](cuda::Stream) {}, [] { return "work"; }); };
  BufferRef block = allocate(kLarge, gpu);
  void* address = block->address;
  block.reset();  // no work under way uses it
  mock().waiting.clear();
  Bound from = host_bytes(kLarge);
  Bound there = copy_to(gpu, from, kLarge);
  CHECK(there.buffer->address == address);
  CHECK_FALSE(waited(its.copying));
  its.join(there.buffer->ready);
  Busy busy;
  uint64_t number = give();
  there.buffer.reset();
  block = allocate(kLarge, gpu);
  CHECK(block->address == address);
  CHECK(cuda::Pool::last_use(*block) == number);
  block.reset();
  mock().waiting.clear();
  there = copy_to(gpu, from, kLarge);
  CHECK(waited(its.copying));
}

TEST_CASE("cuda: memory to which a copy is under way is not given out again") {
  WithMock with;
  Device gpu("cuda");
  cuda::Gpu& its = cuda::gpu_of(gpu);
  its.wait_for_all();
  Bound from = host_bytes(kLarge);
  void* address;
  {
    Busy busy;
    Bound there = copy_to(gpu, from, kLarge);
    address = there.buffer->address;
    there.buffer.reset();
    CHECK(allocate(kLarge, gpu)->address != address);
  }
  its.wait_for_all();
  BufferRef first = allocate(kLarge, gpu), second = allocate(kLarge, gpu);
  CHECK((first->address == address || second->address == address));
}
