#pragma once
// Reports the ops that are about to run.
#include "base/events.h"
#include "ir/graph.h"
#include "ir/walk.h"

namespace tn {

/// What people call an op: the name of the operator that records nothing but it (`@`: matmul, not
/// dot), or its own.
std::string_view called_name(const OpDef& op);
/// The same for every name in a text: "matmul, relu" for "dot, relu".
std::string called_names(std::string_view text);

OpListRef op_list(const Walk& walk);
OpListRef op_list(const Graph& graph);

inline void report_list(const OpListRef& ops, bool compiled) {
  Event event(EventKind::ops, "", event_time());
  event.value = reinterpret_cast<uint64_t>(ops.get());
  event.compiled = compiled;
  post(event);
}
/// Counts ops of compiled functions, or others, and reports them where there is a watcher.
inline void report_ops(const OpListRef& ops, bool compiled) {
  totals.add(compiled, ops->ops.size());
  if (has_watcher(EventKind::ops)) report_list(ops, compiled);
}
/// Those of a flush. `ops` is where the list of them is kept.
inline void report_ops(OpListRef& ops, const Walk& walk, bool compiled) {
  totals.add(compiled, walk.nodes.size());
  if (!has_watcher(EventKind::ops)) return;
  if (!ops) ops = op_list(walk);
  report_list(ops, compiled);
}

}  // namespace tn
