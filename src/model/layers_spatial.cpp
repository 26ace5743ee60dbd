// Layers over the spatial axes of [batch, channels, spatial axes …].
#include <algorithm>

#include "model/layer.h"
#include "model/spatial_layers.h"
#include "tenon/operators.h"
#include "tenon/ops.h"

namespace tn::model {

using nn::one_per_axis;

std::string spatial_axes(int axes) {
  std::string text;
  for (int i = 0; i < axes; ++i) text += format(" d{}", i);
  return text;
}

std::string short_text(const Ints& list) {
  bool equal = std::ranges::all_of(list, [&](int64_t i) { return i == list[0]; });
  if (equal && list.size() > 0) return format("{}", list[0]);
  std::vector<std::string> items;
  for (int64_t i : list) items.push_back(format("{}", i));
  return format("[{}]", join(items, ", "));
}

namespace {

/// Settings with one number for each axis.
ConvSettings checked(std::string_view kind, ConvSettings given, int axes) {
  if (given.kernel_size.size() == 0)
    fail(Hint{format("{}(out, kernel_size=3)", kind)}, "{}: kernel_size is missing", kind);
  given.kernel_size = one_per_axis(kind, "kernel_size", given.kernel_size, axes);
  given.stride = one_per_axis(kind, "stride", given.stride, axes);
  given.padding = one_per_axis(kind, "padding", given.padding, axes, 0);
  given.dilation = one_per_axis(kind, "dilation", given.dilation, axes);
  given.output_padding = one_per_axis(kind, "output_padding", given.output_padding, axes, 0);
  nn::check_sizes(kind, {{"groups", given.groups}});
  if (given.padding_mode != "given" && given.padding_mode != "same" &&
      given.padding_mode != "valid")
    fail("{}: padding must be numbers, 'same' or 'valid', not '{}'", kind, given.padding_mode);
  return given;
}

/// What convolutions and their adjoints share: the weight is `channels`, then the kernel.
Layer conv_layer(std::string kind, int64_t out, const ConvSettings& s, int axes,
                 std::string_view channels) {
  Layer layer(kind);
  layer.size("in", s.in).size("out", out);
  nn::check_divides(kind, {"groups", s.groups}, {{"out", out}});
  if (s.in) nn::check_divides(kind, {"groups", s.groups}, {{"in", *s.in}});
  layer.setting("kernel_size", short_text(s.kernel_size));
  layer.setting("stride", short_text(s.stride), std::string("1"));
  layer.setting("padding", s.padding_mode == "given" ? short_text(s.padding) : s.padding_mode,
                std::string("0"));
  layer.setting("dilation", short_text(s.dilation), std::string("1"));
  layer.setting("groups", s.groups, int64_t{1}).setting("bias", s.bias, true);
  std::string kernel;
  for (int64_t size : s.kernel_size) kernel += format(" {}", size);
  layer.input("input", format("batch in{}", spatial_axes(axes)))
      .parameter("weight", format("{}{}", channels, kernel), drawn_by_weight);
  if (s.bias) layer.parameter("bias", "out", drawn_by_weight);
  return layer;
}

Tensor bias_of(const BlockCall& call) { return call.in.size() > 2 ? call.in[2] : Tensor(); }

}  // namespace

Block conv_block(int axes, int64_t out, const ConvSettings& given) {
  std::string kind = format("Conv{}d", axes);
  ConvSettings s = checked(kind, given, axes);
  Layer layer = conv_layer(kind, out, s, axes, s.groups == 1 ? "out in" : "out in_group");
  layer.multiple("in", s.groups, "in_group");
  bool keeps = s.padding_mode == "same" && s.stride == one_per_axis(kind, "stride", {1}, axes);
  std::string extents = " _ _ _";
  extents = keeps ? spatial_axes(axes) : extents.substr(0, 2 * static_cast<size_t>(axes));
  return layer.computes("batch out" + extents, [s, axes](const BlockCall& call) {
    constexpr decltype(&conv1d) kConvs[] = {conv1d, conv2d, conv3d};
    return kConvs[axes - 1](call.in[0], call.in[1], bias_of(call), s.stride, s.padding, s.dilation,
                            s.groups, false, s.padding_mode);
  });
}

Block conv_transpose_block(int axes, int64_t out, const ConvSettings& given) {
  std::string kind = format("ConvTranspose{}d", axes);
  ConvSettings s = checked(kind, given, axes);
  if (s.padding_mode != "given") fail("{}: padding must be numbers", kind);
  Layer layer = conv_layer(kind, out, s, axes, s.groups == 1 ? "in out" : "in out_group");
  layer.multiple("out", s.groups, "out_group");
  layer.setting("output_padding", short_text(s.output_padding), std::string("0"));
  std::string extents = std::string(" _ _ _").substr(0, 2 * static_cast<size_t>(axes));
  return layer.computes("batch out" + extents, [s, axes](const BlockCall& call) {
    constexpr decltype(&conv_transpose1d) kConvs[] = {conv_transpose1d, conv_transpose2d,
                                                      conv_transpose3d};
    return kConvs[axes - 1](call.in[0], call.in[1], bias_of(call), s.stride, s.padding,
                            s.output_padding, s.groups, s.dilation, false);
  });
}

Block adaptive_avg_pool_block(int axes, const Ints& output_size) {
  std::string kind = format("AdaptiveAvgPool{}d", axes);
  Ints sizes = one_per_axis(kind, "output_size", output_size, axes);
  std::string extents;
  for (int64_t size : sizes) extents += format(" {}", size);
  return Layer(kind)
      .setting("output_size", short_text(sizes))
      .input("input", "batch channels" + spatial_axes(axes))
      .computes("batch channels" + extents,
                [=](const BlockCall& call) { return tn::adaptive_avg_pool(call.in[0], sizes); });
}

Block Conv1d(int64_t out, const ConvSettings& s) { return conv_block(1, out, s); }
Block Conv2d(int64_t out, const ConvSettings& s) { return conv_block(2, out, s); }
Block Conv3d(int64_t out, const ConvSettings& s) { return conv_block(3, out, s); }
Block ConvTranspose1d(int64_t out, const ConvSettings& s) {
  return conv_transpose_block(1, out, s);
}
Block ConvTranspose2d(int64_t out, const ConvSettings& s) {
  return conv_transpose_block(2, out, s);
}
Block ConvTranspose3d(int64_t out, const ConvSettings& s) {
  return conv_transpose_block(3, out, s);
}

Block AdaptiveAvgPool1d(const Ints& size) { return adaptive_avg_pool_block(1, size); }
Block AdaptiveAvgPool2d(const Ints& size) { return adaptive_avg_pool_block(2, size); }
Block AdaptiveAvgPool3d(const Ints& size) { return adaptive_avg_pool_block(3, size); }

}  // namespace tn::model
