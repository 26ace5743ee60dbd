#pragma once
// Settings of compiled functions and executables, and what calls of the former did.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tn {

/// How plans are made and run, by name.
struct PlanSettings {
  /// Passes and fusions to leave out.
  std::vector<std::string> off = {};
  /// Passes that run only where they are asked for, because results are rounded otherwise:
  /// "absorb".
  std::vector<std::string> on = {};
  /// How values are placed in memory: "greedy" (in the order of time, where there is room),
  /// "best_fit" (several ways, the best of them), "optimal" (all ways, as far as that takes no
  /// time to speak of), "none" (each value has a place of its own). "": greedy at levels 0 and 1,
  /// else best_fit. Results are the same.
  std::string memory_planning = {};
  /// "latency": all threads work on one call; "throughput": a call stays on the thread that makes
  /// it, so that many run side by side. "": latency.
  std::string optimize_for = {};
  /// CPUs to make code for: levels ("x86-64-v3"), processors ("haswell"), "native". Functions run
  /// that for the best one that this machine can run; executables hold code for all.
  std::vector<std::string> targets = {"native"};
};

struct CompileSettings {
  /// 0 interprets; 1 generates code after one round of simplification; 2 and above do all that is
  /// known.
  int optimization_level = 3;
  /// Sizes are open from the first call on. Otherwise a size is open when it has varied.
  bool shapeless = false;
  /// Where a call would need more bytes, besides its arguments, values are computed again until it
  /// fits, or it fails; 0: any number.
  int64_t memory_limit = 0;
  /// A call that has waited so many seconds for its plan runs on the interpreter; the plan is made
  /// meanwhile, for later calls. 0: calls wait.
  double timeout = 0;
  /// Such a call fails instead.
  bool timeout_fails = false;
  /// Every call is computed by the interpreter too. A difference is an error that names the op.
  bool check = false;
  /// "reduce-overhead": calls of short functions cost less, and keep the lock of a host language.
  /// "max-autotune": what can be done in several ways is measured on the arguments of the first
  /// call, and the choice is remembered on disk.
  std::string mode = "default";
  PlanSettings plan = {};
  /// So many arguments, the first ones, are donated by calls that they are moved into: results take
  /// the memory of tensors that have no other holder.
  int donated = 0;
};

/// What the calls of a compiled function did.
struct CallStats {
  int64_t traces = 0, hits = 0;  // calls that ran the function itself, and that did not
  int64_t graph_compiles = 0, kernel_compiles = 0, replans = 0;
  std::map<std::string, int64_t, std::less<>> traces_by_reason = {};  // "first", "size", "dtype"
};

}  // namespace tn
