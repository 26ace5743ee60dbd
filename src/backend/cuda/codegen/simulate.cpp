// GPU kernels on the CPU: threads of a block are stackful coroutines on one thread of the host. A
// thread runs until it meets a barrier or an exchange; then the next one runs.
#include <ucontext.h>

#include <algorithm>
#include <unordered_set>

#include "backend/cuda/codegen/cuda_codegen.h"
#include "backend/cuda/codegen/gpu_threads.h"
#include "base/error.h"
#include "runtime/object.h"
#include "runtime/scalar_bits.h"

namespace tn::cuda {

std::string simulated_object(const Schedule& schedule, KernelNumbers& numbers);

struct SimulatedKernel::Code {
  KernelNumbers numbers;
  std::unique_ptr<const Object> object;
};

SimulatedKernel::SimulatedKernel(const Schedule& schedule) {
  auto code = std::make_unique<Code>();
  std::string bytes = simulated_object(schedule, code->numbers);
  code->object = std::make_unique<const Object>(std::as_bytes(std::span(bytes)));
  code_ = std::move(code);
}

SimulatedKernel::~SimulatedKernel() = default;

namespace {

constexpr size_t kStackBytes = 64 << 10;

struct Range {
  const std::byte *begin, *end;
};

class Block;

struct Thread : SimulatedThread {
  Block* block_of = nullptr;
  uint64_t given = 0;
  bool done = false;
  ucontext_t context;
  std::vector<std::byte> stack;
};

/// One block of threads. All of them meet at each barrier and each exchange.
class Block {
 public:
  Block(void (*body)(SimulatedThread&), const Entry& entry, const std::vector<uint64_t>& params)
      : body_(body), threads_(static_cast<size_t>(entry.threads)) {
    shared_.resize(static_cast<size_t>(entry.shared_bytes) + 16);
    void* at = shared_.data();
    size_t room = shared_.size();
    auto* shared =
        static_cast<std::byte*>(std::align(16, static_cast<size_t>(entry.shared_bytes), at, room));
    for (size_t k = 0; k < threads_.size(); ++k) {
      Thread& t = threads_[k];
      t.params = params.data(), t.shared = shared ? shared : shared_.data();
      t.barrier = [](SimulatedThread& self) { of(self).pause(self); };
      t.exchange = exchange, t.touch = touch;
      t.thread = static_cast<int32_t>(k), t.block_of = this;
      t.stack.resize(kStackBytes);
    }
  }

  void run(int32_t number, bool backward) {
    for (Thread& t : threads_) start(t, number);
    for (bool going = true; going;) {
      going = false;
      for (size_t k = 0; k < threads_.size(); ++k) {
        Thread& t = threads_[backward ? threads_.size() - 1 - k : k];
        if (t.done) continue;
        swapcontext(&here_, &t.context);
        going |= !t.done;
      }
    }
  }

  std::vector<Range> ranges;
  bool once = false;
  std::unordered_set<const std::byte*> written;
  std::string fault;

 private:
  static Block& of(SimulatedThread& t) { return *static_cast<Thread&>(t).block_of; }

  static uint64_t exchange(SimulatedThread& self, uint64_t bits, int32_t mask) {
    Block& block = of(self);
    static_cast<Thread&>(self).given = bits;
    block.pause(self);
    uint64_t other = block.threads_[static_cast<size_t>(self.thread ^ mask)].given;
    block.pause(self);
    return other;
  }

  static void touch(SimulatedThread& self, const void* address, int64_t bytes, int32_t writes) {
    Block& block = of(self);
    auto* at = static_cast<const std::byte*>(address);
    auto holds = [&](const Range& r) { return at >= r.begin && at + bytes <= r.end; };
    if (std::ranges::none_of(block.ranges, holds) && block.fault.empty())
      block.fault = format("thread {} of block {} {} outside of the buffers", self.thread,
                           self.block, writes ? "writes" : "reads");
    if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes) && block.fault.empty())
      block.fault = format("an access of {} bytes is not aligned", bytes);
    if (writes && block.once && !block.written.insert(at).second && block.fault.empty())
      block.fault =
          format("thread {} of block {} writes a place that is written", self.thread, self.block);
  }

  void pause(SimulatedThread& self) { swapcontext(&static_cast<Thread&>(self).context, &here_); }

  void start(Thread& t, int32_t number) {
    t.block = number, t.done = false;
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = t.stack.data();
    t.context.uc_stack.ss_size = t.stack.size();
    t.context.uc_link = &here_;
    auto bits = reinterpret_cast<uintptr_t>(&t);
    makecontext(&t.context, reinterpret_cast<void (*)()>(enter), 2,
                static_cast<uint32_t>(bits >> 32), static_cast<uint32_t>(bits));
  }

  static void enter(uint32_t high, uint32_t low) {
    auto& t = *reinterpret_cast<Thread*>(uintptr_t{high} << 32 | low);
    t.block_of->body_(t);
    t.done = true;
  }

  void (*body_)(SimulatedThread&);
  std::vector<Thread> threads_;
  std::vector<std::byte> shared_;
  ucontext_t here_;
};

}  // namespace

std::string SimulatedKernel::run(std::span<const Binding> sizes, void* const* buffers,
                                 std::span<const int64_t> bytes, const Scalar* scalars, Order order,
                                 bool once) const {
  std::shared_ptr<const BoundKernel> bound = KernelCode(code_->numbers, "").bind(sizes);
  const CudaKernel& kernel = cuda_kernel_of(*bound);
  std::vector<std::max_align_t> room(static_cast<size_t>(kernel.room_bytes) / 16 + 1);
  auto* room_at = reinterpret_cast<std::byte*>(room.data());
  for (const Entry& entry : kernel.entries) {
    if (entry.blocks == 0) continue;
    std::vector<uint64_t> params;
    for (const Param& param : entry.params) {
      uint64_t word = static_cast<uint64_t>(param.value);
      if (param.kind == Param::Kind::buffer)
        word = reinterpret_cast<uint64_t>(buffers[param.index]);
      if (param.kind == Param::Kind::room) word = reinterpret_cast<uint64_t>(room_at + param.value);
      if (param.kind == Param::Kind::scalar) {
        std::array<std::byte, 8> element = element_bits(scalars[param.index], param.type);
        std::memcpy(&word, element.data(), 8);
      }
      params.push_back(word);
    }
    auto body = reinterpret_cast<void (*)(SimulatedThread&)>(code_->object->find(entry.name));
    Block block(body, entry, params);
    for (size_t k = 0; k < bytes.size(); ++k) {
      auto* begin = static_cast<const std::byte*>(buffers[k]);
      block.ranges.push_back({begin, begin + bytes[k]});
    }
    block.ranges.push_back({room_at, room_at + kernel.room_bytes});
    block.once = once;
    for (int64_t k = 0; k < entry.blocks; ++k)
      block.run(static_cast<int32_t>(k), order == Order::backward);
    if (!block.fault.empty()) return format("{}: {}", entry.name, block.fault);
  }
  return "";
}

}  // namespace tn::cuda
