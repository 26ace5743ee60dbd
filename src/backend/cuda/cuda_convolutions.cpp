// Convolutions and the cotangents of their weights by own kernels, in the order of the CPU
// (backend/cpu/kernels/convolve.h). Operands are read where they lie.
#include "backend/cuda/cuda_convolutions.h"

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "backend/cuda/own_kernels.h"
#include "backend/cuda/prebuilt/prebuilt.h"
#include "backend/cuda/tile_choice.h"
#include "backend/tiled_ops.h"
#include "base/error.h"
#include "ir/view.h"
#include "loop/reduction_tree.h"
#include "ops/conv_attrs.h"
#include "ops/op_decls.h"

namespace tn::cuda {
namespace {

using namespace ops;

constexpr int kWalkDims = 4;

/// As in prebuilt/convolution_kernels.cu.
struct Walk {
  int64_t extent[kWalkDims], x[kWalkDims], other[kWalkDims];
  int64_t step[kConvAxes];
  int32_t spatial, pad = 0;
};
struct OwnConv {
  const void* x;
  const void* right;
  void* out;
  int64_t m, n, k, block;
  Walk rows, inner;
  int64_t first[kConvAxes], extent[kConvAxes];
  int64_t right_column, out_column;
  int64_t x_group, right_group, out_group;
  int32_t left_way, right_way;
};

/// Where the elements of an array [major, channels, 3 spatial axes] lie, whatever their order is.
struct Lie {
  int64_t major, channel, axis[kConvAxes];
};

Lie lie_of(const Strided& at, bool channels_last) {
  int rank = at.shape.rank(), axes = rank - 2;
  Lie lie{at.strides[0], at.strides[channels_last ? rank - 1 : 1], {}};
  for (int k = 0; k < axes; ++k)
    lie.axis[kConvAxes - axes + k] = at.strides[(channels_last ? 1 : 2) + k];
  return lie;
}

struct Arrays {
  const void* x;
  const void* right;
  void* out;
  Lie x_at, right_at, out_at;
  int64_t x_group;  // between the elements of x of two groups
};

/// Kernels keep places along the spatial axes of x in 32 bits.
void check_places(const OwnConv& p) {
  for (int k = 0; k < kConvAxes; ++k) {
    auto last = [&](const Walk& walk) {
      return (walk.extent[k + walk.spatial] - 1) * walk.step[k];
    };
    int64_t end = std::abs(p.first[k]) + last(p.rows) + last(p.inner);
    if (end > INT_MAX)
      unsupported(Hint{"pad less, or convolve on the CPU"},
                  "conv: windows reach {} places along an axis, and GPUs count to {}", end,
                  INT_MAX);
  }
}

void launch(OwnConv& p, int64_t groups, DType type) {
  check_places(p);
  static constexpr int kWide[] = {0, 1, 2, 3}, kSome[] = {0, 2};
  std::span<const int> forms = type == DType::f32 ? std::span<const int>(kWide) : kSome;
  int64_t columns[] = {p.n}, apart[] = {p.right_column};
  auto element = static_cast<int>(size_of(type));
  // Neighbours along a spatial axis are not one vector: some may be outside of x.
  p.left_way = way_of(p.x, element, {p.rows.extent, p.rows.x}, {p.inner.extent, p.inner.x},
                      {p.x_group}, false, !p.inner.spatial);
  p.right_way = way_of(p.right, element, {columns, apart}, {p.inner.extent, p.inner.other},
                       {p.right_group}, true, true);
  int sum = std::max(element, 4);
  TiledProduct product{p.m, p.n, groups, p.k, p.block, {sum, 32, 8, 32}};  // of ConvTiles
  const Gpu& gpu = *call_place.gpu;
  const TileForm& form = choose_form(forms, product, gpu.multiprocessors, gpu.shared_bytes_of_each);
  launch_own(convolution_ptx(), format("conv_{}_{}", own_name(type), form.name),
             tiles_of(form, product), bytes_of(form, product), &p);
}

bool is_wide(DType type) { return type == DType::f32 || type == DType::f64; }

/// An address of the GPU. With padding it may lie before the array, where nothing is read.
template <class T>
T* moved(T* array, int64_t bytes) {
  auto address = reinterpret_cast<uintptr_t>(array) + static_cast<uintptr_t>(bytes);
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// Rows are images and results; sums go over taps, and channels for each.
void convolve_part(const ConvShape& s, const ConvPart& part, const Arrays& at, DType type) {
  OwnConv p{};
  p.x = at.x, p.right = at.right, p.out = at.out;
  p.m = s.batch * part.results(), p.n = s.out_channels, p.k = part.taps() * s.in_channels;
  p.rows.spatial = 1, p.inner.spatial = 0;
  p.rows.extent[0] = s.batch, p.rows.x[0] = at.x_at.major, p.rows.other[0] = at.out_at.major;
  p.inner.extent[3] = s.in_channels, p.inner.x[3] = at.x_at.channel;
  p.inner.other[3] = at.right_at.channel;
  int64_t x_first = 0, right_first = 0, out_first = 0;
  for (int k = 0; k < kConvAxes; ++k) {
    const ConvPhase& phase = part.phases[k];
    p.rows.extent[k + 1] = phase.outs, p.inner.extent[k] = std::max<int64_t>(phase.taps, 1);
    p.rows.x[k + 1] = phase.out_x * at.x_at.axis[k], p.rows.step[k] = phase.out_x;
    p.rows.other[k + 1] = phase.out_step * at.out_at.axis[k];
    p.inner.x[k] = phase.tap_x * at.x_at.axis[k], p.inner.step[k] = phase.tap_x;
    p.inner.other[k] = phase.tap_step * at.right_at.axis[k];
    p.first[k] = phase.start, p.extent[k] = s.axes[k].in;
    x_first += phase.start * at.x_at.axis[k];
    right_first += phase.tap_first * at.right_at.axis[k];
    out_first += phase.out_first * at.out_at.axis[k];
  }
  auto bytes = static_cast<int64_t>(size_of(type));
  p.x = moved(at.x, x_first * bytes);
  p.right = moved(at.right, right_first * bytes);
  p.out = moved(at.out, out_first * bytes);
  p.right_column = at.right_at.major, p.out_column = at.out_at.channel;
  p.x_group = at.x_group;
  p.right_group = s.out_channels * at.right_at.major;
  p.out_group = s.out_channels * at.out_at.channel;
  p.block = is_wide(type) ? INT64_MAX : loop::product_depth(std::max<int64_t>(p.k, 1));
  launch(p, s.groups, type);
}

void run_tiled_conv(const TiledCall& call) {
  if (call.out_types[0]->elements == 0) return;
  const auto& a = *static_cast<const ConvAttrs*>(call.attrs);
  DType type = call.in_types[0]->dtype;
  auto bytes = static_cast<int64_t>(size_of(type));
  auto data = [&](size_t i) {
    return static_cast<const char*>(call.in[i]) + call.in_at[i].offset * bytes;
  };
  ConvShape shape = conv_shape(a, *call.in_types[0], *call.in_types[1], *call.out_types[0]);
  Lie x = lie_of(call.in_at[0], a.channels_last), w = lie_of(call.in_at[1], a.channels_last);
  Lie out = lie_of(Strided::row_major(call.out_types[0]->shape), a.channels_last);
  Arrays arrays{data(0), data(1), call.out, x, w, out, shape.in_channels * x.channel};
  for (const ConvPart& part : parts_of(shape)) convolve_part(shape, part, arrays, type);
}

/// Rows are taps and channels; sums go over images, and results for each, in blocks of 1024.
void sum_windows(const ConvShape& s, const Arrays& at, DType type) {
  constexpr int64_t kBlock = 1024;
  ConvPart part = parts_of(s)[0];
  OwnConv p{};
  p.m = part.taps() * s.in_channels, p.n = s.out_channels, p.k = s.batch * part.results();
  p.rows.spatial = 0, p.inner.spatial = 1;
  p.rows.extent[3] = s.in_channels, p.rows.x[3] = at.x_at.channel;
  p.rows.other[3] = at.out_at.channel;
  p.inner.extent[0] = s.batch, p.inner.x[0] = at.x_at.major;
  p.inner.other[0] = at.right_at.major;
  int64_t x_first = 0;
  for (int k = 0; k < kConvAxes; ++k) {
    const ConvPhase& phase = part.phases[k];
    p.rows.extent[k] = phase.taps, p.inner.extent[k + 1] = phase.outs;
    p.rows.x[k] = phase.tap_x * at.x_at.axis[k], p.rows.step[k] = phase.tap_x;
    p.rows.other[k] = at.out_at.axis[k];
    p.inner.x[k + 1] = phase.out_x * at.x_at.axis[k], p.inner.step[k] = phase.out_x;
    p.inner.other[k + 1] = at.right_at.axis[k];
    p.first[k] = phase.start, p.extent[k] = s.axes[k].in;
    x_first += phase.start * at.x_at.axis[k];
  }
  p.x = moved(at.x, x_first * static_cast<int64_t>(size_of(type)));
  p.right = at.right, p.out = at.out;
  p.right_column = at.right_at.channel, p.out_column = at.out_at.major;
  p.x_group = at.x_group;
  p.right_group = s.out_channels * at.right_at.channel;
  p.out_group = s.out_channels * at.out_at.major;
  p.block = kBlock;
  launch(p, s.groups, type);
}

/// As a convolution of x with the cotangents, in which images and channels, taps and results change
/// places: as the CPU does it for narrow types and with input dilation.
void gradient_by_conv(const ConvShape& s, const Arrays& at, DType type) {
  ConvShape back;
  back.batch = s.in_channels, back.groups = s.groups, back.in_channels = s.batch;
  back.out_channels = s.out_channels;
  for (int k = 0; k < kConvAxes; ++k) {
    const ConvAxis& a = s.axes[k];
    back.axes[k] = {a.in, a.out, a.taps, a.kernel_dilation, a.low, a.input_dilation, a.stride};
  }
  auto exchanged = [](const Lie& lie) {
    return Lie{lie.channel, lie.major, {lie.axis[0], lie.axis[1], lie.axis[2]}};
  };
  Arrays turned = at;
  turned.x_at = exchanged(at.x_at), turned.right_at = exchanged(at.right_at);
  turned.out_at = exchanged(at.out_at);
  for (const ConvPart& part : parts_of(back)) convolve_part(back, part, turned, type);
}

/// Sums of nothing.
void write_zeros(void* out, int64_t count, DType type) {
  OwnConv p{};
  p.out = out, p.m = count, p.n = 1, p.block = INT64_MAX;
  std::fill_n(p.rows.extent, kWalkDims - 1, 1);
  p.rows.extent[kWalkDims - 1] = count, p.rows.other[kWalkDims - 1] = 1;
  launch(p, 1, type);
}

void run_weights(const LibraryCall& call) {
  const auto& a = *static_cast<const ConvWeightsAttrs*>(call.attrs);
  const InternedType &x = *call.in_types[0], &ct = *call.in_types[1], &w = *call.out_types[0];
  if (w.elements == 0) return;
  ConvShape shape = conv_shape(a.conv(), x, w, ct);
  auto lie = [&](const InternedType& type) {
    return lie_of(Strided::row_major(type.shape), a.channels_last);
  };
  if (x.elements == 0 || ct.elements == 0) return write_zeros(call.out[0], w.elements, w.dtype);
  Arrays arrays{call.in[0], call.in[1], call.out[0], lie(x), lie(ct), lie(w), 0};
  arrays.x_group = shape.in_channels * arrays.x_at.channel;
  bool is_dilated = std::any_of(shape.axes, shape.axes + kConvAxes,
                                [](const ConvAxis& axis) { return axis.input_dilation != 1; });
  if (is_dilated || !is_wide(x.dtype))
    gradient_by_conv(shape, arrays, x.dtype);
  else
    sum_windows(shape, arrays, x.dtype);
}

bool claims_conv(Types in) {
  DType type = in[0]->dtype;
  return !convolution_ptx().empty() && (is_wide(type) || type == DType::f16 || type == DType::bf16);
}

constexpr TiledForm tiled_conv{domain_of_conv, run_tiled_conv};
constexpr LibraryKernel kConvolutions[] = {
    {&ops::conv, run_row_major<run_tiled_conv>, claims_conv, &tiled_conv},
    {&ops::conv_weights, run_weights, claims_conv},
};

}  // namespace

std::span<const LibraryKernel> conv_kernels() { return kConvolutions; }

}  // namespace tn::cuda
