// Pooling into a given number of windows, and shuffling of channels into pixels.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "ops/spatial.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct AdaptiveAttrs {
  Ints output_size;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("output_size", a.output_size, required), f("channels_last", a.channels_last);
  }
};

struct UpscaleAttrs {
  int64_t upscale_factor = 1;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("upscale_factor", a.upscale_factor, required), f("channels_last", a.channels_last);
  }
};

struct DownscaleAttrs {
  int64_t downscale_factor = 1;
  bool channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("downscale_factor", a.downscale_factor, required), f("channels_last", a.channels_last);
  }
};

/// `count` windows over the elements of `axis`, which does not divide into them: window i has those
/// from floor(i·n / count) on, up to ceil((i + 1)·n / count). The windows are axis + 1 of
/// `elements` and as long as the longest; shorter ones repeat their last element, where `inside` is
/// false.
struct Windows {
  Tensor elements, inside, length;

  Windows(const Tensor& x, int axis, int64_t count) {
    Dim n = x.shape()[axis];
    Tensor i = tn::iota({Dim(count), Dim(1)}), size = value_of(n, DType::i64);
    Tensor from = tn::floor_divide(i * size, count);
    Tensor to = tn::floor_divide((i + 1) * size + (count - 1), count);
    Tensor at = from + tn::iota({Dim(1), floor_div(n + (count - 1), count) + 1}, 1);
    elements = tn::take(x, tn::minimum(at, to - 1), Axis(axis));
    inside = along(tn::less(at, to), axis);
    length = along(to - from, axis);
  }

 private:
  /// [count, window], with unit axes behind for those behind `axis`.
  Tensor along(const Tensor& windows, int axis) const {
    Shape shape = windows.shape();
    for (int k = axis + 2; k < elements.rank(); ++k) shape.push_back(1);
    return tn::reshape(windows, shape);
  }
};

/// One axis at a time: `even` folds an axis of equal windows, `uneven` windows that differ.
template <class Even, class Uneven>
Tensor pool_adaptively(std::string_view op, const AdaptiveAttrs& a, const Tensor& given, Even even,
                       Uneven uneven) {
  if (given.rank() < 3 || given.rank() > 5)
    fail("{}: x has a batch, channels and 1 to 3 spatial axes: {}", op, *type_of(given));
  Tensor x = channels_second(given, a.channels_last);
  Ints size = for_each_axis(op, "output_size", a.output_size, x.rank() - 2, 1);
  for (int k = 2; k < x.rank(); ++k) {
    Dim extent = spatial_extent(op, *type_of(x), k);
    if (decide_equal(extent, Dim(0)))
      fail("{}: axis {} has no elements: {}", op, k, *type_of(given));
    int64_t count = size[k - 2];
    if (decide_divides(count, extent))
      x = even(tn::unflatten(x, Axis(k), {Dim(count), Dim(-1)}), Axes(k + 1));
    else
      x = uneven(Windows(x, k, count), Axes(k + 1));
  }
  return channels_back(x, a.channels_last);
}

Tensors adaptive_avg_pool_body(const AdaptiveAttrs& a, const Tensors& in) {
  Tensors x = in;
  promote_all(x, "adaptive_avg_pool", floats, true);
  DType type = x[0].dtype();
  auto even = [](T elements, const Axes& axis) { return tn::mean(elements, axis); };
  auto uneven = [](const Windows& w, const Axes& axis) {
    Tensor length = tn::squeeze(cast_to(w.length, w.elements.dtype()), Axes(1));
    return tn::sum(tn::where(w.inside, w.elements, 0), axis) / length;
  };
  x[0] = cast_to(x[0], info(type).compute);
  return {cast_to(pool_adaptively("adaptive_avg_pool", a, x[0], even, uneven), type)};
}

Tensors adaptive_max_pool_body(const AdaptiveAttrs& a, const Tensors& in) {
  check_kind("adaptive_max_pool", reals, in[0].dtype());
  auto even = [](T elements, const Axes& axis) { return tn::max(elements, axis); };
  auto uneven = [](const Windows& w, const Axes& axis) { return tn::max(w.elements, axis); };
  return {pool_adaptively("adaptive_max_pool", a, in[0], even, uneven)};
}

/// Channels and the two last axes of `x`, with leading axes as one; the channels come first.
Tensor images_of(std::string_view op, const Tensor& x, bool channels_last) {
  if (x.rank() < 3) fail("{}: x has channels, a height and a width: {}", op, *type_of(x));
  Tensor turned = channels_last ? tn::moveaxis(x, Axes(-1), Axes(-3)) : x;
  Shape shape = turned.shape();
  Dim count = 1;
  for (int k = 0; k < shape.rank() - 3; ++k) count *= shape[k];
  return tn::reshape(
      turned, {count, shape[shape.rank() - 3], shape[shape.rank() - 2], shape[shape.rank() - 1]});
}

