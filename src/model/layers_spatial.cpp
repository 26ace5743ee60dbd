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

Block AdaptiveAvgPool1d(const Ints& size) { return adaptive_avg_pool_block(1, size); }
Block AdaptiveAvgPool2d(const Ints& size) { return adaptive_avg_pool_block(2, size); }
Block AdaptiveAvgPool3d(const Ints& size) { return adaptive_avg_pool_block(3, size); }

}  // namespace tn::model
