#include "tenon/nn/convolution.h"

#include "nn/checks.h"
#include "nn/initial.h"
#include "tenon/operators.h"

namespace tn::nn {
namespace {

/// Draws the kernels, `axes` of which are spatial, and the bias.
template <class Conv>
void draw(std::string_view layer, Conv& conv, int64_t in_channels, int64_t out_channels,
          const Ints& kernel_size, int axes) {
  int64_t groups = conv.settings.groups;
  check_sizes(layer,
              {{"in_channels", in_channels}, {"out_channels", out_channels}, {"groups", groups}});
  check_divides(layer, {"groups", groups},
                {{"in_channels", in_channels}, {"out_channels", out_channels}});
  if (kernel_size.size() != 1 && kernel_size.size() != axes)
    fail("{}: kernel_size must be an integer, or {} of them", layer, axes);
  Shape shape{out_channels, in_channels / groups};
  int64_t inputs = in_channels / groups;
  for (int i = 0; i < axes; ++i) {
    int64_t size = kernel_size[kernel_size.size() == 1 ? 0 : i];
    check_sizes(layer, {{"kernel_size", size}});
    shape.push_back(size);
    inputs *= size;
  }
  conv.weight = drawn_uniform(shape, inputs);
  if (conv.settings.bias) conv.bias = drawn_uniform({out_channels}, inputs);
}

int64_t in_channels(const Tensor& weight, const ConvSettings& settings) {
  return weight.dim(1) * settings.groups;
}

}  // namespace

Conv1d::Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
               const ConvSettings& settings)
    : settings(settings) {
  draw("Conv1d", *this, in_channels, out_channels, {kernel_size}, 1);
}

Tensor Conv1d::operator()(const Operand& x) const {
  return computed(*this, x, [&] {
    check_shape("Conv1d", x, {"batch", in_channels(weight, settings), "length"});
    return tn::conv1d(x, weight, bias, settings.stride, settings.padding, settings.dilation,
                      settings.groups);
  });
}

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, const Ints& kernel_size,
               const ConvSettings& settings)
    : settings(settings) {
  draw("Conv2d", *this, in_channels, out_channels, kernel_size, 2);
}

Tensor Conv2d::operator()(const Operand& x) const {
  return computed(*this, x, [&] {
    check_shape("Conv2d", x, {"batch", in_channels(weight, settings), "height", "width"});
    return tn::conv2d(x, weight, bias, settings.stride, settings.padding, settings.dilation,
                      settings.groups);
  });
}

}  // namespace tn::nn
