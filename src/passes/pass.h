#pragma once
// Passes: functions from Graph to Graph, and the order they run in.
#include <span>

#include "base/function_ref.h"
#include "ir/decision.h"
#include "ir/graph.h"
#include "runtime/plan.h"

namespace tn {

/// What a pass may know besides the graph.
struct PassContext {
  /// Values of the graph's last inputs. A pass that finds further ones appends them here and adds
  /// inputs at the end.
  std::vector<Bound> constants = {};
  /// The outputs of a graph whose inputs are all given.
  std::vector<Bound> (*evaluate)(const Graph& graph, std::span<const Bound> inputs) = nullptr;
  Decisions* decisions = nullptr;  // null: nobody asks

  int first_constant(const Graph& graph) const {
    return graph.inputs() - static_cast<int>(constants.size());
  }
};

/// The result computes the same values as the given graph, bit for bit.
struct Pass {
  std::string_view name, reason;
  Graph (*run)(const Graph& graph, PassContext& context);
};

}  // namespace tn
