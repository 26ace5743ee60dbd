#pragma once
// Blocks: every op, and the layers that hold parameters. Sizes that are left out are inferred.
//
// Layers have the layouts and initial values of `tn::nn`: channels are axis 1.
#include <span>

#include "tenon/model.h"
#include "tenon/model_layers.h"

namespace tn::model {

/// An op of the table by its name: "softmax", with attributes as text, "axis=[-1]". Its terminals
/// are its operands ("x" is called "input") and "output", or the results as the op names them.
/// `count` is the number of operands of an op that takes a list, and of results of one that gives a
/// list.
Block op_block(std::string_view op, std::string_view attributes = "", int count = 0);

/// The mean of each of so many parts of every spatial axis, which may share elements.
Block AdaptiveAvgPool1d(const Ints& output_size);
Block AdaptiveAvgPool2d(const Ints& output_size);
Block AdaptiveAvgPool3d(const Ints& output_size);

struct AttentionSettings {
  bool bias = true;
  bool causal = false;  // a position sees those up to itself
};
/// `softmax(q @ k.T / sqrt(depth)) @ v` in `num_heads` heads. "key" and "value" may be left
/// unconnected: then "input" attends to itself.
Block MultiHeadAttention(int64_t dims, int64_t num_heads, const AttentionSettings& settings = {});

/// Losses of "input" and "target". `reduction` is "none", "mean" or "sum".
Block MSE(std::string_view reduction = "mean");
Block L1(std::string_view reduction = "mean");
Block Huber(double delta = 1.0, std::string_view reduction = "mean");
/// From logits.
Block BinaryCrossEntropy(std::string_view reduction = "mean");
/// From logits along `axis`; the target is the classes.
Block CrossEntropy(std::string_view reduction = "mean", double label_smoothing = 0.0,
                   int64_t axis = -1);

}  // namespace tn::model
