#pragma once
// The attributes of the convolution primitive.
#include "ir/attrs.h"
#include "ops/spatial.h"

namespace tn::ops {

/// When recorded: one number for each spatial axis, of padding two (before, after).
struct ConvAttrs {
  Ints stride = just(1), padding = just(0), input_dilation = just(1), kernel_dilation = just(1);
  int64_t groups = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("stride", a.stride), f("padding", a.padding), f("input_dilation", a.input_dilation);
    f("kernel_dilation", a.kernel_dilation), f("groups", a.groups);
  }
};

/// Makes `a` canonical for a convolution of x, [batch, channels, spatial axes …], and w, [channels
/// out, channels / groups, kernel axes …], and returns the type of the result. Fails in the name of
/// `op`.
Type settle_conv(std::string_view op, ConvAttrs& a, const Type& x, const Type& w);

}  // namespace tn::ops
