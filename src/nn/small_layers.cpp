#include "tenon/nn/small_layers.h"

#include "ir/dim.h"
#include "ir/place.h"
#include "tenon/operators.h"

namespace tn::nn {

Tensor Identity::operator()(const Operand& x) const { return taken(x); }

Upsample::Upsample(const UpsampleSettings& settings, Place at) : settings(settings) {
  LocScope scope(at);
  if (settings.size.set != settings.scale_factor.empty())
    fail("Upsample: give either size or scale_factor");
}

Tensor Upsample::operator()(const Operand& given) const {
  return computed(*this, given, [&] {
    Tensor x = taken(given);
    const std::vector<double>& factors = settings.scale_factor;
    Maybe<Ints> size = settings.size;
    Maybe<double> factor;
    if (factors.size() == 1) factor = factors[0];
    if (factors.size() > 1) {
      if (static_cast<int>(factors.size()) != x.rank() - 2)
        fail("Upsample: {} scale factors for {} spatial axes", factors.size(), x.rank() - 2);
      Ints extents;
      for (size_t i = 0; i < factors.size(); ++i) {
        int axis = static_cast<int>(i) + (settings.channels_last ? 1 : 2);
        extents.push_back(static_cast<int64_t>(static_cast<double>(x.dim(axis)) * factors[i]));
      }
      size = extents;
    }
    return interpolate(x, size, factor, settings.mode, settings.align_corners,
                       settings.channels_last);
  });
}

}  // namespace tn::nn