/// Images with the leading axes of `x`.
Tensor as_before(const Tensor& images, const Tensor& x, bool channels_last) {
  Shape shape(x.shape().begin(), x.shape().end() - 3);
  for (int k = 1; k < 4; ++k) shape.push_back(images.shape()[k]);
  Tensor made = tn::reshape(images, shape);
  return channels_last ? tn::moveaxis(made, Axes(-3), Axes(-1)) : made;
}

void check_factor(std::string_view op, std::string_view name, int64_t factor) {
  if (factor < 1 || factor >= kMostSpatial) fail("{}: {} must be at least 1: {}", op, name, factor);
}

/// [n, c·r², h, w] as [n, c, r, r, h, w], turned to [n, c, h, r, w, r].
Tensors pixel_shuffle_body(const UpscaleAttrs& a, const Tensors& in) {
  constexpr std::string_view op = "pixel_shuffle";
  check_factor(op, "upscale_factor", a.upscale_factor);
  Tensor x = images_of(op, in[0], a.channels_last);
  Dim r = a.upscale_factor, n = x.shape()[0], h = x.shape()[2], w = x.shape()[3];
  std::optional<Dim> channels = divided(x.shape()[1], r * r);
  if (!channels)
    fail("{}: {} channels are not a multiple of {}: {}", op, x.shape()[1], r * r, *type_of(in[0]));
  x = tn::permute_dims(tn::reshape(x, {n, *channels, r, r, h, w}), Perm{0, 1, 4, 2, 5, 3});
  return {as_before(tn::reshape(x, {n, *channels, h * r, w * r}), in[0], a.channels_last)};
}

Tensors pixel_unshuffle_body(const DownscaleAttrs& a, const Tensors& in) {
  constexpr std::string_view op = "pixel_unshuffle";
  check_factor(op, "downscale_factor", a.downscale_factor);
  Tensor x = images_of(op, in[0], a.channels_last);
  Dim r = a.downscale_factor, n = x.shape()[0], c = x.shape()[1];
  std::optional<Dim> h = divided(x.shape()[2], r), w = divided(x.shape()[3], r);
  if (!h || !w)
    fail("{}: {} and {} are not multiples of {}: {}", op, x.shape()[2], x.shape()[3], r,
         *type_of(in[0]));
  x = tn::permute_dims(tn::reshape(x, {n, c, *h, r, *w, r}), Perm{0, 1, 3, 5, 2, 4});
  return {as_before(tn::reshape(x, {n, c * r * r, *h, *w}), in[0], a.channels_last)};
}

}  // namespace

constexpr auto adaptive_avg_pool_def = Composite<AdaptiveAttrs>{
    .doc =
        "Means of `output_size` windows along each of the 1 to 3 spatial axes of `x`, [batch, "
        "channels, spatial axes ...]: window i of m has the elements from floor(i * n / m) on, up "
        "to ceil((i + 1) * n / m). With `channels_last` the layout is [batch, spatial axes ..., "
        "channels].",
    .args = {"x"},
    .body = rule<adaptive_avg_pool_body>,
    .precision = Precision::full,
    .samples = {{"f32[2,3,7]", "output_size=[3]"},
                {"f32[2,3,6,5]", "output_size=[2,4]"},
                {"f32[1,5,4,2]", "output_size=[1], channels_last=true"}},
};
TN_OP(adaptive_avg_pool);

constexpr auto adaptive_max_pool_def = Composite<AdaptiveAttrs>{
    .doc = "The largest elements of the windows of `adaptive_avg_pool`.",
    .args = {"x"},
    .body = rule<adaptive_max_pool_body>,
    .samples = {{"f32[2,3,7]", "output_size=[3]"},
                {"f32[2,3,6,5]", "output_size=[2,4]"},
                {"f32[1,5,4,2]", "output_size=[1], channels_last=true"}},
};
TN_OP(adaptive_max_pool);

constexpr auto pixel_shuffle_def = Composite<UpscaleAttrs>{
    .doc =
        "Images [..., c * r**2, h, w] as [..., c, h * r, w * r], r being the `upscale_factor`: the "
        "channels become r by r pixels. With `channels_last` channels are the last axis.",
    .args = {"x"},
    .body = rule<pixel_shuffle_body>,
    .samples = {{"f32[2,8,3,2]", "upscale_factor=2"},
                {"f32[3,2,9]", "upscale_factor=3, channels_last=true"}},
};
TN_OP(pixel_shuffle);

constexpr auto pixel_unshuffle_def = Composite<DownscaleAttrs>{
    .doc = "The inverse of `pixel_shuffle`: [..., c, h * r, w * r] as [..., c * r**2, h, w].",
    .args = {"x"},
    .body = rule<pixel_unshuffle_body>,
    .samples = {{"f32[2,2,4,6]", "downscale_factor=2"},
                {"f32[3,6,2]", "downscale_factor=3, channels_last=true"}},
};
TN_OP(pixel_unshuffle);

}  // namespace tn::ops
