// Resizing of spatial axes.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

enum class Interpolation : uint8_t { nearest, linear, cubic };
constexpr std::string_view kInterpolations[] = {"nearest", "linear", "cubic"};
constexpr ChoiceNames choice_names(Interpolation) { return kInterpolations; }

struct InterpolateAttrs {
  Maybe<Ints> size;
  Maybe<double> scale_factor;
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false, channels_last = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("size", a.size), f("scale_factor", a.scale_factor), f("mode", a.mode);
    f("align_corners", a.align_corners), f("channels_last", a.channels_last);
  }
  int first_spatial() const { return channels_last ? 1 : 2; }
};

/// A result is the sum over k of weight[k] times the element at place[k].
struct Taps {
  std::vector<BufferRef> place;   // i64
  std::vector<BufferRef> weight;  // f64; none: one tap of weight 1
};

/// Where result `i` lies between the elements of an axis of `n` resized to `to`.
double source(const InterpolateAttrs& a, int64_t i, int64_t n, int64_t to) {
  double at = static_cast<double>(i);
  if (a.align_corners)
    return to > 1 ? at * static_cast<double>(n - 1) / static_cast<double>(to - 1) : 0;
  return (at + 0.5) * static_cast<double>(n) / static_cast<double>(to) - 0.5;
}

/// The cubic convolution kernel with slope -3/4 at distance 1.
double cubic(double distance) {
  constexpr double kSlope = -0.75;
  double t = std::abs(distance);
  if (t <= 1) return ((kSlope + 2) * t - (kSlope + 3)) * t * t + 1;
  if (t < 2) return kSlope * (((t - 5) * t + 8) * t - 4);
  return 0;
}

Taps make_taps(const InterpolateAttrs& a, int64_t n, int64_t to) {
  Taps taps;
  bool nearest = a.mode == Interpolation::nearest, is_cubic = a.mode == Interpolation::cubic;
  size_t count = nearest ? 1 : is_cubic ? 4 : 2;
  // Both fail where there is not that much memory, before anything is computed.
  auto bytes = static_cast<size_t>(intern(DType::i64, {to})->bytes());
  for (size_t k = 0; k < count; ++k) taps.place.push_back(allocate(bytes));
  for (size_t k = 0; k < count && !nearest; ++k) taps.weight.push_back(allocate(bytes));
  for (int64_t i = 0; i < to; ++i) {
    if (nearest) {
      taps.place[0].data<int64_t>()[i] = static_cast<int64_t>(static_cast<__int128>(i) * n / to);
      continue;
    }
    double at = source(a, i, n, to);
    if (!is_cubic) at = std::clamp(at, 0.0, static_cast<double>(n - 1));
    int64_t first = static_cast<int64_t>(std::floor(at)) - (is_cubic ? 1 : 0);
    for (size_t k = 0; k < count; ++k) {
      int64_t place = first + static_cast<int64_t>(k);
      double distance = at - static_cast<double>(place);
      taps.place[k].data<int64_t>()[i] = std::clamp<int64_t>(place, 0, n - 1);
      taps.weight[k].data<double>()[i] = is_cubic ? cubic(distance) : 1 - std::abs(distance);
    }
  }
  return taps;
}

Tensor resize(const Tensor& x, int axis, Taps taps, int64_t to) {
  Tensor total;
  for (size_t k = 0; k < taps.place.size(); ++k) {
    Tensor part = tn::take(x, operand(std::move(taps.place[k]), DType::i64, {to}), Axis(axis));
    if (!taps.weight.empty()) {
      Tensor weight = cast_to(operand(std::move(taps.weight[k]), DType::f64, {to}), x.dtype());
      Shape along = Shape::filled(x.rank(), 1);
      along[axis] = to;
      part = part * tn::reshape(weight, along);
    }
    total = total.defined() ? total + part : part;
  }
  return total;
}

/// The size of each spatial axis of the result.
std::vector<int64_t> target_sizes(const InterpolateAttrs& a, const Type& x) {
  int spatial = x.rank() - 2;
  if (a.size.set == a.scale_factor.set)
    fail("interpolate: give either size or scale_factor: {}", x);
  if (a.size && a.size->size() != 1 && a.size->size() != spatial)
    fail("interpolate: size has {} numbers for {} spatial axes: {}", a.size->size(), spatial, x);
  std::vector<int64_t> sizes;
  for (int k = 0; k < spatial; ++k) {
    int64_t n = x.shape[a.first_spatial() + k].value();
    int64_t to = a.size
                     ? (*a.size)[a.size->size() == 1 ? 0 : k]
                     : static_cast<int64_t>(std::floor(static_cast<double>(n) * *a.scale_factor));
    if (to < 1 || n < 1) fail("interpolate: cannot resize {} to {}: {}", n, to, x);
    sizes.push_back(to);
  }
  return sizes;
}

Tensors interpolate_body(const InterpolateAttrs& a, const Tensors& in) {
  const Type& t = *type_of(in[0]);
  if (t.rank() < 3)
    fail("interpolate: x is {}: {}",
         a.channels_last ? "[batch, spatial axes ..., channels]"
                         : "[batch, channels, spatial axes ...]",
         t);
  if (a.scale_factor && !(*a.scale_factor > 0 && *a.scale_factor < 0x1p31))
    fail("interpolate: scale_factor must lie between 0 and 2**31: {}", *a.scale_factor);
  Tensors x = in;
  bool nearest = a.mode == Interpolation::nearest;
  if (!nearest) promote_all(x, "interpolate", floats, true);
  DType type = x[0].dtype();
  Tensor y = nearest ? x[0] : cast_to(x[0], info(type).compute);
  std::vector<int64_t> sizes = target_sizes(a, t);
  Shape result = t.shape;
  for (size_t k = 0; k < sizes.size(); ++k)
    result[a.first_spatial() + static_cast<int>(k)] = sizes[k];
  intern(y.dtype(), result);  // fails where it has more bytes than fit 64 bits
  for (int k = 0; k < t.rank() - 2; ++k) {
    int axis = a.first_spatial() + k;
    int64_t n = t.shape[axis].value(), to = sizes[static_cast<size_t>(k)];
    if (n != to) y = resize(y, axis, make_taps(a, n, to), to);
  }
  return {cast_to(y, type)};
}

}  // namespace

constexpr auto interpolate_def = Composite<InterpolateAttrs>{
    .doc =
        "Resizes the spatial axes of `x`, [batch, channels, spatial axes ...], to `size` (one "
        "number for all, or one each) or by `scale_factor`. `mode` is nearest, linear (2-D: "
        "bilinear) or cubic. Elements are cells whose centres are matched; with `align_corners` "
        "the first and last centres coincide. Beyond the border its value is repeated. With "
        "`channels_last` the layout is [batch, spatial axes ..., channels].",
    .args = {"x"},
    .body = rule<interpolate_body>,
    .samples = {{"f32[2,1,3,4]", "scale_factor=2"},
                {"f32[1,3,4]", "size=[7], mode=linear"},
                {"f32[1,3,4,2]", "size=[5,6], mode=cubic, channels_last=true"},
                {"f32[1,2,3,4]", "size=[5,2], mode=linear, align_corners=true"}},
};
TN_OP(interpolate);

}  // namespace tn::ops
