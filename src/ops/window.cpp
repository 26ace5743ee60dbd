// Windows over the trailing axes: a view of overlapping parts, and its adjoint.
#include <algorithm>
#include <complex>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "ops/spatial.h"
#include "runtime/threads.h"

namespace tn::ops {
namespace {

void check_axes(std::string_view op, int axes, int least_rank, const Type& x) {
  if (axes < 1 || axes > kMostAxes || x.rank() < least_rank)
    fail("{}: windows over {} trailing axes, of 1 to {}: {}", op, axes, kMostAxes, x);
}

void prepare_window(WindowAttrs& a, Tensors& in) {
  int axes = a.size.size();
  check_axes("window", axes, axes, *type_of(in[0]));
  a.size = for_each_axis("window", "size", a.size, axes, 1);
  a.step = for_each_axis("window", "step", a.step, axes, 1);
  a.dilation = for_each_axis("window", "dilation", a.dilation, axes, 1);
}

View view_windows(const WindowAttrs& a, const Type& x) {
  View view;
  view.kind = View::Kind::window, view.shape = x.shape;
  view.step = a.step, view.dilation = a.dilation;
  int axes = a.size.size(), front = x.rank() - axes;
  for (int k = 0; k < axes; ++k) {
    Dim places = window_count("window", spatial_extent("window", x, front + k),
                              dilated(a.size[k], a.dilation[k]), a.step[k]);
    view.shape[front + k] = places;
    view.shape.push_back(a.size[k]);
  }
  return view;
}

void prepare_fold(FoldAttrs& a, Tensors& in) {
  int axes = a.extents.size();
  check_axes("window_fold", axes, 2 * axes, *type_of(in[0]));
  check_kind("window_fold", numeric, in[0].dtype());
  for (Offset extent : a.extents)
    if (!decide_at_least(extent, 0) || decide_at_least(extent, kMostSpatial))
      fail("window_fold: extents must be 0 or more: {}", extent);
  a.step = for_each_axis("window_fold", "step", a.step, axes, 1);
  a.dilation = for_each_axis("window_fold", "dilation", a.dilation, axes, 1);
}

TypeList infer_fold(const FoldAttrs& a, Types in) {
  Type out = *in[0];
  int axes = a.extents.size(), front = out.rank() - 2 * axes;
  for (int k = 0; k < axes; ++k) {
    Dim places = out.shape[front + k], size = out.shape[front + axes + k];
    Dim wanted =
        window_count("window_fold", a.extents[k].size(), dilated(size, a.dilation[k]), a.step[k]);
    if (!decide_equal(places, wanted))
      fail("window_fold: {} elements have {} windows of {}, not {}: {}", a.extents[k], wanted, size,
           places, *in[0]);
  }
  for (int k = 0; k < axes; ++k) out.shape.erase(out.shape.rank() - 1);
  for (int k = 0; k < axes; ++k) out.shape[front + k] = a.extents[k].size();
  return out;
}

/// Adds the windows of one tensor to `sums`, of zeros.
template <class Sum, class Load>
void add_windows(const FoldPlan& p, const auto* windows, Load load, Sum* sums) {
  for (int64_t y0 = 0; y0 < p.places[0]; ++y0)
    for (int64_t y1 = 0; y1 < p.places[1]; ++y1)
      for (int64_t y2 = 0; y2 < p.places[2]; ++y2)
        for (int64_t k0 = 0; k0 < p.size[0]; ++k0)
          for (int64_t k1 = 0; k1 < p.size[1]; ++k1) {
            int64_t at = y0 * p.step[0] + k0 * p.apart[0];
            at = at * p.extent[1] + y1 * p.step[1] + k1 * p.apart[1];
            Sum* row = sums + at * p.extent[2] + y2 * p.step[2];
            for (int64_t k2 = 0; k2 < p.size[2]; ++k2) {
              Sum& sum = row[k2 * p.apart[2]];
              sum = static_cast<Sum>(sum + load(*windows++));
            }
          }
}

template <class Stored, class Sum>
void fold(const LibraryCall& call, Sum (*load)(Stored), Stored (*store)(Sum)) {
  const auto& a = *static_cast<const FoldAttrs*>(call.attrs);
  FoldPlan plan(a, call.in_types[0]->shape);
  const InternedType& out = *call.out_types[0];
  if (out.elements == 0) return;
  int64_t each = span_of(out.shape, out.rank() - a.extents.size(), out.rank());
  int64_t tensors = out.elements / each, windows = call.in_types[0]->elements / tensors;
  int64_t chunks = std::min(tensors, chunks_for(tensors * (each + windows), 1 << 15));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(tensors, chunks, chunk);
    std::vector<Sum> sums(static_cast<size_t>(each));
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), Sum{});
      add_windows(plan, static_cast<const Stored*>(call.in[0]) + i * windows, load, sums.data());
      std::transform(sums.begin(), sums.end(), static_cast<Stored*>(call.out[0]) + i * each, store);
    }
  });
}

