#pragma once
// Blocks: every op, and the layers that hold parameters. Sizes that are left out are inferred.
//
// Layers have the layouts and initial values of `tn::nn`: channels are axis 1.
#include <span>

#include "tenon/model.h"

namespace tn::model {

/// An op of the table by its name: "softmax", with attributes as text, "axis=[-1]". Its terminals
/// are its operands ("x" is called "input") and "output", or the results as the op names them.
/// `count` is the number of operands of an op that takes a list, and of results of one that gives a
/// list.
Block op_block(std::string_view op, std::string_view attributes = "", int count = 0);

struct LinearSettings {
  std::optional<int64_t> in = {};
  bool bias = true;
};
/// `input @ weight.T + bias`, along the last axis.
Block Linear(int64_t out, const LinearSettings& settings = {});

/// The rows of the weight, [count, dims], at integers of any shape.
Block Embedding(int64_t count, int64_t dims);

/// One number for all spatial axes, or one for each.
struct ConvSettings {
  Ints kernel_size = {};
  std::optional<int64_t> in = {};
  Ints stride = {1}, padding = {0}, dilation = {1};
  std::string padding_mode = "given";  // "same", "valid"
  int64_t groups = 1;
  bool bias = true;
  Ints output_padding = {0};  // of transposed ones
};
/// Kernels slid over [batch, in, spatial axes].
Block Conv1d(int64_t out, const ConvSettings& settings);
Block Conv2d(int64_t out, const ConvSettings& settings);
Block Conv3d(int64_t out, const ConvSettings& settings);
/// Their adjoints in the input. `padding_mode` is "given".
Block ConvTranspose1d(int64_t out, const ConvSettings& settings);
Block ConvTranspose2d(int64_t out, const ConvSettings& settings);
Block ConvTranspose3d(int64_t out, const ConvSettings& settings);

struct NormSettings {
  std::optional<int64_t> size = {};  // of the channels, or of the last axis
  double eps = 1e-5;
  double momentum = 0.1;  // of batch norms: how far running statistics move to those of a batch
  bool affine = true;
  bool bias = true;
};
/// Normalises each channel over everything else, by the statistics of the batch in training, which
/// the states `running_mean` and `running_var` follow, and by these otherwise.
Block BatchNorm1d(const NormSettings& settings = {});
Block BatchNorm2d(const NormSettings& settings = {});
Block BatchNorm3d(const NormSettings& settings = {});
/// Along the last axis, or the last ones of these extents.
Block LayerNorm(const NormSettings& settings = {}, std::span<const int64_t> extents = {});
Block RMSNorm(const NormSettings& settings = {});
/// Each example and each of `groups` runs of channels over everything else.
Block GroupNorm(int64_t groups, const NormSettings& settings = {});
Block InstanceNorm(const NormSettings& settings = {.affine = false});

struct PoolSettings {
  Maybe<Ints> stride = {};  // left out: the size of the window
  Ints padding = {0}, dilation = {1};
  bool count_include_pad = true;
};
/// The largest element, or the mean, of each window over [batch, channels, spatial axes].
Block MaxPool1d(const Ints& kernel_size, const PoolSettings& settings = {});
Block MaxPool2d(const Ints& kernel_size, const PoolSettings& settings = {});
Block MaxPool3d(const Ints& kernel_size, const PoolSettings& settings = {});
Block AvgPool1d(const Ints& kernel_size, const PoolSettings& settings = {});
Block AvgPool2d(const Ints& kernel_size, const PoolSettings& settings = {});
Block AvgPool3d(const Ints& kernel_size, const PoolSettings& settings = {});
/// Of each channel as a whole: [batch, channels].
Block GlobalAvgPool1d();
Block GlobalAvgPool2d();
Block GlobalAvgPool3d();
Block GlobalMaxPool1d();
Block GlobalMaxPool2d();
Block GlobalMaxPool3d();
/// The mean of each of so many parts of every spatial axis, which may share elements.
Block AdaptiveAvgPool1d(const Ints& output_size);
Block AdaptiveAvgPool2d(const Ints& output_size);
Block AdaptiveAvgPool3d(const Ints& output_size);

/// The axes from `start_axis` to `end_axis` as one.
Block Flatten(int64_t start_axis = 1, int64_t end_axis = -1);
/// In training, sets elements to zero with probability `p` and divides the others by `1 - p`.
Block Dropout(double p = 0.5);

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
