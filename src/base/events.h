#pragma once
// Events inside the library, for watchers: the instruction log and recordings.
//
// Without a watcher an event costs one load. With one, the thread writes it to its own ring buffer
// without a lock; one collector thread drains the rings and calls the watchers.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tn {

enum class EventKind : uint8_t {
  record,            // an op was called; it has a name and a place
  ops,               // a sequence of ops is about to run; value: the address of an OpList
  run,               // a plan ran; value: the number of its steps
  step,              // one of them
  compile_starting,  // value: which sequence; a name where it is known
  compile_complete,
  compile_failed,
  share,       // a thread of the pool did its share of a step; value: chunks
  memory,      // value: bytes of all live buffers
  worker_ops,  // as `ops`, of one worker of a mesh
  worker_run,  // a worker ran its plan; value: bytes of its results
  collective,  // a worker took part in one; value: bytes; its name ends with that of the group
};

struct OpList;

/// The workers that take part in a collective: from `first`, every `step`-th, so many.
struct Peers {
  int32_t first = -1;  // -1: they are not known
  int32_t step = 1, count = 0;
};

struct Event {
  EventKind kind{};
  bool compiled = false;    // it runs as machine code of a hot path or a compiled function
  uint8_t name_length = 0;  // of `text`
  uint32_t thread = 0;      // numbered from 0 in order of first event; filled by post()
  uint64_t began = 0, nanoseconds = 0;  // since the library was loaded, and from there
  uint64_t value = 0;
  uint64_t place = 0;   // of the user's call: the bits of a Loc
  uint64_t waited = 0;  // of these nanoseconds, in a collective: for other workers
  int32_t worker = -1;  // that it is of; filled by post(); -1: of none
  Peers peers = {};
  char text[56];  // the beginning of the name

  Event(EventKind kind, std::string_view name, uint64_t began) : kind(kind), began(began) {
    set_name(name);
  }
  Event() = default;
  void set_name(std::string_view name) {
    name_length = static_cast<uint8_t>(name.copy(text, sizeof text));
  }
  std::string_view name() const { return {text, name_length}; }
  const OpList& ops() const {
    return *reinterpret_cast<const OpList*>(value);  // NOLINT(performance-no-int-to-ptr): its word
  }
};

/// A sequence of ops that one event reports: a sequence that runs often is described once.
struct OpList {
  struct Op {
    std::string_view name;  // lives as long as the library
    int operands;
    uint64_t place;
    std::string line;   // what the instruction log says of it, apart from time and number
    int64_t bytes = 0;  // of its result, in the list of a worker, which has no lines
  };
  std::vector<Op> ops;
};
/// Kept until the events that point to it are collected.
using OpListRef = std::shared_ptr<const OpList>;
OpListRef make_op_list(std::vector<OpList::Op> ops);

/// Bits of the kinds that have a watcher.
extern constinit std::atomic<uint32_t> watched_events;
constexpr uint32_t bit_of(EventKind kind) { return uint32_t{1} << static_cast<int>(kind); }
inline bool has_watcher(EventKind kind) {
  return watched_events.load(std::memory_order_relaxed) & bit_of(kind);
}

/// The worker that events of this thread are of; -1: that of the process.
inline constinit thread_local int event_worker = -1;
/// The rank of this process among those of a launcher; -1: it has none.
extern constinit std::atomic<int> worker_of_process;
inline int worker_now() {
  return event_worker >= 0 ? event_worker : worker_of_process.load(std::memory_order_relaxed);
}

/// Nanoseconds since the library was loaded.
uint64_t event_time();
/// When that was: nanoseconds of the steady clock.
uint64_t time_of_load();
/// The number of this thread in events.
uint32_t event_thread();
/// Set by the first watcher: where there is none, as in the runtime of executables, nothing that
/// collects events is linked.
extern constinit std::atomic<void (*)(const Event& event)> event_sink;
/// Only where there is a watcher of its kind.
inline void post(const Event& event) { event_sink.load(std::memory_order_acquire)(event); }
/// Something that began then and ends now.
inline void post_span(Event event) {
  event.nanoseconds = event_time() - event.began;
  post(event);
}

/// Receives events from start() to stop(). stop() delivers those that are still in the rings.
class Watcher {
 public:
  Watcher() : kinds_(UINT32_MAX) {}  // of everything
  explicit Watcher(std::initializer_list<EventKind> kinds) {
    for (EventKind kind : kinds) kinds_ |= bit_of(kind);
  }
  Watcher(const Watcher&) = delete;
  virtual ~Watcher() = default;  // stopped before

  void start();
  void stop();
  /// Events of any kinds, those of a thread in their order. Calls come one at a time.
  virtual void take(std::span<const Event> events) = 0;
  bool wants(const Event& event) const { return kinds_ & bit_of(event.kind); }
  uint32_t kinds() const { return kinds_; }

 private:
  uint32_t kinds_ = 0;
};

/// Reports the start and the outcome of a compilation. Nested compilations are part of it.
class CompileEvents {
 public:
  CompileEvents(uint64_t sequence, std::string_view name);
  ~CompileEvents();
  CompileEvents(const CompileEvents&) = delete;

 private:
  uint64_t sequence_, began_ = 0;
  int exceptions_;
  bool outermost_;
  Event ended_;
};

/// What ran so far.
struct Totals {
  std::atomic<uint64_t> ops{0}, compiled_ops{0};  // the latter are among the former
  std::atomic<uint64_t> runs{0};                  // of plans
  void add(bool compiled, uint64_t count) {
    ops.fetch_add(count, std::memory_order_relaxed);
    if (compiled) compiled_ops.fetch_add(count, std::memory_order_relaxed);
  }
};
extern constinit Totals totals;

}  // namespace tn
