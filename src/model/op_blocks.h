#pragma once
// Ops as blocks.
#include "ir/opdef.h"
#include "tenon/model.h"

namespace tn::model {

/// "BatchNorm2d" of "batch_norm2d".
std::string block_name(std::string_view op);
/// The terminals of an op; `count` operands stand for a list.
std::vector<Terminal> op_terminals(const OpDef& op, int count);

}  // namespace tn::model
