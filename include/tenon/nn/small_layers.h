#pragma once
// Layers that are a few lines each: Identity, Upsample.
#include "tenon/nn/module.h"

namespace tn::nn {

/// What it is given, to stand in for another layer.
class Identity : public Module<Identity> {
 public:
  Tensor operator()(const Operand& x) const;
  static void fields(auto&, auto&&) {}
};

struct UpsampleSettings {
  Maybe<Ints> size = {};                  // extents: one number for all axes, or one each
  std::vector<double> scale_factor = {};  // or factors of those that there are
  std::string mode = "nearest";           // "linear" (of two axes, bilinear), "cubic"
  bool align_corners = false;             // the first and last elements stay where they are
  bool channels_last = false;
};

/// Resizes the 1 to 3 spatial axes of [batch, channels, spatial axes ...].
///
///     tn::Tensor large = tn::nn::Upsample({.scale_factor = {2}})(x);
class Upsample : public Module<Upsample> {
 public:
  UpsampleSettings settings;

  explicit Upsample(const UpsampleSettings& settings, Place at = Place::current());
  Tensor operator()(const Operand& x) const;
  static void fields(auto& m, auto&& f) {
    f("scale_factor", m.settings.scale_factor), f("mode", m.settings.mode);
    f("align_corners", m.settings.align_corners), f("channels_last", m.settings.channels_last);
    if (m.settings.size) f("size", m.settings.size.value);
  }
};

}  // namespace tn::nn
