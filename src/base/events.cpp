#include "base/events.h"

#include <cpuid.h>
#include <pthread.h>
#include <signal.h>
#include <x86intrin.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/at_fork.h"

namespace tn {

constinit std::atomic<uint32_t> watched_events{0};
constinit Totals totals;
constinit std::atomic<int> worker_of_process{-1};
constinit std::atomic<void (*)(const Event& event)> event_sink{[](const Event&) {}};

static const auto kLoaded = std::chrono::steady_clock::now();
static const uint64_t kTicksLoaded = __rdtsc();
/// Nanoseconds a tick of the processor's counter, times 2^32; 0: it is not known, or not steady.
static constinit std::atomic<uint64_t> tick_time{0};

static uint64_t system_time() {
  return static_cast<uint64_t>((std::chrono::steady_clock::now() - kLoaded).count());
}

/// The counter takes less than half as long as asking the system, which small flushes notice.
uint64_t event_time() {
  uint64_t time = tick_time.load(std::memory_order_relaxed);
  if (!time) return system_time();
  return static_cast<uint64_t>(static_cast<unsigned __int128>(__rdtsc() - kTicksLoaded) * time >>
                               32);
}

uint64_t time_of_load() { return static_cast<uint64_t>(kLoaded.time_since_epoch().count()); }

namespace {

constexpr std::chrono::milliseconds kEvery{5};  // rings are collected
constexpr uint64_t kMeasured = 20'000'000;      // nanoseconds by which the counter is measured

/// Once, over the time since the library was loaded.
void measure_ticks() {
  unsigned a, b, c, features = 0;
  if (tick_time.load(std::memory_order_relaxed)) return;
  uint64_t passed = system_time(), ticks = __rdtsc() - kTicksLoaded;
  bool interrupted = system_time() - passed > 1'000;  // the two are of different times
  if (passed < kMeasured || interrupted) return;
  if (!__get_cpuid(0x80000007, &a, &b, &c, &features) || !(features & (1u << 8))) return;
  tick_time.store(static_cast<uint64_t>((static_cast<unsigned __int128>(passed) << 32) / ticks));
}

/// What one thread reported and was not collected yet.
struct Ring {
  static constexpr uint64_t kEvents = 4096;
  uint32_t thread = 0;
  std::atomic<bool> ended = false;  // the thread
  alignas(64) std::atomic<uint64_t> written = 0;
  alignas(64) std::atomic<uint64_t> taken = 0;
  std::unique_ptr<Event[]> events{new Event[kEvents]};

  uint64_t waiting() const {
    return written.load(std::memory_order_relaxed) - taken.load(std::memory_order_acquire);
  }
  void put(const Event& event) {
    uint64_t at = written.load(std::memory_order_relaxed);
    Event& to = events[at % kEvents];
    std::memcpy(static_cast<void*>(&to), &event, offsetof(Event, text));
    if (event.name_length) std::memcpy(to.text, event.text, event.name_length);
    to.thread = thread, to.worker = worker_now();
    written.store(at + 1, std::memory_order_release);
    // The collector was the last to read the next one: prefetch it while the program does other
    // things.
    const char* next = reinterpret_cast<const char*>(&events[(at + 1) % kEvents]);
    __builtin_prefetch(next, 1);
    __builtin_prefetch(next + offsetof(Event, text) - 1, 1);
  }
  void take(std::vector<Event>& all) {
    uint64_t from = taken.load(std::memory_order_relaxed);
    uint64_t to = written.load(std::memory_order_acquire);
    for (; from < to; ++from) all.push_back(events[from % kEvents]);
    taken.store(to, std::memory_order_release);
  }
};

class Collector {
 public:
  Ring* new_ring() {
    std::lock_guard lock(mutex_);
    rings_.push_back(std::make_unique<Ring>());
    rings_.back()->thread = threads_++;
    return rings_.back().get();
  }

  void add(Watcher& watcher) {
    std::lock_guard lock(mutex_);
    collect_locked();  // what was written before is not for it
    watchers_.push_back(&watcher);
    set_kinds();
    if (!thread_.joinable()) start_thread();
    changed_.notify_one();
  }
  void remove(Watcher& watcher) {
    std::lock_guard lock(mutex_);
    collect_locked();
    std::erase(watchers_, &watcher);
    set_kinds();
  }
  void collect() {
    std::lock_guard lock(mutex_);
    collect_locked();
  }
  void hurry() { changed_.notify_one(); }
  void retire(const OpList* list) {
    std::unique_ptr<const OpList> last(list);
    std::lock_guard lock(mutex_);
    if (!watchers_.empty()) retired_.push_back(std::move(last));
  }

