#pragma once
// How far a stream of a GPU is: a number that the GPU writes where the host reads it.
#include <atomic>
#include <cstdint>

#include "backend/cuda/driver.h"

namespace tn::cuda {

/// Work of a stream has ascending numbers. Behind some of it the stream writes the number into a
/// word of pinned memory. To look at it, a thread needs neither a lock nor the driver.
///
/// A kernel that fails ends its context: the word stays as it is, and only `ask` says so. So who
/// waits asks now and then.
class Progress {
 public:
  /// Of what was done before all work. Words have 32 bits, and numbers begin shortly before these
  /// overflow: no program is the first that sees it.
  static constexpr uint64_t kFirst = (uint64_t{1} << 32) - 100;

  /// `word`: 4 bytes of pinned memory.
  void begin(const Driver& table, Stream its, void* word);

  /// The newest work that is known to be done. Fewer than 2^31 are under way.
  uint64_t done() const;
  /// Lets the stream write this number when all is done that was submitted to it.
  Result mark(uint64_t number) const;
  /// Makes another stream wait for work behind which there is a mark. The driver does not know of
  /// this wait. But what it is for was submitted before it, so streams that share a queue go on.
  Result make_wait(Stream other, uint64_t number) const;
  /// What the driver knows of the stream.
  Result ask() const { return driver_->cuStreamQuery(stream_); }

 private:
  static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

  const Driver* driver_ = nullptr;
  Stream stream_ = nullptr;
  std::atomic<uint32_t>* word_ = nullptr;
  int generation_ = 0;
  mutable std::atomic<uint64_t> done_ = kFirst;  // the last that was seen, with its high bits
};

}  // namespace tn::cuda
