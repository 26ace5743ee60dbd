#pragma once
// Plans as one C file without dependencies.
#include <memory>
#include <string>

#include "ir/graph.h"
#include "plan/plan.h"
#include "tenon/callback.h"

namespace tn::source {

struct CSource {
  std::string header;     // declarations alone, for callers
  std::string source;     // the whole file: it does not include the header
  std::string constants;  // the bytes that the last pointer of `inputs` has to point to, if any
};

/// A function of the file. The steps of its plan must have kept their sources: it was compiled with
/// a report. It may take no run-time numbers.
struct CFunction {
  std::string name;
  std::shared_ptr<const Plan> plan;
  std::vector<TypeRef> in, out;          // `in` without the constants
  std::vector<std::string> input_names;  // empty: without names
};

/// Plans of graphs among attributes, made like those of the functions.
using PlanOf = Callback<std::shared_ptr<const Plan>(const Graph& body)>;

/// For each function `int NAME_run(const void *const *inputs, void *const *outputs, void *arena)`,
/// which runs the plan over NAME_ARENA_BYTES bytes of the caller's, aligned to 64, and returns 0. A
/// step that has no form in C is an error that names its op.
CSource c_source(std::span<const CFunction> functions, const PlanOf& plan_of);

}  // namespace tn::source
