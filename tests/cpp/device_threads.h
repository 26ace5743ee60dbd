#pragma once
// Device code (src/backend/cuda/prebuilt) on the host: the threads of a block are coroutines that
// take turns at barriers.
#include <ucontext.h>

#include <cstring>
#include <memory>
#include <vector>

#include "backend/cuda/mock/mock_driver.h"

/// `Turn` is the structure of prebuilt/gpu_code.h, which tests include in a namespace.
template <class Turn>
class DeviceThreads {
 public:
  explicit DeviceThreads(Turn& turn) : turn_(turn) {}

  /// Runs `kernel` for all blocks. Threads take turns in one order or in the other: what differs
  /// then is a race.
  template <class Kernel>
  void run(int64_t blocks, int threads, bool backwards, Kernel kernel) {
    Job<Kernel> job{*this, kernel};
    current() = &job;
    std::vector<char> memory(kSharedBytes);
    turn_.memory = memory.data();
    turn_.wait = [] { current()->pause(); };
    stacks_.resize(static_cast<size_t>(threads));
    for (auto& stack : stacks_)
      if (!stack) stack = std::make_unique<char[]>(kStackBytes);
    contexts_.resize(static_cast<size_t>(threads));
    for (int64_t block = 0; block < blocks; ++block) {
      std::memset(memory.data(), 0xcd, memory.size());
      run_block(block, threads, backwards);
    }
  }

 private:
  struct AnyJob {
    DeviceThreads& threads;
    explicit AnyJob(DeviceThreads& all) : threads(all) {}
    virtual void start() = 0;
    void pause() { threads.pause(); }
  };
  template <class Kernel>
  struct Job : AnyJob {
    Kernel& kernel;
    Job(DeviceThreads& all, Kernel& own) : AnyJob(all), kernel(own) {}
    void start() override { kernel(); }
  };
  static AnyJob*& current() {
    static AnyJob* job = nullptr;
    return job;
  }
  static void enter() {
    AnyJob& job = *current();
    job.start();
    job.threads.done_[static_cast<size_t>(job.threads.turn_.thread)] = true;
  }

  void run_block(int64_t block, int threads, bool backwards) {
    done_.assign(static_cast<size_t>(threads), false);
    for (size_t t = 0; t < contexts_.size(); ++t) {
      getcontext(&contexts_[t]);
      contexts_[t].uc_stack.ss_sp = stacks_[t].get();
      contexts_[t].uc_stack.ss_size = kStackBytes;
      contexts_[t].uc_link = &scheduler_;
      makecontext(&contexts_[t], enter, 0);
    }
    for (bool any = true; any;) {
      any = false;
      for (int i = 0; i < threads; ++i) {
        int t = backwards ? threads - 1 - i : i;
        if (done_[static_cast<size_t>(t)]) continue;
        turn_.thread = t, turn_.block = block;
        swapcontext(&scheduler_, &contexts_[static_cast<size_t>(t)]);
        any = any || !done_[static_cast<size_t>(t)];
      }
    }
  }
  void pause() { swapcontext(&contexts_[static_cast<size_t>(turn_.thread)], &scheduler_); }

  static constexpr size_t kSharedBytes = 256 << 10, kStackBytes = 64 << 10;
  Turn& turn_;
  ucontext_t scheduler_ = {};
  std::vector<ucontext_t> contexts_;
  std::vector<std::unique_ptr<char[]>> stacks_;
  std::vector<bool> done_;
};

/// Makes a kernel one of the mock of the driver. Addresses of the mock become the host's: no other
/// word of a structure looks like one.
template <class Turn, class Params>
void add_device_kernel(const char* name, void (*kernel)(Params), Turn& turn,
                       const bool& runs_backwards) {
  static_assert(sizeof(Params) % 8 == 0);
  auto run = [kernel, &turn, &runs_backwards](const uint64_t* words, int64_t blocks,
                                              int64_t threads) {
    static DeviceThreads<Turn> all(turn);
    std::vector<uint64_t> own(words, words + sizeof(Params) / 8);
    for (uint64_t& word : own)
      if (tn::cuda::is_mock_address(word))
        word = reinterpret_cast<uint64_t>(tn::cuda::mock_memory(word));
    Params params;
    std::memcpy(&params, own.data(), sizeof params);
    all.run(blocks, static_cast<int>(threads), runs_backwards, [&] { kernel(params); });
  };
  tn::cuda::mock().kernels[name] = {sizeof(Params) / 8, run, true};
}
