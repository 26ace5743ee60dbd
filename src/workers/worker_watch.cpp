#include "workers/worker_watch.h"

#include <algorithm>

#include "base/text.h"
#include "workers/local_groups.h"
#include "workers/world.h"

namespace tn::workers {

constinit std::atomic<bool> workers_are_counted{false};

std::array<WorkerTotals, kCountedWorkers>& worker_totals() {
  static std::array<WorkerTotals, kCountedWorkers> all;
  return all;
}

WorkerTotals& totals_of(int worker) {
  auto number = static_cast<size_t>(std::max(worker, 0));
  WorkerTotals& own = worker_totals()[number % kCountedWorkers];
  own.number.store(static_cast<int>(number), std::memory_order_relaxed);
  return own;
}

namespace {

std::string_view title_of(Collective kind) {
  constexpr std::string_view kTitles[] = {"Barrier",  "AllReduce", "AllGather", "ReduceScatter",
                                          "AllToAll", "Broadcast", "Send",      "Recv"};
  return kTitles[static_cast<size_t>(kind)];
}

/// Of the larger side.
uint64_t bytes_of(const CollectiveCall& call, int size) {
  auto bytes = static_cast<uint64_t>(call.count) * element_bytes(call.element);
  bool by_worker = call.kind == Collective::all_gather || call.kind == Collective::reduce_scatter ||
                   call.kind == Collective::all_to_all;
  return by_worker ? bytes * static_cast<uint64_t>(size) : bytes;
}

Peers peers_of(std::string_view group, int size, const CollectiveCall& call) {
  bool is_message = call.kind == Collective::send || call.kind == Collective::recv;
  int own = std::max(worker_now(), 0);
  if (is_message && group == kWorld) return {own, call.peer - own, 2};
  if (is_message) return {-1, 1, 2};
  for (const LocalGroup& local : local_groups)
    if (local.name == group) return {local.first, local.step, size};
  return {group == kWorld ? 0 : -1, 1, size};
}

void tell(std::string_view group, int size, const CollectiveCall& call, uint64_t began,
          uint64_t waited) {
  uint64_t took = event_time() - began, bytes = bytes_of(call, size);
  WorkerTotals& own = totals_of(worker_now());
  own.collectives.fetch_add(1, std::memory_order_relaxed);
  own.bytes.fetch_add(bytes, std::memory_order_relaxed);
  own.communicating.fetch_add(took, std::memory_order_relaxed);
  own.waiting.fetch_add(waited, std::memory_order_relaxed);
  if (!has_watcher(EventKind::collective)) return;
  Event event(EventKind::collective, format("{} {}", title_of(call.kind), group), began);
  event.nanoseconds = took, event.value = bytes, event.waited = std::min(waited, took);
  event.peers = peers_of(group, size, call);
  post(event);
}

}  // namespace

void watched(std::string_view group, int size, const CollectiveCall& call,
             FunctionRef<void()> work) {
  if (!workers_are_watched()) return work();
  uint64_t began = event_time(), before = WaitScope::waited;
  work();
  tell(group, size, call, began, WaitScope::waited - before);
}

}  // namespace tn::workers
