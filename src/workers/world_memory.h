#pragma once
// The memory in which the workers of one machine meet: what each of them is doing, and room for the
// data that they exchange. Processes share it through a file without a name (memfd), threads
// through a pointer.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/transport.h"

namespace tn::workers {

inline constexpr int kMostWorkers = 256;
inline constexpr int64_t kSlotBytes = int64_t{1} << 20;
inline constexpr int64_t kChannelBytes = int64_t{64} << 10;

/// What a worker sends or expects.
struct DataKind {
  int64_t count;
  uint8_t element;
  CallShape shape;
  uint64_t run;
  uint64_t ops;  // of a message: by which its value was made; 0: it is not known
  friend bool operator==(const DataKind&, const DataKind&) = default;
};
DataKind data_of(const CollectiveCall& call);
/// "float32[2, 3]", or "6 elements of type float32"
std::string text_of(const DataKind& data);

/// A call as the other workers see it. They compare it with their own.
struct PublishedCall {
  uint64_t number;  // of the worker's calls
  DataKind data;
  int32_t peer;
  uint8_t kind, fold;
  Origin origin;  // without its line; ops 0: it is not known
  char place[104];
};

inline constexpr size_t kShownValues = 32;

/// What one worker writes and all read.
struct WorkerRecord {
  alignas(128) std::atomic<uint32_t> arrived = 0;  // phases of collectives that it has reached
  std::atomic<uint32_t> sleepers = 0;              // workers that wait for `arrived` to grow
  uint64_t digests[2] = {};                        // of `calls`: others compare these first
  // What others read only when something is wrong has lines of its own.
  alignas(128) std::atomic<uint32_t> busy = 0;  // 1: in a collective, 2: a message, 3: in_group
  std::atomic<uint32_t> ended = 0;              // its process has ended
  std::atomic<int32_t> process = 0;             // where workers watch each other: its id
  std::atomic<uint32_t> beats = 0;              // there: grows while the process runs
  PublishedCall calls[2];             // the current one and the one before, by parity of the number
  PublishedCall message;              // the last one to or from one other worker
  uint64_t given[kShownValues] = {};  // hashes of the first values that the current call was given
  PublishedCall in_group;             // of the world: the last collective of a smaller group
  std::atomic<uint32_t> is_in_group = 0;  // that was the last of all
  // Of the world:
  int32_t number = 0;                 // of the worker, among those of all machines
  std::atomic<uint32_t> threads = 0;  // of the process that have made calls
  std::atomic<uint64_t> waits = 0;    // for whom it waits: see circular_waits.h
};

/// Whether two workers do the same with a value that is made alike, whatever the number of the call
/// and what the value was made from.
bool is_same_call(const PublishedCall& a, const PublishedCall& b);
/// A hash of what is compared, never 0.
uint64_t digest_of(const CollectiveCall& call);
/// "all_reduce #3 of float32[2, 3] (train.py:31)"
std::string text_of(const PublishedCall& call);
/// What a worker is doing, as the end of a sentence: " in …", " after …", or "".
std::string whereabouts(const WorkerRecord& record);

/// One direction between two workers. Pieces are numbered; the room has space for two.
struct Channel {
  alignas(128) std::atomic<uint32_t> written = 0, read = 0;
  std::atomic<uint32_t> sleepers = 0;
  DataKind about[2];  // the whole message that a piece belongs to
  alignas(128) std::byte room[2][kChannelBytes];
};

/// The start of the memory. All that follows begins as zeros, which the system provides lazily.
struct WorldHeader {
  static constexpr uint64_t kMagic = 0x38646c726f776e74;  // "tnworld8"
  uint64_t magic;
  int32_t size;
  std::atomic<uint32_t> failed;  // 1: `reason` is being written, 2: it is complete
  char reason[1000];
};

class WorldMemory {
 public:
  /// For the threads or future children of this process.
  static std::shared_ptr<WorldMemory> make(int size);
  /// What a launcher made. Takes over `file`, its descriptor.
  static std::shared_ptr<WorldMemory> open(int file);
  /// What another process of the same user made.
  static std::shared_ptr<WorldMemory> open(int process, int file);
  ~WorldMemory();
  WorldMemory(const WorldMemory&) = delete;

  int size() const { return header().size; }
  int file() const { return file_; }
  WorldHeader& header() const;
  WorkerRecord& record(int rank) const;
  /// Room of a worker for the data of one phase.
  std::byte* slot(int rank, int parity) const;
  Channel& channel(int from, int to) const;

  /// Makes every waiting and later call of every worker fail. The first reason stays.
  void fail_all(std::string_view reason);
  bool has_failed() const { return header().failed.load(std::memory_order_acquire) != 0; }
  std::string reason() const;

 private:
  WorldMemory(int file, int64_t bytes);

  int file_;
  int64_t bytes_;
  std::byte* base_;
};

/// Wakes those who sleep until `word` changes, in any process.
void wake(std::atomic<uint32_t>& word);
/// Returns when `word` is not `seen`, at a wake-up, or after the time.
void sleep_until_change(const std::atomic<uint32_t>& word, uint32_t seen, int milliseconds);

}  // namespace tn::workers
