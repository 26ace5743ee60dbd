#pragma once
// compile: a function traced once for every combination of argument types, then run as one plan.
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tenon/transforms.h"

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
  /// So many arguments, the first ones, are given away by calls whose list of arguments is moved
  /// in: results take the memory of those that nobody else holds.
  int donated = 0;
};

/// What the calls of a compiled function did.
struct CallStats {
  int64_t traces = 0, hits = 0;  // calls that ran the function itself, and that did not
  int64_t graph_compiles = 0, kernel_compiles = 0, replans = 0;
  std::map<std::string, int64_t, std::less<>> traces_by_reason = {};  // "first", "size", "dtype"
};

/// A function that runs as a plan. Copies share their plans; calls may come from any thread.
class CompiledFunction {
 public:
  CompiledFunction(Function f, CompileSettings settings);
  Tensors operator()(const Tensors& args) const;
  /// Arguments that were given away are null afterwards; they are there again when a run fails
  /// before it has written there.
  Tensors operator()(Tensors&& args) const;
  /// A stage of the compilation for arguments like these, as text: "graph", "optimized", "loops",
  /// "kernels", "plan", "memory" or "decisions".
  std::string show(std::string_view stage, const Tensors& args) const;
  CallStats stats() const;
  /// Why the function was traced, each time: "argument 0.shape[0] was 8, now 16".
  std::vector<std::string> why_recompiled() const;
  /// What the compiler makes of calls with arguments like these, and why, as text.
  std::string explain(const Tensors& args) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// `f` compiled when it is first called with tensors of some types, and run from then on without
/// calling it again. Tensors that it closes over are constants. Under a transform, and inside
/// another compiled function, it is a part of what is transformed or compiled.
///
///     auto gelu = tn::compile([](const tn::Tensors& x) {
///       return tn::Tensors{x[0] * (1 + tn::erf(x[0] / std::sqrt(2.f))) / 2};
///     });
///     gelu({x});
CompiledFunction compile(Function f, CompileSettings settings = {});
CompiledFunction compile(Function f, int optimization_level);

/// From here on compiled functions call the function itself, or (false) no more. Returns what was
/// said before. `TENON_DISABLE_COMPILE=1` in the environment says so from the start.
bool disable_compile(bool disabled = true);
bool is_compile_disabled();

}  // namespace tn
