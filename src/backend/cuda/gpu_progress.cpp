#include "backend/cuda/gpu_progress.h"

#include <new>

#include "base/at_fork.h"

namespace tn::cuda {

void Progress::begin(const Driver& table, Stream its, void* word) {
  driver_ = &table, stream_ = its;
  word_ = new (word) std::atomic<uint32_t>(static_cast<uint32_t>(kFirst));
  generation_ = fork_generation();
}

uint64_t Progress::done() const {
  uint64_t seen = done_.load(std::memory_order_acquire);
  if (generation_ != fork_generation()) return seen;  // the word is the parent's
  uint32_t word = word_->load(std::memory_order_acquire);
  uint32_t more = word - static_cast<uint32_t>(seen);
  if (more == 0) return seen;
  uint64_t now = seen + more;
  // Nothing is stored where another thread was faster: what this one knows may be old.
  done_.compare_exchange_strong(seen, now, std::memory_order_acq_rel);
  return now;
}

Result Progress::mark(uint64_t number) const {
  // Without a flag all writes of work before it are visible first.
  return driver_->cuStreamWriteValue32_v2(stream_, reinterpret_cast<Address>(word_),
                                          static_cast<uint32_t>(number), 0);
}

Result Progress::make_wait(Stream other, uint64_t number) const {
  return driver_->cuStreamWaitValue32_v2(other, reinterpret_cast<Address>(word_),
                                         static_cast<uint32_t>(number), kWaitGreaterOrEqual);
}

}  // namespace tn::cuda
