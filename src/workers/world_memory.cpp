// Layout of the shared memory: header, records, slots, channels. Pages are allocated when
// they are first touched.
#include "workers/world_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/hash.h"

namespace tn::workers {
namespace {

constexpr int64_t kPage = 4096;

constexpr int64_t pages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

struct Offsets {
  int64_t records, slots, channels, end;
};

Offsets offsets_of(int size) {
  Offsets at = {};
  at.records = pages(sizeof(WorldHeader));
  at.slots = at.records + pages(size * static_cast<int64_t>(sizeof(WorkerRecord)));
  at.channels = at.slots + size * 2 * kSlotBytes;
  at.end = at.channels + int64_t{size} * size * pages(sizeof(Channel));
  return at;
}

long futex(const std::atomic<uint32_t>& word, int op, uint32_t value, const timespec* time) {
  static_assert(sizeof(word) == 4 && std::atomic<uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, &word, op, value, time, nullptr, 0);
}

}  // namespace

DataKind data_of(const CollectiveCall& call) {
  bool is_message = call.kind == Collective::send || call.kind == Collective::recv;
  return {call.count, static_cast<uint8_t>(call.element), call.shape, call.run,
          is_message && call.origin ? call.origin->ops : 0};
}

std::string text_of(const DataKind& data) {
  constexpr std::string_view kNames[] = {
      "bool",   "int8",    "int16",    "int32",   "int64",   "uint8",     "uint16",    "uint32",
      "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
  std::string_view name = kNames[data.element % std::size(kNames)];
  if (data.run) return format("{} bytes in run {} of a plan with parts", data.count, data.run);
  if (data.shape.rank < 0) return format("{} elements of type {}", data.count, name);
  auto rank = std::min(static_cast<size_t>(data.shape.rank), std::size(data.shape.extents));
  return format("{}[{}]", name, join(std::span(data.shape.extents).first(rank), ", "));
}

bool is_same_call(const PublishedCall& a, const PublishedCall& b) {
  return a.data == b.data && a.peer == b.peer && a.kind == b.kind && a.fold == b.fold &&
         (a.origin.ops == b.origin.ops || !a.origin.ops || !b.origin.ops);
}

uint64_t digest_of(const CollectiveCall& call) {
  uint64_t hash = static_cast<uint64_t>(call.kind) | static_cast<uint64_t>(call.fold) << 8 |
                  static_cast<uint64_t>(call.element) << 16;
  auto add = [&](int64_t number) { hash = combine(hash, static_cast<uint64_t>(number)); };
  add(call.count), add(call.peer), add(call.shape.rank);
  for (int32_t i = 0; i < call.shape.rank; ++i) add(call.shape.extents[i]);
  for (const CallPiece& piece : call.pieces) add(piece.count);
  if (call.origin)
    for (uint64_t part : {call.origin->ops, call.origin->values, call.origin->traced_ops,
                          call.origin->traced_values})
      hash = combine(hash, part);
  return hash | 1;
}

std::string text_of(const PublishedCall& call) {
  auto kind = static_cast<Collective>(call.kind);
  constexpr std::string_view kFolds[] = {"", " by product", " by max", " by min"};
  std::string text = format("{}{} #{}", name_of(kind), kFolds[call.fold % 4], call.number);
  if (kind == Collective::send) text += format(" to worker {}", call.peer);
  if (kind == Collective::recv) text += format(" from worker {}", call.peer);
  if (kind != Collective::barrier) text += format(" of {}", text_of(call.data));
  return call.place[0] ? format("{} ({})", text, call.place) : text;
}

std::string whereabouts(const WorkerRecord& record) {
  uint32_t busy = record.busy.load();
  if (busy == 2) return format(" in {}", text_of(record.message));
  if (busy == 3 || (busy == 0 && record.is_in_group.load()))
    return format(" {} {}", busy ? "in" : "after", text_of(record.in_group));
  const PublishedCall& last = record.calls[record.calls[0].number < record.calls[1].number];
  if (last.number == 0) return "";
  return format(" {} {}", busy ? "in" : "after", text_of(last));
}

void wake(std::atomic<uint32_t>& word) { futex(word, FUTEX_WAKE, INT_MAX, nullptr); }

void sleep_until_change(const std::atomic<uint32_t>& word, uint32_t seen, int milliseconds) {
  timespec time = {milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
  futex(word, FUTEX_WAIT, seen, &time);
}

WorldMemory::WorldMemory(int file, int64_t bytes) : file_(file), bytes_(bytes) {
  void* base = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, file, 0);
  if (base == MAP_FAILED) {
    int error = errno;
    close(file);
    fail("workers: cannot map shared memory of {} bytes: {}", bytes, std::strerror(error));
  }
  base_ = static_cast<std::byte*>(base);
}

WorldMemory::~WorldMemory() {
  munmap(base_, static_cast<size_t>(bytes_));
  close(file_);
}

std::shared_ptr<WorldMemory> WorldMemory::make(int size) {
  if (size < 1 || size > kMostWorkers)
    fail("workers: the number of workers must be between 1 and {}: {}", kMostWorkers, size);
  int file = memfd_create("tenon-workers", MFD_CLOEXEC);
  int64_t bytes = offsets_of(size).end;
  if (file < 0 || ftruncate(file, bytes) != 0) {
    int error = errno;
    if (file >= 0) close(file);
    fail("workers: cannot make shared memory of {} bytes: {}", bytes, std::strerror(error));
  }
  std::shared_ptr<WorldMemory> made(new WorldMemory(file, bytes));
  made->header().size = size;
  made->header().magic = WorldHeader::kMagic;
  return made;
}

std::shared_ptr<WorldMemory> WorldMemory::open(int file) {
  struct stat status;
  WorldHeader header;
  if (fstat(file, &status) != 0 ||
      pread(file, static_cast<void*>(&header), sizeof header, 0) != sizeof header ||
      header.magic != WorldHeader::kMagic || header.size < 1 || header.size > kMostWorkers ||
      status.st_size != offsets_of(header.size).end)
    fail(Hint{"start the program with `tenon launch`, which passes the memory on"},
         "workers: file descriptor {} is not the shared memory of a launcher", file);
  fcntl(file, F_SETFD, FD_CLOEXEC);  // not for programs that a worker starts
  return std::shared_ptr<WorldMemory>(new WorldMemory(file, status.st_size));
}

std::shared_ptr<WorldMemory> WorldMemory::open(int process, int file) {
  std::string path = format("/proc/{}/fd/{}", process, file);
  int own = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) fail("workers: cannot open {}: {}", path, std::strerror(errno));
  return open(own);
}

WorldHeader& WorldMemory::header() const { return *reinterpret_cast<WorldHeader*>(base_); }

WorkerRecord& WorldMemory::record(int rank) const {
  return reinterpret_cast<WorkerRecord*>(base_ + offsets_of(size()).records)[rank];
}

std::byte* WorldMemory::slot(int rank, int parity) const {
  return base_ + offsets_of(size()).slots + (2 * rank + parity) * kSlotBytes;
}

Channel& WorldMemory::channel(int from, int to) const {
  int64_t number = int64_t{from} * size() + to;
  return *reinterpret_cast<Channel*>(base_ + offsets_of(size()).channels +
                                     number * pages(sizeof(Channel)));
}

void WorldMemory::fail_all(std::string_view reason) {
  uint32_t none = 0;
  if (!header().failed.compare_exchange_strong(none, 1)) return;
  size_t length = std::min(reason.size(), sizeof header().reason - 1);
  std::memcpy(header().reason, reason.data(), length);
  header().reason[length] = 0;
  header().failed.store(2, std::memory_order_release);
  // Those who wait for a channel look at `failed` by themselves, a few times in 0.1 s.
  for (int rank = 0; rank < size(); ++rank) wake(record(rank).arrived);
}

std::string WorldMemory::reason() const {
  // The writer is between two stores, or was killed there.
  for (int i = 0; i < 100 && header().failed.load(std::memory_order_acquire) == 1; ++i) {
    timespec millisecond = {0, 1'000'000};
    nanosleep(&millisecond, nullptr);
  }
  bool complete = header().failed.load(std::memory_order_acquire) == 2;
  return complete ? std::string(header().reason) : "a worker ended while it reported an error";
}

}  // namespace tn::workers
