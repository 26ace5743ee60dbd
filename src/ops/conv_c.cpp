// What convolutions are told in C.
#include "base/error.h"
#include "ops/conv_attrs.h"

namespace tn::ops {

std::string c_conv_shape(const ConvAttrs& a, const CPlace& x, const CPlace& w, const CPlace& y) {
  ConvArgs args = conv_args(a, x.type, w.type, y.type);
  int channel = a.channel_axis(x.type.rank()), axes = x.type.rank() - 2;
  std::string text = format(
      "  static const tn_conv shape = {{\n"
      "      .images = {}, .groups = {}, .channels_in = {}, .channels_out = {},\n"
      "      .x_image = {}, .x_channel = {}, .w_out = {}, .w_in = {}, .y_image = {}, "
      ".y_channel = {},\n      .axes = {{",
      args.batch, args.groups, args.in_channels, args.out_channels, x.at.strides[0],
      x.at.strides[channel], w.at.strides[0], w.at.strides[channel], y.at.strides[0],
      y.at.strides[channel]);
  std::vector<std::string> lines;
  for (int i = 0; i < 3; ++i) {
    const ConvAxis& axis = args.axes[i];
    int k = i - (3 - axes) + a.first_spatial();
    bool is_there = i >= 3 - axes;
    lines.push_back(
        format("{{.in = {}, .taps = {}, .out = {}, .stride = {}, .low = {}, .dilation = {},\n"
               "                .kernel_dilation = {}, .x_step = {}, .w_step = {}, .y_step = {}}}",
               axis.in, axis.taps, axis.out, axis.stride, axis.low, axis.input_dilation,
               axis.kernel_dilation, is_there ? x.at.strides[k] : 0, is_there ? w.at.strides[k] : 0,
               is_there ? y.at.strides[k] : 0));
  }
  return text + format("{}}}}};\n", join(lines, ",\n               "));
}

// A table, rows in blocks of at most 12, and the planes of one image with a block of columns behind
// them, in the words of backend/source/c_products.cpp.
int64_t c_conv_scratch(const ConvArgs& args, int64_t table, int64_t deep, DType type) {
  int64_t planes = args.in_channels;
  for (const ConvAxis& axis : args.axes) {
    int64_t reach = (axis.out - 1) * axis.stride + (axis.taps - 1) * axis.kernel_dilation;
    planes *= axis.kernel_dilation == 1 ? std::min(axis.stride, axis.taps) : axis.stride;
    planes *= reach / axis.stride + 1;
  }
  int64_t rows = (args.out_channels + 12) * deep;
  return (table + 8) * 8 + (rows + planes + 64) * static_cast<int64_t>(size_of(type));
}

}  // namespace tn::ops
