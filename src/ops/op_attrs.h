#pragma once
// Attributes that more than the file of their op reads; slices, products, convolutions, indices and
// control flow have headers of their own.
#include <cmath>

#include "ir/attrs.h"

namespace tn::ops {

struct ShapeAttrs {
  Shape shape;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape, required); }
};

struct PermAttrs {
  Maybe<Perm> axes;
  static constexpr void fields(auto& a, auto&& f) { f("axes", a.axes); }
};

struct FlipAttrs {
  Maybe<Axes> axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct ConcatAttrs {
  Maybe<Axis> axis = Axis(0);
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

enum class PadMode : uint8_t { constant, edge, reflect, wrap };
inline constexpr std::string_view kPadModes[] = {"constant", "edge", "reflect", "wrap"};
constexpr ChoiceNames choice_names(PadMode) { return kPadModes; }

struct PadWithAttrs {
  Offsets pad_width;
  PadMode mode = PadMode::constant;
  static constexpr void fields(auto& a, auto&& f) {
    f("pad_width", a.pad_width, required), f("mode", a.mode);
  }
};

struct IotaAttrs {
  Shape shape;
  Axis axis = 0;
  DType dtype = DType::i64;
  static constexpr void fields(auto& a, auto&& f) {
    f("shape", a.shape, required), f("axis", a.axis), f("dtype", a.dtype);
  }
};

/// Of sums and products, with and without NaN.
struct SumAttrs {
  Maybe<Axes> axis;
  Maybe<DType> dtype;
  bool keepdims = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("dtype", a.dtype), f("keepdims", a.keepdims);
  }
};

struct SortAttrs {
  Axis axis = -1;
  bool descending = false, stable = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("descending", a.descending), f("stable", a.stable);
  }
};

struct TopKAttrs {
  Dim k = 1;
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("k", a.k, required), f("axis", a.axis); }
};

enum class SearchSide : uint8_t { left, right };
inline constexpr std::string_view kSides[] = {"left", "right"};
constexpr ChoiceNames choice_names(SearchSide) { return kSides; }

struct SearchAttrs {
  SearchSide side = SearchSide::left;
  int64_t batch_dims = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("side", a.side), f("batch_dims", a.batch_dims);
  }
};

enum class Extreme : uint8_t { max, min };
inline constexpr std::string_view kExtremes[] = {"max", "min"};
constexpr ChoiceNames choice_names(Extreme) { return kExtremes; }

struct ArgreduceAttrs {
  Axis axis;
  Extreme mode = Extreme::max;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis, required), f("mode", a.mode);
  }
};

struct LayerNormAttrs {
  double eps = 1e-5;
  int64_t normalized_axes = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("eps", a.eps), f("normalized_axes", a.normalized_axes);
  }
};

struct BatchNormAttrs {
  double eps = 1e-5;
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("eps", a.eps), f("axis", a.axis); }
};

struct SoftmaxAttrs {
  Maybe<Axes> axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct AttentionAttrs {
  Maybe<double> scale;
  bool is_causal = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("scale", a.scale), f("is_causal", a.is_causal);
  }
  double scale_at(int64_t depth) const {
    return scale.value_or(1 / std::sqrt(static_cast<double>(depth)));
  }
};

}  // namespace tn::ops
