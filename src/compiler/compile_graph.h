#pragma once
// compile: from a Graph to a Plan. The one way anything runs.
#include "base/at_fork.h"
#include "ir/decision.h"
#include "ir/graph.h"
#include "plan/plan.h"
#include "plan/target.h"

namespace tn {

/// How much work goes into a plan.
enum class Effort : uint8_t {
  e0,  // groups elementwise ops and interprets them: microseconds to a plan, no code generation
  e1,  // one round of simplification, fusion, planned memory, machine code
  e2,  // the whole pipeline
};

struct CompileOptions {
  Effort effort = Effort::e0;
  int runtime_scalars = 0;            // the first constants of the graph, given at every run
  std::vector<Bound> constants = {};  // values of the last inputs: known now, kept by the plan
  std::vector<bool> donated = {};     // by input: its memory may be taken for results
  std::vector<Binding> sizes = {};    // likely values of the symbols: hints only
  std::vector<std::string> off = {};  // passes and fusions that are switched off, by name
  /// Memory budget in bytes. Values are rematerialised until the plan fits or cannot shrink
  /// further. 0: unlimited.
  int64_t memory_limit = 0;
  std::vector<std::string> on = {};  // passes that are off by default, by name
  MemoryPlanning memory_planning = MemoryPlanning::usual;
  bool one_thread = false;      // a run stays on the thread that calls it
  bool checks_indices = false;  // ops that check are calls of the library, not parts of kernels
  bool is_function = false;     // processes may have traced it for other sizes or numbers
  Target target = host_target();
  Products products = wanted_products();

  MemoryPlanning planning() const {
    if (memory_planning != MemoryPlanning::usual) return memory_planning;
    return effort == Effort::e2 ? MemoryPlanning::best_fit : MemoryPlanning::greedy;
  }
  /// Those of the graphs among the attributes of ops.
  CompileOptions of_bodies() const {
    return {.effort = effort,
            .memory_planning = memory_planning,
            .checks_indices = checks_indices,
            .target = target,
            .products = products};
  }
};

struct KernelSet;

/// A plan and the kernel set it was made from, for reports (compiler/report.h).
struct Compilation {
  std::shared_ptr<const KernelSet> set;  // its graph and decisions; what plans add to it may change
  std::shared_ptr<const Plan> plan;
  std::vector<Binding> sizes;  // of the symbols
  /// Of a graph over devices, which has no set of its own.
  std::shared_ptr<const std::vector<Compilation>> parts = {};
};

Compilation compilation_of(const Graph& graph, const CompileOptions& options);
inline std::shared_ptr<const Plan> compile(const Graph& graph, const CompileOptions& options) {
  return compilation_of(graph, options).plan;
}

/// What compiling took so far.
struct CompileCounts {
  int64_t plans = 0;   // made, one for each sizes
  int64_t graphs = 0;  // optimised: once more for sizes that break a guard
  int64_t compiled = 0, from_memory = 0, from_disk = 0;  // kernels
  int64_t interpreted = 0;                               // kernels without machine code
  double passes_ms = 0, fusion_ms = 0, lowering_ms = 0, code_ms = 0, memory_ms = 0;
};

class DeviceCopies;

/// A plan for a device, with copies of its constants there.
std::shared_ptr<const PlacedPlan> on_device(Device device, std::shared_ptr<const Plan> plan,
                                            DeviceCopies& copies);

/// A graph over devices, compiled.
class PlacedCode {
 public:
  virtual ~PlacedCode() = default;
  virtual Compilation compilation(std::span<const Binding> sizes) const = 0;
};

/// A graph compiled for any values of the symbols in it. Threads may share it.
class CompiledGraph {
 public:
  CompiledGraph(Graph graph, CompileOptions options);
  /// With sets that were made before (compiler/set_bytes.h): they serve where they can. Constants
  /// that only they hold, packed, have no data among the options.
  CompiledGraph(Graph graph, CompileOptions options, std::vector<KernelSet> sets);
  ~CompiledGraph();

  /// The plan for these sizes, made on first use from kernels that serve all sizes. The most
  /// recently used plans are kept.
  std::shared_ptr<const Plan> plan(std::span<const Binding> sizes = {}) const {
    return compilation(sizes).plan;
  }
  Compilation compilation(std::span<const Binding> sizes = {}) const;
  /// Up to the last plan made: it does not wait for one that is being made.
  CompileCounts counts() const;
  /// The given sets, and those made since then for recently used sizes.
  std::vector<KernelSet> sets() const;
  /// How many plans were made.
  int64_t planned() const { return counts().plans; }

 private:
  struct Made;
  Compilation make(Made& made, std::span<const Binding> sizes) const;
  Compilation plan_that_fits(Made& made, std::span<const Binding> sizes) const;
  std::shared_ptr<KernelSet> kernels_for(Made& made, std::span<const Binding> sizes) const;
  std::unique_ptr<KernelSet> made_for(std::span<const Binding> sizes, CompileCounts& counts) const;

  Graph graph_;
  CompileOptions options_;
  std::vector<KernelSet> given_;              // never changed: every process takes copies
  std::unique_ptr<const PlacedCode> placed_;  // of graphs with devices
  PerProcess<Made> made_;
};

}  // namespace tn
