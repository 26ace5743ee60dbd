#pragma once
// A report of the memory that a run of a plan needs.
#include "compiler/compile_graph.h"
#include "ir/place.h"

namespace tn {

/// In bytes. Inputs do not count.
struct MemoryReport {
  std::string_view planning;  // how places were found: "best_fit"
  bool is_least = false;      // it is known that these steps, in this order, need no less
  int64_t peak = 0;           // arena and outputs
  int64_t lower_bound = 0;    // the most that is needed at one step; no placement can do with less
  int64_t arena = 0, outputs = 0;
  int64_t workspace = 0;  // the most that a step has for itself
  int64_t constants = 0;  // kept by the plan between runs
  int64_t donated = 0;    // memory of donated inputs that is reused
  int64_t in_place = 0;   // results that lie where an operand did
  struct Live {
    int64_t bytes;
    std::string name;  // of the step that made it
    Loc loc;
    bool output;
  };
  int32_t step = -1;  // where most is needed; -1: the plan has no steps
  std::string step_name;
  Loc step_loc;
  std::vector<Live> live;       // the ten largest then, the largest first
  std::vector<int64_t> needed;  // at every step

  double fragmentation() const {
    return peak ? 1 - static_cast<double>(lower_bound) / static_cast<double>(peak) : 0;
  }
};

std::string_view name_of(MemoryPlanning planning);

/// The bytes that a run takes: what the report has as its peak. Of a plan for several devices: the
/// part that needs most.
int64_t memory_needed(const Plan& plan);
MemoryReport memory_report(const Plan& plan);
std::string to_text(const MemoryReport& report);

/// What an error says about a plan that needs more than `limit`. `whose` peak: " of a worker".
std::string over_limit_text(const MemoryReport& report, int64_t limit, Effort effort,
                            std::string_view whose = "");

}  // namespace tn
