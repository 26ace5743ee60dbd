#pragma once
// The parts that op_table() is made of.
#include "ir/opdef.h"

namespace tn {

/// Ops that graphs have, and those that are names for others, each by name (generated).
std::span<const OpDef* const> graph_ops();
std::span<const OpDef* const> named_ops();

/// What op_table() has beside graph_ops(): named_ops, which the whole library sets when it is
/// loaded (eval/eval.cpp). Null in the runtime library, which only reads graphs.
extern std::span<const OpDef* const> (*further_ops)();

/// Gives every op its rules (generated). The whole library does so when it is loaded.
void install_rules();

}  // namespace tn
