#pragma once
// Settings of compiled functions and executables, and statistics of compiled functions.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tn {

/// How plans are made and run.
struct PlanSettings {
  /// Passes and fusions to disable, by name.
  std::vector<std::string> off = {};
  /// Passes to enable that are disabled by default because they change rounding: "absorb".
  std::vector<std::string> on = {};
  /// How values are placed in memory: "greedy" (in the order of execution, at the first gap),
  /// "best_fit" (the best of several heuristics), "optimal" (a search within a small budget of
  /// time), "none" (no reuse). "": greedy at levels 0 and 1, else best_fit. It does not affect
  /// results.
  std::string memory_planning = {};
  /// "latency": all threads work on one call; "throughput": a call runs on the calling thread, and
  /// several calls run in parallel. "": latency.
  std::string optimize_for = {};
  /// CPUs to generate code for: levels ("x86-64-v3"), processors ("haswell"), "native". Functions
  /// run the code of the best one that this machine supports; executables store code for all.
  std::vector<std::string> targets = {"native"};
};

struct CompileSettings {
  /// 0 interprets; 1 generates code after one round of simplification; 2 and above run the full
  /// pipeline.
  int optimization_level = 3;
  /// All sizes are symbolic from the first call on. By default a size becomes symbolic when it
  /// varies.
  bool shapeless = false;
  /// Memory budget of a call in bytes, without its arguments. Values are rematerialised until the
  /// plan fits; a plan that cannot fit is an error. 0: unlimited.
  int64_t memory_limit = 0;
  /// A call that has waited this many seconds for its plan runs on the interpreter, while the plan
  /// is compiled in the background for later calls. 0: calls wait.
  double timeout = 0;
  /// A call that exceeds `timeout` fails instead.
  bool timeout_fails = false;
  /// The interpreter computes every call too. A difference is an error that names the op.
  bool check = false;
  /// "reduce-overhead": calls of short functions cost less, and hold Python's lock.
  /// "max-autotune": alternatives are measured on the arguments of the first call, and the choice
  /// is cached on disk.
  std::string mode = "default";
  PlanSettings plan = {};
  /// The number of leading arguments that are donated when they are moved into a call: results
  /// reuse the memory of tensors without other references.
  int donated = 0;
};

/// Statistics of a compiled function.
struct CallStats {
  int64_t traces = 0, hits = 0;  // calls that traced the function, and other calls
  int64_t graph_compiles = 0, kernel_compiles = 0, replans = 0;
  std::map<std::string, int64_t, std::less<>> traces_by_reason = {};  // "first", "size", "dtype"
};

}  // namespace tn
