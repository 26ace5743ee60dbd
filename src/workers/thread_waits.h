#pragma once
// What worker threads wait for, so that a wait without an end is an error that says who waits for
// whom.
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "runtime/transport.h"
#include "tenon/distributed.h"

namespace tn::workers {

class Gate;

/// The workers of a group, by their numbers in the mesh: every `step`-th from the first.
struct GroupMembers {
  std::string_view name = {};  // of the axis
  int first = 0, step = 1, size = 0;
};

/// Workers that wait for others that do not come, or that make different calls. The lines of the
/// program are for the caller to add: they take the lock of a host language.
class NotMet : public WorkerFailed {
 public:
  enum class Doing : uint8_t { computes, waits, has_ended };
  struct Worker {
    int number = 0;
    Doing doing = Doing::computes;
    std::string call = {};          // where it waits: "all_sum along 'data' of float32[2]"
    std::vector<int> missing = {};  // workers that have not come there
    uint64_t loc = 0;               // the user's line, unresolved
  };
  NotMet(std::string headline, std::vector<Worker> workers);
  /// The whole text, with lines that `place` finds; "" for none.
  std::string text(FunctionRef<std::string(uint64_t loc)> place) const;
  /// The line where the first worker waits.
  uint64_t loc() const;

 private:
  std::string headline_;
  std::vector<Worker> workers_;
};

/// The workers of a mesh that wait in a collective, or have ended their run. Only a worker that has
/// slept for a while is entered.
class ThreadWaits {
 public:
  explicit ThreadWaits(int workers) : records_(static_cast<size_t>(workers)) {}
  /// Makes all workers stop at their next collective or step.
  std::function<void()> stop_all = [] {};
  /// For the next run, when no worker is here.
  void reset();
  /// The worker has arrived at `gate` in this round and sleeps there.
  void waits(int worker, const Gate& gate, uint32_t round, const GroupMembers& members,
             const CollectiveCall& call);
  void goes_on(int worker);
  void has_ended(int worker);
  /// Throws NotMet if every worker waits or has ended: none will go on.
  void check_for_progress() const;
  /// Throws NotMet: a worker has waited for so long.
  [[noreturn]] void fail_late(std::chrono::seconds time) const;

 private:
  struct Record {
    NotMet::Doing doing = NotMet::Doing::computes;
    const Gate* gate = nullptr;
    uint32_t round = 0;
    GroupMembers members = {};
    CollectiveCall call = {};
  };
  bool is_waiting(const Record& record) const;
  std::vector<NotMet::Worker> report() const;

  mutable std::mutex mutex_;
  std::vector<Record> records_;
  size_t idle_ = 0;  // workers that do not compute
};

/// "all_sum along 'data' of float32[2]"
std::string text_of(const GroupMembers& members, const CollectiveCall& call);

}  // namespace tn::workers
