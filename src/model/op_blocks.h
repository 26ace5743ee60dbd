#pragma once
// Ops as blocks.
#include "ir/opdef.h"
#include "tenon/model.h"

namespace tn::model {

/// "BatchNorm2d" of "batch_norm2d".
std::string block_name(std::string_view op);

/// What is given when the block of an op is made.
struct OpSettings {
  AttrBuffer attrs;
  Tensors fixed = {};     // by operand: constants; null: a terminal
  int count = 0;          // of the tensors in a list, or of the results where they are one
  std::string text = {};  // for readers
};
Block op_block(const OpDef& op, OpSettings settings);

}  // namespace tn::model
