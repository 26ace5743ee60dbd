#pragma once
// The attributes of the convolution primitive and of its adjoint in the weights.
#include "ir/attrs.h"
#include "ir/view.h"
#include "ops/conv_shape.h"
#include "ops/spatial.h"

namespace tn::ops {

/// When recorded: one number for each spatial axis, of padding two (before, after). With the
/// channels last all operands have them there: w is [channels out, kernel axes …, channels].
struct ConvAttrs {
  Ints stride = just(1);
  Offsets padding = just<Offsets>(0);
  Ints input_dilation = just(1), kernel_dilation = just(1);
  int64_t groups = 1;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("stride", a.stride), f("padding", a.padding), f("input_dilation", a.input_dilation);
    f("kernel_dilation", a.kernel_dilation), f("groups", a.groups);
    f("channels_last", a.channels_last);
  }
  /// The axis of the channels of x, and of those of one group in w.
  int channel_axis(int rank) const { return channels_last ? rank - 1 : 1; }
  int first_spatial() const { return channels_last ? 1 : 2; }
};

/// Of the adjoint in the weights: those of the convolution, and the extents of its kernel.
struct ConvWeightsAttrs {
  Ints stride = just(1);
  Offsets padding = just<Offsets>(0);
  Ints input_dilation = just(1), kernel_dilation = just(1);
  int64_t groups = 1;
  bool channels_last = false;
  Offsets kernel;
  static constexpr void fields(auto& a, auto&& f) {
    f("stride", a.stride), f("padding", a.padding), f("input_dilation", a.input_dilation);
    f("kernel_dilation", a.kernel_dilation), f("groups", a.groups);
    f("channels_last", a.channels_last), f("kernel", a.kernel, required);
  }
  ConvAttrs conv() const {
    return {stride, padding, input_dilation, kernel_dilation, groups, channels_last};
  }
};

/// Makes `a` canonical for a convolution of x, [batch, channels, spatial axes …], and w, [channels
/// out, channels / groups, kernel axes …] (or with the channels last), and returns the type of the
/// result. Fails in the name of `op`.
Type settle_conv(std::string_view op, ConvAttrs& a, const Type& x, const Type& w);

/// x̄[n, c, i] = Σ w[o, c, k] · ct[n, o, y] over all (k, y) that meet at i; only the shape of x
/// matters.
Tensor conv_adjoint_in_x(const ConvAttrs& a, const Tensor& ct, const Tensor& x, const Tensor& w);
/// w̄[o, c, k] = Σ x[n, c', i] · ct[n, o, y] over n and all (i, y) that meet at k.
Tensor conv_adjoint_in_w(const ConvAttrs& a, const Tensor& ct, const Tensor& x, const Tensor& w);

/// The arguments of the runtime's convolution, without its arrays.
ConvShape conv_shape(const ConvAttrs& a, const Type& x, const Type& w, const Type& out);

}  // namespace tn::ops
