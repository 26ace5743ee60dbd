#include "mesh/worker_events.h"

#include <utility>

#include "base/text.h"
#include "workers/worker_watch.h"

namespace tn::mesh {

OpListRef worker_ops(const Graph& graph) {
  std::vector<OpList::Op> list;
  for (const GraphOp& op : graph.ops) {
    if (op.op == &scalar_leaf) continue;
    int64_t bytes = 0;
    for (int k = 0; k < op.outs; ++k)
      bytes += graph.types[static_cast<size_t>(op.out) + static_cast<size_t>(k)]->bytes();
    list.push_back({op.op->name, op.ins, op.loc.place(), {}, bytes});
  }
  return make_op_list(std::move(list));
}

WorkerRunEvents::WorkerRunEvents(int worker, const OpListRef& ops, int64_t bytes, bool compiled)
    : before_(std::exchange(event_worker, worker)),
      ops_(ops->ops.size()),
      bytes_(bytes),
      compiled_(compiled) {
  if (workers::workers_are_watched() || has_watcher(EventKind::worker_run)) began_ = event_time();
  if (!has_watcher(EventKind::worker_ops)) return;
  Event event(EventKind::worker_ops, "", event_time());
  event.value = reinterpret_cast<uint64_t>(ops.get());
  event.compiled = compiled;
  post(event);
}

WorkerRunEvents::~WorkerRunEvents() {
  if (began_) {
    workers::WorkerTotals& own = workers::totals_of(event_worker);
    own.runs.fetch_add(1, std::memory_order_relaxed);
    own.running.fetch_add(event_time() - began_, std::memory_order_relaxed);
    if (has_watcher(EventKind::worker_run)) {
      Event event(EventKind::worker_run, format("{} ops", ops_), began_);
      event.value = static_cast<uint64_t>(bytes_), event.compiled = compiled_;
      post_span(event);
    }
  }
  event_worker = before_;
}

}  // namespace tn::mesh
