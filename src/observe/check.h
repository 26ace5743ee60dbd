#pragma once
// check: compares the results of compiled code with the interpreter.
#include "base/function_ref.h"
#include "compiler/compile_graph.h"

namespace tn {

/// How the plans that are checked are made.
using PlanMaker =
    FunctionRef<std::shared_ptr<const Plan>(const Graph& graph, const CompileOptions& options)>;

/// A run of a graph without symbols.
struct CheckedRun {
  const Graph& graph;  // its first outputs are compared
  const CompileOptions& options;
  std::span<const Bound> inputs;
};

/// Computes the same with the interpreter and fails where `outputs` have other bits; the sign of
/// NaN does not count. The error names the op that gives other values although its operands are
/// right: it is found by compiling parts of the graph, with `make`.
void check_run(const CheckedRun& run, std::span<const Bound> outputs, PlanMaker make);

/// "[3, 5]" of a row-major position.
std::string index_text(int64_t at, const Shape& shape);

}  // namespace tn
