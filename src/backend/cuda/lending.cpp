#include "backend/cuda/lending.h"

#include <memory>

#include "backend/cuda/cuda_runtime.h"
#include "backend/cuda/gpu.h"
#include "runtime/device.h"

namespace tn::cuda {
namespace {

/// The driver has the same numbers for its own streams.
Stream handle_of(int64_t stream) { return reinterpret_cast<Stream>(stream); }

/// What is behind a buffer of another library.
struct Lender {
  Gpu* gpu;
  void* owner;
  void (*release)(void*);
};

void give_back(void* owner) {
  std::unique_ptr<Lender> lender(static_cast<Lender*>(owner));
  if (!lender->gpu->is_own_process()) return;  // it is the parent's
  lender->gpu->release_later(lender->owner, lender->release);
}

/// A number for what the stream was made to wait for.
uint64_t number_work_of_others(Gpu& gpu) {
  return gpu.give([](Stream) {}, [] { return "work of another library"; });
}

Address address_of(const Buffer& buffer) { return reinterpret_cast<Address>(buffer.address); }

}  // namespace

int64_t stream_of(Device device) {
  usable_runtime(device);
  return reinterpret_cast<int64_t>(gpu_of(device).stream);
}

void* lend(const Bound& value, int64_t stream) {
  const Buffer& buffer = *value.buffer;
  usable_runtime(buffer.device);
  Gpu& gpu = gpu_of(buffer.device);
  gpu.join(buffer.ready);
  if (stream != kNoStream) gpu.lend(handle_of(stream));
  return static_cast<char*>(buffer.address) + value.offset;
}

void lend(Device device, int64_t stream) {
  usable_runtime(device);
  gpu_of(device).lend(handle_of(stream));
}

void follow(Device device, int64_t stream) {
  usable_runtime(device);
  Gpu& gpu = gpu_of(device);
  gpu.follow(handle_of(stream));
  number_work_of_others(gpu);  // copies wait for it too
}

void wait_for_stream(Device device, int64_t stream) noexcept {
  try {
    Gpu& gpu = gpu_of(device);
    if (!gpu.is_own_process()) return;
    if (stream != kLegacyStream) {  // the stream of this thread is another one, or may be gone
      gpu.enter();
      gpu.driver.cuCtxSynchronize();
      return;
    }
    follow(device, stream);
  } catch (...) {  // the next call that uses the GPU reports that it has failed
  }
}

BufferRef borrow(Device device, void* address, size_t bytes, void* owner, void (*release)(void*)) {
  std::unique_ptr<void, void (*)(void*)> owned(owner, release);  // if this fails
  usable_runtime(device);
  Gpu& gpu = gpu_of(device);
  auto lender = std::make_unique<Lender>(Lender{&gpu, owner, release});
  uint64_t ready = number_work_of_others(gpu);
  (void)owned.release();
  BufferRef made = adopt(address, bytes, lender.release(), give_back, true);
  made->device = device;
  made->ready = ready;
  return made;
}

BufferRef view_of(Device device, void* address, size_t bytes) {
  if (bytes == 0) return allocate(0, device);
  BufferRef made = adopt(address, bytes, nullptr, [](void*) {}, true);
  made->device = device;
  return made;
}

BufferRef copied(const Bound& from, size_t bytes) {
  BufferRef made = allocate(bytes, from.buffer->device);
  Address at = address_of(*from.buffer) + static_cast<Address>(from.offset);
  Gpu& gpu = gpu_of(from.buffer->device);
  gpu.join(from.buffer->ready);
  made->ready = gpu.copy_within(address_of(*made), at, bytes);
  return made;
}

}  // namespace tn::cuda
