#pragma once
// Blocks: every op, and the layers that hold parameters. Sizes that are left out are inferred.
#include "tenon/model.h"

namespace tn::model {

/// An op of the table by its name: "softmax", with attributes as text, "axis=-1". Its terminals are
/// the operands, the results are "output", or as the op names them. `count` is the number of
/// operands of an op that takes a list: "x0", "x1", ….
Block op_block(std::string_view op, std::string_view attributes = "", int count = 0);

/// `input @ weight.T + bias`, along the last axis.
struct LinearSettings {
  std::optional<int64_t> in = {};
  bool bias = true;
};
Block Linear(int64_t out, const LinearSettings& settings = {});

}  // namespace tn::model
