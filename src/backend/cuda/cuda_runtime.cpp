#include "backend/cuda/cuda_runtime.h"

#include <cstdlib>
#include <cstring>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_library.h"
#include "backend/cuda/plan_run.h"
#include "backend/launcher.h"
#include "base/at_fork.h"
#include "base/error.h"
#include "base/stack_array.h"

namespace tn::cuda {
namespace {

Address address_of(const Bound& value) {
  return reinterpret_cast<Address>(value.buffer->address) + static_cast<Address>(value.offset);
}

char* device_bytes(const Buffer& buffer) { return static_cast<char*>(buffer.address); }

class CudaRuntime final : public DeviceRuntime {
 public:
  CudaRuntime() { guarded_at_fork(mutex_, kInnermost - 5); }

  std::string_view kind() const override { return "cuda"; }
  int count() const override { return std::min(driver_of_machine().devices, kMostGpus); }
  std::string why_none() const override { return driver_of_machine().fault; }
  Target target(Device device) const override {
    return target_of_device(*driver_of_machine().table, device.index);
  }

  BufferRef allocate(Device device, size_t bytes) override {
    return gpu(device).pool.take(device, bytes);
  }

  void copy(const Bound& from, const Bound& to, size_t bytes) override {
    if (!to.buffer->device.is_host()) {
      Gpu& its = gpu(to.buffer->device);
      const char* host = device_bytes(*from.buffer) + from.offset;
      if (bytes < kCopiedAhead) {
        to.buffer->ready = bytes ? its.copy_in(address_of(to), host, bytes) : 0;
        return;
      }
      to.buffer->ready = its.copy_ahead(address_of(to), host, bytes, Pool::last_use(*to.buffer));
      Pool::set_copy(*to.buffer, to.buffer->ready);
      return;
    }
    if (bytes == 0) return;
    Gpu& its = gpu(from.buffer->device);
    its.join(from.buffer->ready);
    its.copy_out(to.buffer.data<char>() + to.offset, address_of(from), bytes);
  }

  void wait(const Buffer& buffer) override { gpu(buffer.device).wait(buffer.ready); }
  void synchronize() override {
    for (auto& made : gpus_)
      if (Gpu* its = made.load()) its->wait_for_all();
  }

  MemoryUse memory(Device device) override { return gpu(device).pool.use(); }
  size_t set_memory_limit(Device device, size_t bytes) override {
    return gpu(device).pool.set_limit(bytes);
  }
  void reset_peak_memory(Device device) override { gpu(device).pool.reset_peak(); }
  void clear_cache(Device device) override { gpu(device).pool.clear(); }

  bool claims(const OpDef& op, Types in) const override {
    return cuda::library_kernel(op, in, backend().here());
  }

  void run(const std::shared_ptr<const PlacedPlan>& placed, std::span<const Bound> inputs,
           const Scalar* scalars, std::span<Bound> outputs, bool* overwritten) override {
    const Plan& plan = *placed->plan;
    RunEvents events(plan);
    Gpu& its = gpu(placed->device);
    std::shared_ptr<PlanState> kept = state_of(its, *placed);
    PlanState& state = *kept;
    StackArray<BufferRef, 8> blocks(plan.blocks.size());
    take_blocks(plan, placed->device, inputs, blocks.data());  // before others hold inputs
    StackArray<Bound, 16> in(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {  // single values of the host travel
      Bound there = copy_to(placed->device, inputs[i], plan.bytes_given(i));
      its.join(there.buffer->ready);
      in[i] = aligned(its, std::move(there), plan.bytes_given(i));
    }
    BufferRef room;
    if (state.room_bytes() > 0)
      room = tn::allocate(static_cast<size_t>(state.room_bytes()), placed->device);
    RunMemory memory{plan, in.all(), placed->constants, blocks.data()};
    StackArray<void*, 64> address(memory.size());
    memory.find(address.data(), device_bytes);
    RunValues values{address.data(), scalars, room ? address_of({room, 0}) : 0};
    uint64_t number = PlanRun{its, placed, state, memory, values}.run(overwritten);
    for (const BufferRef& block : blocks.all()) block->ready = number;
    give_results(memory, outputs);
    state.count_run();
  }

  Gpu& gpu(Device device) {
    std::atomic<Gpu*>& slot = gpus_[device.index];
    if (Gpu* made = slot.load(std::memory_order_acquire)) return *made;
    std::lock_guard lock(mutex_);
    if (Gpu* made = slot.load()) return *made;
    const LoadedDriver& machine = driver_of_machine();
    if (!machine.table) fail("cuda: {}", machine.fault);
    auto* made = new Gpu(*machine.table, device.index);  // for the life of the process
    slot.store(made, std::memory_order_release);
    return *made;
  }

  void forget() {
    std::lock_guard lock(mutex_);
    for (auto& slot : gpus_)
      if (Gpu* former = slot.exchange(nullptr)) forgotten_.push_back(former);
  }

 private:
  static constexpr int kMostGpus = 16;
  /// Bytes from which on a copy to a GPU has a stream of its own. `to` is new memory.
  static constexpr size_t kCopiedAhead = 64 << 10;

  /// Kernels read 16 bytes at once: a part of a tensor that begins in between is copied.
  Bound aligned(Gpu& its, Bound value, size_t bytes) {
    if (address_of(value) % 16 == 0) return value;
    Bound made{tn::allocate(bytes, value.buffer->device), 0};
    made.buffer->ready = its.copy_within(address_of(made), address_of(value), bytes);
    return made;
  }

  /// Made anew when kernels have been compiled. Other threads may still run what was there.
  std::shared_ptr<PlanState> state_of(Gpu& its, const PlacedPlan& placed) {
    std::lock_guard lock(states_);
    auto known = std::static_pointer_cast<PlanState>(placed.state);
    bool is_own = known && &known->gpu() == &its;  // caches outlive GPUs that tests forget
    if (!is_own || known->is_outdated()) {
      for (const Bound& value : placed.constants)
        if (!value.is_absent()) its.join(value.buffer->ready);
      placed.state = std::make_shared<PlanState>(its, placed);
    }
    return std::static_pointer_cast<PlanState>(placed.state);
  }

  std::mutex mutex_;
  std::atomic<Gpu*> gpus_[kMostGpus] = {};
  std::vector<Gpu*> forgotten_;  // buffers and plans refer to them
  std::mutex states_;            // of plans; taken before those of memory and modules
};

CudaRuntime& only_runtime() {
  static auto& only = *new CudaRuntime;
  return only;
}

}  // namespace

DeviceRuntime& runtime() { return only_runtime(); }
Gpu& gpu_of(Device device) { return only_runtime().gpu(device); }
void forget_gpus() { only_runtime().forget(); }

}  // namespace tn::cuda
