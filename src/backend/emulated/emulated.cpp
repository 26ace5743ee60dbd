// Devices that only tests have: memory that the host cannot read, and work that is done later, on a
// thread of the device, with delays. What runs there is what the CPU runs.
//
//     TENON_EMULATED_DEVICES=2    so many of them: "emu:0", "emu:1"
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "backend/launcher.h"
#include "base/at_fork.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "ops/index_bounds.h"
#include "ops/op_decls.h"
#include "plan/run_places.h"
#include "runtime/device.h"
#include "tenon/callback.h"

namespace tn {
namespace {

/// An address of the device is not one of the host: using it ends the process.
constexpr uintptr_t kForeign = uintptr_t{1} << 62;
char* as_foreign(char* host) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(host) | kForeign);
}
char* to_host(const Buffer& buffer) {
  auto address = reinterpret_cast<uintptr_t>(buffer.address);
  return reinterpret_cast<char*>(address & ~kForeign);
}

/// The work of one device, in order.
class Stream {
 public:
  Stream() { guarded_at_fork(mutex_, kInnermost); }
  ~Stream() {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  /// The number of the work, which fails if one of `needed` did.
  uint64_t give(std::vector<uint64_t> needed, Callback<void()> work) {
    std::unique_lock lock(mutex_);
    start();
    wait_or_stop(changed_, lock, [&] { return work_.size() < kMostAhead; });
    work_.push_back({std::move(needed), std::move(work)});
    changed_.notify_all();
    return ++given_;
  }

  void wait(uint64_t number) {
    std::unique_lock lock(mutex_);
    if (done_ < number) start();
    wait_or_stop(changed_, lock, [&] { return done_ >= number; });
    if (auto at = failed_.find(number); at != failed_.end()) {
      if (untold_ == at->second) untold_ = nullptr;
      std::rethrow_exception(at->second);
    }
  }

  /// Throws the first error that was not reported yet.
  void wait_for_all() {
    std::unique_lock lock(mutex_);
    if (done_ < given_) start();
    wait_or_stop(changed_, lock, [&, number = given_] { return done_ >= number; });
    if (std::exception_ptr error = std::exchange(untold_, nullptr)) std::rethrow_exception(error);
  }

  /// The child has no thread, and what its parent's was at is in an unknown state.
  void reset_in_child() {
    new (&thread_) std::thread;
    new (&changed_) std::condition_variable;
    new (&work_) std::deque<Work>;
  }

 private:
  struct Work {
    std::vector<uint64_t> needed;
    Callback<void()> run;
  };
  static constexpr size_t kMostAhead = 64;  // work holds memory until it is done

  void start() {
    if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  }

  void serve() {
    stop_wanted = &ends_;
    std::minstd_rand random(17);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ends_ || !work_.empty(); });
      if (work_.empty()) return;
      Work& work = work_.front();
      std::exception_ptr error;
      for (uint64_t number : work.needed)
        if (auto at = failed_.find(number); at != failed_.end()) error = at->second;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      try {
        if (!error && work.run) work.run();
      } catch (...) {
        error = std::current_exception();
      }
      work.run = nullptr;  // releases memory before the result is published
      lock.lock();
      work_.pop_front();
      if (error) failed_[done_ + 1] = error;
      if (!untold_) untold_ = error;
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;  // the first is under way
  std::map<uint64_t, std::exception_ptr> failed_;
  std::exception_ptr untold_;  // of failed work that no thread has waited for
  uint64_t given_ = 0, done_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

class Emulated : public DeviceRuntime {
 public:
  explicit Emulated(int count) : streams_(static_cast<size_t>(count)) {}

  std::string_view kind() const override { return "emu"; }
  int count() const override { return static_cast<int>(streams_.size()); }
  Target target(Device) const override { return host_target(); }

  BufferRef allocate(Device device, size_t bytes) override {
    auto memory = std::make_unique<BufferRef>(tn::allocate(std::max<size_t>(bytes, 16)));
    char* at = as_foreign(memory->data<char>());
    auto release = [](void* owner) { delete static_cast<BufferRef*>(owner); };
    BufferRef made = adopt(at, std::max<size_t>(bytes, 16), memory.release(), release, false);
    made->bytes = bytes;
    made->device = device;
    return made;
  }

  void copy(const Bound& from, const Bound& to, size_t bytes) override {
    const Buffer& there = from.buffer->device.is_host() ? *to.buffer : *from.buffer;
    Stream& stream = stream_of(there.device);
    uint64_t number = stream.give(needed({&from, 1}), [=] {
      if (bytes)
        std::memcpy(to_host(*to.buffer) + to.offset, to_host(*from.buffer) + from.offset, bytes);
    });
    if (to.buffer->device.is_host())
      stream.wait(number);
    else
      to.buffer->ready = number;
  }

  void synchronize() override {
    for (Stream& stream : streams_) stream.wait_for_all();
  }
  void wait(const Buffer& buffer) override { stream_of(buffer.device).wait(buffer.ready); }

  void run(const std::shared_ptr<const PlacedPlan>& placed, std::span<const Bound> inputs,
           const Scalar* scalars, std::span<Bound> outputs, bool*) override {
    const Plan& plan = *placed->plan;
    std::vector<BufferRef> blocks(plan.blocks.size());
    take_blocks(plan, placed->device, inputs, blocks.data());  // before others hold donated inputs
    std::vector<Bound> in;
    for (size_t i = 0; i < inputs.size(); ++i)  // single values of the host travel
      in.push_back(copy_to(placed->device, inputs[i], plan.bytes_given(i)));
    std::vector<BufferRef> given_blocks = blocks;
    give_results({plan, in, placed->constants, given_blocks.data()}, outputs);
    std::vector<uint64_t> numbers = needed(in);
    std::vector<Scalar> given(scalars, scalars + plan.scalars);
    auto work = [=, checked = ops::indices_are_checked, places = run_places]() mutable {
      ops::indices_are_checked = checked;
      RunPlacesScope recorded(std::move(places));
      const Step* at = nullptr;
      try {
        RunMemory memory{*placed->plan, in, placed->constants, blocks.data()};
        std::vector<void*> address(memory.size());
        memory.find(address.data(), to_host);
        run_steps(memory, address.data(), given.data(), nullptr, &at);
      } catch (const UserError&) {
        if (at) throw_with_place(*placed->plan, *at);
        throw;
      }
    };
    uint64_t number = stream_of(placed->device).give(std::move(numbers), std::move(work));
    for (const BufferRef& block : blocks) block->ready = number;
  }

  void reset_in_child() {
    for (Stream& stream : streams_) stream.reset_in_child();
  }

  /// Sorts are left out on purpose: the host does them.
  bool claims(const OpDef& op, Types) const override {
    return &op != &ops::sort && &op != &ops::print && &op != &ops::check;
  }

 private:
  Stream& stream_of(Device device) { return streams_[device.index]; }
  static std::vector<uint64_t> needed(std::span<const Bound> values) {
    std::vector<uint64_t> numbers;
    for (const Bound& value : values)
      if (value.buffer->ready) numbers.push_back(value.buffer->ready);
    return numbers;
  }

  std::vector<Stream> streams_;
};

[[maybe_unused]] const bool kRegistered = [] {
  const char* count = std::getenv("TENON_EMULATED_DEVICES");
  int devices = count ? std::atoi(count) : 0;
  if (devices <= 0) return false;
  static Emulated emulated(std::min(devices, 8));
  register_devices(emulated);
  in_child_after_fork([] { emulated.reset_in_child(); });
  return true;
}();

}  // namespace
}  // namespace tn
