#include "runtime/buffer.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <new>

#include "base/error.h"
#include "runtime/memory_blocks.h"
#include "runtime/memory_use.h"

namespace tn {
namespace {

struct Machine {
  size_t ram = 0, swap = 0;
};

Machine machine_memory() {
  struct sysinfo info;
  if (sysinfo(&info) != 0) return {size_t{1} << 40, 0};
  return {size_t{info.totalram} * info.mem_unit, size_t{info.totalswap} * info.mem_unit};
}

// Every allocation counts itself here.
struct Counters {
  alignas(64) std::atomic<size_t> active{0};
  std::atomic<size_t> peak{0};
  std::atomic<size_t> limit{0};
};
constinit Counters counters;

size_t default_memory_limit() {
  static const size_t bytes = [] {
    Machine machine = machine_memory();
    set_kept_large_limit(std::max(size_t{256} << 20, machine.ram / 4));
    return machine.ram + machine.swap;
  }();
  return bytes;
}
// At load: a fork while another thread makes it would leave it half-made in the child.
[[maybe_unused]] const size_t limit_at_load = default_memory_limit();

[[noreturn, gnu::noinline]] void out_of_memory(size_t bytes) {
  fail(Fault::memory, "allocate: not enough memory: {} requested, {} active, limit {}",
       bytes_text(bytes), bytes_text(active_memory()), bytes_text(memory_limit()));
}

void count(size_t bytes) {
  size_t limit = memory_limit();
  if (bytes > limit) out_of_memory(bytes);
  size_t now = counters.active.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > limit) {
    counters.active.fetch_sub(bytes, std::memory_order_relaxed);
    out_of_memory(bytes);
  }
  size_t peak = counters.peak.load(std::memory_order_relaxed);
  while (now > peak && !counters.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void uncount(size_t bytes) { counters.active.fetch_sub(bytes, std::memory_order_relaxed); }

void release_small(Buffer* buffer) {
  uncount(buffer->bytes);
  give_small(buffer, buffer->capacity);
}

void release_large(Buffer* buffer) {
  uncount(buffer->bytes);
  give_large(buffer->address, buffer->capacity);
  give_small(buffer, sizeof(Buffer));
}

void release_foreign(Buffer* buffer) {
  if (buffer->release_owner) buffer->release_owner(buffer->owner);
  give_small(buffer, sizeof(Buffer));
}

/// A header with `room` bytes behind it; nullptr when there is no memory.
Buffer* make_header(size_t room) {
  size_t capacity;
  void* block = take_small(sizeof(Buffer) + room, capacity);
  if (!block) return nullptr;
  Buffer* buffer = ::new (block) Buffer;
  buffer->capacity = capacity;
  return buffer;
}

BufferRef allocate_large(size_t bytes) {
  // Kept blocks are memory too: they give way before the machine's memory is exceeded.
  size_t limit = memory_limit(), kept = kept_large_bytes();
  size_t active = active_memory();
  LargeBlock block = take_large(bytes);
  if (!block.recycled && active + kept > limit) trim_kept_large(limit - std::min(active, limit));
  Buffer* buffer = block.data ? make_header(0) : nullptr;
  if (!buffer) {
    if (block.data) give_large(block.data, block.capacity);
    uncount(bytes);
    out_of_memory(bytes);
  }
  buffer->address = block.data;
  buffer->capacity = block.capacity;
  buffer->recycled = block.recycled;
  buffer->bytes = bytes;
  buffer->release = release_large;
  return BufferRef::adopt_reference(buffer);
}

}  // namespace

void fail_not_host(const Buffer& buffer) {
  throw_internal(format("memory of {} is taken for the host's", to_text(buffer.device)));
}

BufferRef allocate(size_t bytes) {
  count(bytes);
  if (bytes >= kLargeBytes) return allocate_large(bytes);
  // An empty buffer still has one element to read: hoisted loads of loops that do not run look at
  // it.
  Buffer* buffer = make_header(bytes ? bytes : 16);
  if (!buffer) {
    uncount(bytes);
    out_of_memory(bytes);
  }
  buffer->address = buffer + 1;
  buffer->bytes = bytes;
  buffer->release = release_small;
  return BufferRef::adopt_reference(buffer);
}

BufferRef adopt(void* data, size_t bytes, void* owner, void (*release)(void* owner),
                bool read_only) {
  if (bytes == 0) {
    release(owner);
    return allocate(0);
  }
  Buffer* buffer = make_header(0);
  if (!buffer) out_of_memory(sizeof(Buffer));
  buffer->address = data;
  buffer->bytes = bytes;
  buffer->owner = owner;
  buffer->release_owner = release;
  buffer->release = release_foreign;
  buffer->read_only = read_only;
  buffer->recycled = true;
  return BufferRef::adopt_reference(buffer);
}

size_t active_memory() { return counters.active.load(std::memory_order_relaxed); }
size_t peak_memory() { return counters.peak.load(std::memory_order_relaxed); }
void reset_peak_memory() { counters.peak.store(active_memory(), std::memory_order_relaxed); }
size_t cache_memory() { return kept_small_bytes() + kept_large_bytes(); }

void clear_cache() {
  drop_kept_small();
  trim_kept_large(0);
}

size_t memory_limit() {
  size_t limit = counters.limit.load(std::memory_order_relaxed);
  return limit ? limit : default_memory_limit();
}

size_t set_memory_limit(size_t bytes) {
  size_t former = memory_limit();
  counters.limit.store(bytes, std::memory_order_relaxed);
  return former;
}

size_t set_cache_limit(size_t bytes) {
  default_memory_limit();  // which sets the default this replaces
  return set_kept_large_limit(bytes);
}

std::string bytes_text(size_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit < 5; ++unit) value /= 1024;
  return format("{:.2f} {}", value, kUnits[unit]);
}

}  // namespace tn
