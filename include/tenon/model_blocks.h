#pragma once
// Blocks: every op, and the layers that hold parameters. Sizes that are left out are inferred.
//
// Layers have the layouts and initial values of `tn::nn`: channels are axis 1.
#include "tenon/model.h"
#include "tenon/model_layers.h"

namespace tn::model {

/// An op of the table by its name: "softmax", with attributes as text, "axis=[-1]". Its terminals
/// are its operands ("x" is called "input") and "output", or the results as the op names them.
/// `count` is the number of operands of an op that takes a list, and of results of one that gives a
/// list.
Block op_block(std::string_view op, std::string_view attributes = "", int count = 0);

}  // namespace tn::model