  static Collector*& current() {
    static Collector* collector = fresh();
    return collector;
  }

 private:
  struct Part {
    size_t next, end;  // of one thread, among those taken
  };
  static Collector* fresh();

  void collect_locked() {
    taken_.clear();
    std::vector<Part> parts;
    for (auto& ring : rings_) {
      bool ended = ring->ended.load(std::memory_order_acquire);
      size_t begin = taken_.size();
      ring->take(taken_);
      if (taken_.size() > begin) parts.push_back({begin, taken_.size()});
      if (ended) ring.reset();
    }
    std::erase(rings_, nullptr);
    if (!parts.empty()) hand_out(std::move(parts));
    retired_.clear();  // no event points to them any more
  }
  /// By when they were written. Those of a thread keep their order whatever the clock says, which
  /// may step back where a thread changes processors or the clock its unit.
  void hand_out(std::vector<Part> parts) {
    batch_.clear();
    auto written = [&](const Part& part) {
      const Event& event = taken_[part.next];
      return event.began + event.nanoseconds;
    };
    while (parts.size() > 1) {
      auto first = std::ranges::min_element(parts, {}, written);
      batch_.push_back(taken_[first->next++]);
      if (first->next == first->end) parts.erase(first);
    }
    std::span rest = std::span(taken_).subspan(parts[0].next, parts[0].end - parts[0].next);
    batch_.insert(batch_.end(), rest.begin(), rest.end());
    for (Watcher* watcher : watchers_) watcher->take(batch_);
  }
  void set_kinds() {
    uint32_t kinds = 0;
    for (Watcher* watcher : watchers_) kinds |= watcher->kinds();
    watched_events.store(kinds);
  }
  void start_thread() {
    // Signals belong to the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { work(); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (watchers_.empty())
        changed_.wait(lock);
      else
        changed_.wait_for(lock, kEvery);
      measure_ticks();
      collect_locked();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::vector<Watcher*> watchers_;
  std::vector<Event> taken_, batch_;  // thread by thread, in order
  std::vector<std::unique_ptr<const OpList>> retired_;
  uint32_t threads_ = 0;
  std::thread thread_;  // lives as long as the process
};

thread_local Ring* my_ring = nullptr;

struct RingReturner {
  ~RingReturner() {
    if (my_ring) std::exchange(my_ring, nullptr)->ended.store(true, std::memory_order_release);
  }
};

Ring& ring_of_this_thread() {
  if (!my_ring) [[unlikely]] {
    my_ring = Collector::current()->new_ring();
    thread_local RingReturner returner;
    (void)returner;
  }
  return *my_ring;
}

/// A child of fork has no collecting thread: it reports nothing until a watcher is added in it.
void forget_in_child() {
  Collector::current() = new Collector;
  my_ring = nullptr;
  watched_events.store(0);
}

Collector* Collector::fresh() {
  in_child_after_fork(forget_in_child);
  return new Collector;
}

thread_local int compiling = 0;

}  // namespace

static void put_in_ring(const Event& event) {
  Ring& ring = ring_of_this_thread();
  uint64_t waiting = ring.waiting();
  if (waiting == Ring::kEvents / 2) Collector::current()->hurry();
  if (waiting == Ring::kEvents) Collector::current()->collect();
  ring.put(event);
}

uint32_t event_thread() { return ring_of_this_thread().thread; }

OpListRef make_op_list(std::vector<OpList::Op> ops) {
  return {new OpList{std::move(ops)},
          [](const OpList* list) { Collector::current()->retire(list); }};
}

void Watcher::start() {
  event_sink.store(put_in_ring, std::memory_order_release);
  Collector::current()->add(*this);
}
void Watcher::stop() { Collector::current()->remove(*this); }

CompileEvents::CompileEvents(uint64_t sequence, std::string_view name)
    : sequence_(sequence), exceptions_(std::uncaught_exceptions()), outermost_(!compiling++) {
  if (!outermost_ || !has_watcher(EventKind::compile_starting)) return;
  began_ = event_time();
  ended_ = Event(EventKind::compile_complete, name, began_);
  Event starting(EventKind::compile_starting, name, began_);
  starting.value = sequence;
  post(starting);
}

CompileEvents::~CompileEvents() {
  --compiling;
  if (!outermost_ || !began_ || !has_watcher(EventKind::compile_complete)) return;
  if (std::uncaught_exceptions() > exceptions_)
    ended_ = Event(EventKind::compile_failed, "", began_);
  ended_.value = sequence_;
  post_span(ended_);
}

}  // namespace tn