template <class T>
void fold(const LibraryCall& call) {
  auto same = [](T x) { return x; };
  fold<T, T>(call, same, same);
}

void run_fold(const LibraryCall& call) {
  DType type = call.in_types[0]->dtype;
  switch (type) {
    case DType::f16:
      return fold<uint16_t, float>(call, float16_to_float, float_to_float16);
    case DType::bf16:
      return fold<uint16_t, float>(call, bfloat16_to_float, float_to_bfloat16);
    case DType::f32:
      return fold<float>(call);
    case DType::f64:
      return fold<double>(call);
    case DType::c64:
      return fold<std::complex<float>>(call);
    case DType::c128:
      return fold<std::complex<double>>(call);
    default:
      break;
  }
  switch (size_of(type)) {  // sums wrap, so the sign does not matter
    case 1:
      return fold<uint8_t>(call);
    case 2:
      return fold<uint16_t>(call);
    case 4:
      return fold<uint32_t>(call);
    default:
      return fold<uint64_t>(call);
  }
}

}  // namespace

constinit const OpDef window = Movement<WindowAttrs>{
    .name = "window",
    .doc =
        "The windows of `size` over the trailing axes (1 to 3, as many as `size` has numbers): "
        "[..., n] becomes [..., places, size], of several axes first all places, then all sizes. "
        "Windows begin `step` apart, their elements are `dilation` apart; elements behind the last "
        "whole window are left out.",
    .prepare = rule<prepare_window>,
    .view = rule<view_windows>,
    .adjoint =
        [](const WindowAttrs& a, const Tensor& ct, const Tensor& x) {
          FoldAttrs fold{{}, a.step, a.dilation};
          for (int k = x.rank() - a.size.size(); k < x.rank(); ++k)
            fold.extents.push_back(x.shape()[k]);
          return emit(window_fold, {ct}, fold);
        },
    .samples = {{"f32[7]", "size=[3]"},
                {"f32[2,6,7]", "size=[2,3], step=[2,1], dilation=[1,2]"},
                {"f32[2,4,3,5]", "size=[2,1,2], step=[2]"}},
};

constinit const OpDef window_fold = Op<FoldAttrs>{
    .name = "window_fold",
    .doc =
        "Adds windows where they came from: the adjoint of `window` of a tensor whose trailing "
        "axes have `extents`. Elements that no window covers are 0.",
    .args = {"x"},
    .prepare = rule<prepare_fold>,
    .infer = rule<infer_fold>,
    .run = run_fold,
    .linear = Linear::each,
    .adjoint =
        [](const FoldAttrs& a, const Tensor& ct, const Tensors& in, int) {
          WindowAttrs window_attrs{{}, a.step, a.dilation};
          for (int k = in[0].rank() - a.extents.size(); k < in[0].rank(); ++k)
            window_attrs.size.push_back(in[0].shape()[k].value());
          return emit(window, {ct}, window_attrs);
        },
    .batch = Batch::aligned,
    .samples = {{"f32[5,3]", "extents=[7]"},
                {"f32[2,3,3,2,3]", "extents=[6,7], step=[2,1], dilation=[1,2]"},
                {"f32[2,2,2,2,2,1,2]", "extents=[4,3,5], step=[2]"}},
};

}  // namespace tn::ops
