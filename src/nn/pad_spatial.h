#pragma once
// Padding of the spatial axes of images and signals.
#include "ir/attrs.h"
#include "tenon/tensor.h"

namespace tn::nn {

/// PyTorch's names of padding modes.
enum class PaddingMode : uint8_t { zeros, reflect, replicate, circular };
inline constexpr std::string_view kPaddingModes[] = {"zeros", "reflect", "replicate", "circular"};
constexpr ChoiceNames choice_names(PaddingMode) { return kPaddingModes; }

struct SpatialPadding {
  Offsets
      sides;  // before and after each spatial axis, which are the last ones or before the channels
  PaddingMode mode = PaddingMode::zeros;
  bool channels_last = false;
  double value = 0;  // in place of zeros
};
Tensor pad_spatial(const Tensor& x, const SpatialPadding& padding);

}  // namespace tn::nn
