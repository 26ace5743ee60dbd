#pragma once
// One GPU: its context, its memory, its stream and the work that is under way there.
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "backend/cuda/driver.h"
#include "backend/cuda/gpu_progress.h"
#include "plan/target.h"
#include "runtime/buffer.h"
#include "tenon/memory.h"

namespace tn::cuda {

class Gpu;

/// Memory of a GPU by sizes. What is freed is kept: plans run on one stream, so the next user's
/// work comes after that of the last. Copies that run ahead wait for the last.
class Pool {
 public:
  explicit Pool(Gpu& gpu);
  /// Takes its lock at forks for the life of the process: once construction cannot fail.
  void guard();

  /// Fails (Fault::memory) when the GPU or the limit cannot give it.
  BufferRef take(Device device, size_t bytes);
  MemoryUse use();
  void reset_peak();
  /// 0: the default. Returns the former one.
  size_t set_limit(size_t bytes);
  /// Gives the kept blocks back to the driver.
  void clear();
  /// The last work that may use the memory of a buffer that `take` has just made.
  static uint64_t last_use(const Buffer& buffer);
  /// It has no other user before work waits for this copy.
  static void set_copy(const Buffer& buffer, uint64_t number);
  /// Sizes are rounded up, by an eighth at most.
  static size_t class_of(size_t bytes);

 private:
  struct Block;
  static void give_back(void* block);
  Block* find(size_t bytes);
  Result allocate(size_t bytes, Address& at);
  size_t limit();

  Gpu& gpu_;
  mutable std::mutex mutex_;
  std::map<size_t, std::vector<Block*>> kept_;  // by capacity
  size_t active_ = 0, peak_ = 0, kept_bytes_ = 0;
  size_t limit_ = 0, default_limit_ = 0;
};

/// Pinned memory that copies go through, in pieces that are used again. A piece belongs to the copy
/// that has taken it: nobody waits with a lock, since the user's handlers may run while one waits,
/// and copy themselves.
class Staging {
 public:
  static constexpr size_t kPieceBytes = size_t{4} << 20, kUsualPieces = 4;
  explicit Staging(Gpu& gpu) : gpu_(gpu) {}
  void guard();

  /// Gives itself back.
  class Piece {
   public:
    Piece(Staging& from, char* memory, uint64_t user) : at(memory), work(user), from_(&from) {}
    Piece(Piece&& other) noexcept
        : at(other.at), work(other.work), from_(std::exchange(other.from_, nullptr)) {}
    ~Piece() {
      if (from_) from_->give_back(at, work);
    }
    char* at;
    uint64_t work;  // that uses it

   private:
    Staging* from_;
  };
  /// One that no work uses any more.
  Piece take();

 private:
  void give_back(char* at, uint64_t work);

  Gpu& gpu_;
  std::mutex mutex_;
  std::deque<std::pair<char*, uint64_t>> free_;  // with the work that uses each; the oldest first
  size_t pieces_ = 0;
};

class Gpu {
 public:
  /// Fails where the context cannot be made.
  Gpu(const Driver& table, int index);

  const Driver& driver;
  const int index;
  std::string name;
  Target target;
  int multiprocessors = 0;
  int threads_of_each = 0, registers_of_each = 0, shared_bytes_of_each = 0;  // multiprocessor
  size_t total_bytes = 0;
  Stream stream = nullptr, capturing = nullptr;  // the second records library calls only
  Stream copying = nullptr;                      // of copies that run ahead
  Pool pool{*this};

  /// Makes its context the one of this thread.
  void enter() const;
  /// Fails in a child of fork: the context is its parent's.
  void require_own_process() const;
  bool is_own_process() const;

  /// Submits work: `submit` calls the driver with this stream, while no other thread does. Returns
  /// the number of the work. `what` names it for errors; it is called when one is reported.
  /// At most kMostAhead are under way.
  uint64_t give(const std::function<void(Stream)>& submit, std::function<std::string()> what);
  /// Until work is done. Throws InternalError when the GPU has failed.
  void wait(uint64_t number);
  void wait_for_all();
  /// The newest work that is known to be done.
  uint64_t done() const { return work_.done(); }
  /// The newest that was submitted.
  uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  /// Whether it is known that work, or a copy, is done.
  bool is_done(uint64_t number) const {
    return number & kCopyBit ? copying_.done() >= copy_of(number) : done() >= number;
  }

  /// Copies through pinned memory. To the GPU: the host's memory may change when it returns.
  uint64_t copy_in(Address to, const void* from, size_t bytes);
  void copy_out(void* to, Address from, size_t bytes);
  uint64_t copy_within(Address to, Address from, size_t bytes);
  /// To the GPU on a stream of its own, beside work that is under way, into memory that work `used`
  /// was the last to use. What reads it must `join` the copy, whose number it returns.
  uint64_t copy_ahead(Address to, const void* from, size_t bytes, uint64_t used);
  /// Makes work that is submitted from now on wait for such a copy. Nothing for other numbers.
  void join(uint64_t number);
  bool has_joined(uint64_t number) const {
    if (!(number & kCopyBit)) return true;
    return joined_.load(std::memory_order_acquire) >= copy_of(number) || is_done(number);
  }

  /// Makes what others put on their stream from now on wait for all work so far.
  void lend(Stream other);
  /// Makes work that is submitted from now on wait for what is on a stream of others.
  void follow(Stream other);
  /// Calls `release(owner)` when all work so far is done: now, or in a later call.
  void release_later(void* owner, void (*release)(void*));

  static constexpr size_t kMostAhead = 64;
  static constexpr uint64_t kCopyBit = uint64_t{1} << 63;  // of the numbers of copies
  static constexpr uint64_t kAllWork = UINT64_MAX;

 private:
  struct Work {
    uint64_t number;
    std::function<std::string()> what;
  };
  void set(Address to, const void* value, size_t bytes, Stream on) const;
  void mark();
  void mark_for(uint64_t number);
  std::list<Work> take_done();
  static uint64_t copy_of(uint64_t number) { return number & ~kCopyBit; }
  void make_copies_wait(uint64_t used);
  void make_wait_for_all(Stream other);
  void require_running(const Progress& progress);
  [[noreturn]] void fail_broken(Result result);
  void release_done();

  Context context_ = nullptr;
  int generation_;
  Progress work_, copying_;  // of the two streams
  std::mutex mutex_;         // of what follows, and of the streams
  std::list<Work> under_way_;
  uint64_t given_ = Progress::kFirst;                // the last that was submitted
  std::atomic<uint64_t> marked_ = Progress::kFirst;  // the last behind which there is a mark
  std::chrono::steady_clock::time_point last_mark_{};
  std::atomic<uint64_t> submitted_ = Progress::kFirst;
  uint64_t copies_ = Progress::kFirst;  // the last that was submitted
  std::atomic<uint64_t> joined_ = Progress::kFirst;
  std::string broken_;  // what all use of it reports from now on
  Staging staging_{*this};
  /// Memory of others that work under way uses.
  struct Borrowed {
    uint64_t number;  // of the last work
    void* owner;
    void (*release)(void*);
  };
  std::deque<Borrowed> borrowed_;
  std::atomic<size_t> borrowed_count_ = 0;
};

}  // namespace tn::cuda
