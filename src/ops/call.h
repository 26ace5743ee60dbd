#pragma once
// Calls of graphs: what `checkpoint` and `custom_function` record.
#include "ir/body.h"

namespace tn::ops {

enum class CallKind : uint8_t {
  plain,
  remat,   // derivatives recompute its values instead of keeping them
  custom,  // its derivatives are the user's: the last operand is the number of the rules
};

ChoiceNames choice_names(CallKind);

struct CallAttrs {
  CallKind kind = CallKind::plain;
  GraphRef graph;
  static constexpr void fields(auto& a, auto&& f) {
    f("kind", a.kind), f("graph", a.graph, required);
  }
};

/// Whether operand k of the node is the number of the rules.
bool leads_to_rules(const Node& node, int k);

/// Operands are the graph's inputs, of exactly its types.
Tensors emit_call(CallKind kind, GraphRef graph, const Tensors& in);

}  // namespace tn::ops
