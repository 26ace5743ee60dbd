#pragma once
// Passes: functions from Graph to Graph, and the order they run in.
#include <algorithm>
#include <span>

#include "base/function_ref.h"
#include "ir/decision.h"
#include "ir/graph.h"
#include "plan/product_setting.h"
#include "plan/target.h"
#include "runtime/buffer.h"

namespace tn {

/// What a pass may know besides the graph.
struct PassContext {
  /// Values of the graph's last inputs. A pass that finds further ones appends them here and adds
  /// inputs at the end.
  std::vector<Bound> constants = {};
  /// The outputs of a graph whose inputs are all given.
  std::vector<Bound> (*evaluate)(const Graph& graph, std::span<const Bound> inputs) = nullptr;
  Decisions* decisions = nullptr;  // null: not reported
  /// The first constants of the graph, given at every run: `run_passes` hides their values.
  int runtime_scalars = 0;
  Target target = host_target();
  Products products = Products::highest;
  std::span<const std::string> off = {};  // what is switched off, by name
  std::span<const std::string> on = {};   // what is switched on, by name
  std::span<const Binding> sizes = {};    // of the symbols: where only the cost depends on them

  bool is_off(std::string_view name) const { return std::ranges::count(off, name) > 0; }
  bool is_asked_for(std::string_view name) const { return std::ranges::count(on, name) > 0; }
  /// Records a decision if decisions are reported; `what` and `reason` make its text.
  void decide(std::string_view pass, bool made, Loc loc, FunctionRef<std::string()> what,
              std::string_view reason) const {
    if (decisions) decisions->push_back({pass, made, what(), std::string(reason), loc});
  }

  int64_t bytes(TypeRef type) const {
    return type->elements >= 0 ? type->bytes()
                               : tn::evaluate(type->shape.elements(), sizes) * size_of(type->dtype);
  }

  int first_constant(const Graph& graph) const {
    return graph.inputs() - static_cast<int>(constants.size());
  }
};

/// The result computes the same values as the given graph, bit for bit. An opt-in pass may change
/// the rounding.
struct Pass {
  std::string_view name, reason;
  Graph (*run)(const Graph& graph, PassContext& context);
  bool asked_for = false;
  bool runs_when_off = false;  // it does less then
};

}  // namespace tn
