#pragma once
// TraceTable: the traces of one compiled function, found by what a call has in common with them.
#include <algorithm>
#include <mutex>

#include "base/at_fork.h"
#include "eval/eval.h"
#include "functions/compiled.h"
#include "functions/retrace.h"

namespace tn {

/// The number of active traces of this thread.
extern constinit thread_local int traces_under_way;

/// Why a call is traced although there is `nearest`: `differences` from it, or else what nearest
/// assumes of sizes, or what `other` finds. `name(i)` is what tensor i of nearest is called.
Retrace reason_beside(const Compiled& nearest, std::vector<Difference> differences,
                      std::span<const TypeRef> types, const Callback<std::string(size_t)>& name,
                      const Callback<std::optional<Difference>()>& other);

/// The mutex of a table that is protected by the lock of a host language instead.
struct GuardedByHost {
  void lock() {}
  void unlock() {}
};

/// An entry has `compiled`, and `is_dead()` where no call can be served any more. A call has
/// `is_served_by(entry)`, which may run code of the host language, and with it other threads that
/// change the table, and `trace()`, which adds an entry.
template <class Entry, class Mutex>
class TraceTable {
 public:
  using Ref = std::shared_ptr<const Entry>;

  /// The entry that serves a call: one that is there, or a new one.
  template <class Call>
  Ref find_or_trace(Call&& call) {
    if (Ref known = find(call)) return known;
    return trace_alone(call);
  }

  /// The most recently used entry that satisfies the predicate, or null.
  template <class F>
  Ref latest(F&& is_so) const {
    std::lock_guard lock(mutex_);
    for (size_t i = entries_.size(); i-- > 0;)
      if (Ref entry = at(i); entry && is_so(*entry)) return entry;
    return nullptr;
  }
  Ref latest() const {
    return latest([](const Entry&) { return true; });
  }

  /// Logs why it was made, and keeps it unless it is bound to a trace around it.
  Ref add(Ref made, Retrace why, std::string_view function) {
    why.assumed = made->compiled->assumed();
    std::vector<Ref> dropped;  // destroyed without the lock: that may run code of the host language
    std::lock_guard lock(mutex_);
    debug_trace(function, why);
    log_.add(std::move(why));
    if (made->compiled->is_bound()) return made;
    auto dead = std::stable_partition(entries_.begin(), entries_.end(),
                                      [](const Ref& entry) { return !entry->is_dead(); });
    dropped.assign(dead, entries_.end());
    entries_.erase(dead, entries_.end());
    if (entries_.size() == kMost) {
      dropped.push_back(entries_[0]);
      entries_.erase(entries_.begin());
    }
    for (const Ref& entry : dropped) entry->compiled->count(stats_);
    return entries_.emplace_back(std::move(made));
  }
  /// Removes all traces; their statistics remain.
  void clear() {
    std::vector<Ref> dropped;
    std::lock_guard lock(mutex_);
    for (const Ref& entry : entries_) entry->compiled->count(stats_);
    dropped.swap(entries_);
  }

  /// The most recently used at the end.
  const std::vector<Ref>& entries() const { return entries_; }
  CallStats stats() const {
    std::lock_guard lock(mutex_);
    CallStats stats = stats_;
    for (const Ref& entry : entries_) entry->compiled->count(stats);
    log_.count(stats);
    return stats;
  }
  /// The reasons of the traces that are still recorded.
  std::vector<Retrace> log() const {
    std::lock_guard lock(mutex_);
    return log_.kept();
  }
  std::vector<std::string> why_recompiled() const {
    std::vector<std::string> lines;
    for (const Retrace& retrace : log()) lines.push_back(to_text(retrace));
    return lines;
  }

 private:
  static constexpr size_t kMost = 256;  // the least recently used go first

  /// The comparison may have changed the table.
  Ref at(size_t i) const { return i < entries_.size() ? entries_[i] : nullptr; }
  template <class Call>
  Ref find(Call& call) {
    std::lock_guard lock(mutex_);
    for (size_t i = entries_.size(); i-- > 0;) {
      Ref entry = at(i);
      if (!entry || !call.is_served_by(*entry)) continue;
      if (i + 1 < entries_.size() && entries_[i] == entry)
        std::rotate(entries_.begin() + static_cast<ptrdiff_t>(i),
                    entries_.begin() + static_cast<ptrdiff_t>(i) + 1, entries_.end());
      ++stats_.hits;
      return entry;
    }
    return nullptr;
  }
  template <class Call>
  [[gnu::noinline]] Ref trace_alone(Call& call) {
    // A trace inside a trace does not wait: two threads could wait for each other.
    std::unique_lock alone(*tracing_, std::defer_lock);
    if (traces_under_way == 0) {
      lock_or_stop(alone);
      if (Ref known = find(call)) return known;
    }
    struct UnderWay {
      UnderWay() { ++traces_under_way; }
      ~UnderWay() { --traces_under_way; }
    } under_way;
    return call.trace();
  }

  mutable Mutex mutex_;
  std::vector<Ref> entries_;
  RetraceLog log_;
  CallStats stats_;  // hits, and statistics of removed traces
  // One trace at a time: other threads may reuse its result. A forked child lacks that thread.
  PerProcess<std::timed_mutex> tracing_;
};

}  // namespace tn
