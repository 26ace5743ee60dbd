#pragma once
// compile: from a Graph to a Plan. The one way anything runs.
#include "ir/decision.h"
#include "ir/graph.h"
#include "runtime/plan.h"

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
  std::vector<std::string> off = {};  // passes and fusions that are switched off, by name
};

/// Filled for readers: the stages of a compilation as text, and what was decided. The steps of the
/// plan keep their sources.
struct CompileReport {
  std::string optimized, loops, kernels, plan;
  Decisions decisions;
};

std::shared_ptr<const Plan> compile(const Graph& graph, const CompileOptions& options,
                                    CompileReport* report = nullptr);

}  // namespace tn
