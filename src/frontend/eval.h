#pragma once
// Flushing: pending ops are keyed by their structure, compiled once per key, and run.
#include "ir/node.h"

namespace tn {

/// A host language's lock (Python's GIL) is left for the time of a flush: its other threads go on,
/// and an error inside may take it to name the user's line.
struct HostLock {
  void* (*leave)() = nullptr;
  void (*enter)(void*) = nullptr;
};
extern HostLock host_lock;

/// Computes the pending values behind `wanted`, and those between that somebody still holds.
void flush(std::span<const Tensor> wanted);

/// What the flush cache has seen.
struct FlushStats {
  uint64_t flushes = 0, hits = 0, plans = 0;
};
FlushStats flush_stats();
void clear_plans();

}  // namespace tn
