#pragma once
// Workers of one machine that wait for each other in different calls, so that none of them can go
// on. A worker waits for one other at a time: a deadlock is a chain of waits that returns to its
// start. Between machines only a timeout finds it.
#include <chrono>
#include <string>
#include <vector>

#include "workers/world_memory.h"

namespace tn::workers {

/// Shows the other workers for whom this one waits, while it lives.
class ShownWait {
 public:
  /// Ranks in `world`.
  ShownWait(const WorldMemory& world, int self, int other);
  ~ShownWait();
  ShownWait(const ShownWait&) = delete;
  /// To be called each time that the worker has looked, and has to wait on. Whether it is certain
  /// that none of the workers in a chain from this one to itself can go on.
  bool is_circular();
  /// Where they wait, if so.
  std::string text() const;

 private:
  struct Seen {
    int worker;
    uint64_t wait;
  };
  std::vector<Seen> chain() const;

  const WorldMemory& world_;
  int self_;
  std::vector<Seen> seen_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace tn::workers
