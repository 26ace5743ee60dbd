// What PyTorch means by names that mean something else here. Python calls these ops, found by their
// alias "torch.NAME", where a call can only be PyTorch's: it has keywords such as `dim`, or
// arguments that the op NAME does not take.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/indexing.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct DimAttrs {
  Axis dim;
  static constexpr void fields(auto& a, auto&& f) { f("dim", a.dim, required); }
};

struct KeptDimAttrs {
  Axis dim;
  bool keepdim = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("dim", a.dim, required), f("keepdim", a.keepdim);
  }
};

struct SortDimAttrs {
  Axis dim = -1;
  bool descending = false, stable = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("dim", a.dim), f("descending", a.descending), f("stable", a.stable);
  }
};

enum class Combined : uint8_t { set, add, multiply };
constexpr std::string_view kCombined[] = {"set", "add", "multiply"};
constexpr ChoiceNames choice_names(Combined) { return kCombined; }

struct ScatterDimAttrs {
  Axis dim;
  Combined reduce = Combined::set;
  static constexpr void fields(auto& a, auto&& f) {
    f("dim", a.dim, required), f("reduce", a.reduce);
  }
};

/// The elements at `places`, one for each line along `axis`, and the places.
Tensors chosen(const Tensor& x, const Tensor& places, int axis, bool keepdim) {
  Tensor values = tn::take_along_axis(x, places, Axis(axis));
  if (keepdim) return {values, places};
  return {tn::squeeze(values, Axes(axis)), tn::squeeze(places, Axes(axis))};
}

Tensors extreme_along(std::string_view op, const KeptDimAttrs& a, const Tensor& x, bool largest) {
  check_kind(op, reals, x.dtype());
  int axis = normal_axis(a.dim, x.rank(), op);
  Tensor places = largest ? tn::argmax(x, Axis(axis), true) : tn::argmin(x, Axis(axis), true);
  return chosen(x, places, axis, a.keepdim);
}

/// How many of each line along `axis` are NaN, with the axis kept.
Tensor count_nans(const Tensor& x, int axis) {
  return tn::sum(tn::astype(tn::isnan(x), DType::i64), Axes(axis), {}, true);
}

/// NaN is the largest number: it comes first in descending order.
Tensors ordered_along(const SortDimAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int axis = normal_axis(a.dim, x.rank(), "sort");
  Tensor order = tn::argsort(x, Axis(axis), a.descending);
  if (a.descending && is_float(x.dtype())) {
    Dim n = x.shape()[axis];
    Tensor from = positions(n, x.rank(), axis) - count_nans(x, axis);
    order = tn::take_along_axis(order, tn::remainder(from, value_of(n, DType::i64)), Axis(axis));
  }
  return {tn::take_along_axis(x, order, Axis(axis)), order};
}

/// The lower of two middle elements; the first NaN, if there is one.
Tensors middle_along(const KeptDimAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  check_kind("median", ordered, x.dtype());
  int axis = normal_axis(a.dim, x.rank(), "median");
  Dim n = x.shape()[axis];
  if (n.is(0)) fail("median: no elements: {}", *type_of(x));
  Tensor middle =
      tn::reshape(value_of(floor_div(n - 1, 2), DType::i64), Shape::filled(x.rank(), 1));
  if (is_float(x.dtype())) {
    Tensor nans = count_nans(x, axis);
    middle = tn::where(nans > 0, value_of(n, DType::i64) - nans, middle);
  }
  Tensor places = tn::take_along_axis(tn::argsort(x, Axis(axis)), middle, Axis(axis));
  return chosen(x, places, axis, a.keepdim);
}

/// The last place at which the running extreme was met.
Tensors running_along(std::string_view op, const DimAttrs& a, const Tensor& x, bool largest) {
  int axis = normal_axis(a.dim, x.rank(), op);
  Tensor values = largest ? tn::cummax(x, Axis(axis)) : tn::cummin(x, Axis(axis));
  Tensor met = x == values;
  if (is_float(x.dtype())) met = met | tn::isnan(x);
  Tensor places = tn::where(met, positions(x.shape()[axis], x.rank(), axis), 0);
  return {values, tn::cummax(places, Axis(axis))};
}

/// Checks that `index` has at most the extents of `x`, apart from `axis`.
int check_index(std::string_view op, Axis dim, const Tensor& x, const Tensor& index) {
  const Type &of = *type_of(x), &at = *type_of(index);
  check_kind(op, integers, at.dtype);
  if (of.rank() != at.rank()) fail("{}: x and index have different ranks: {} and {}", op, of, at);
  int axis = normal_axis(dim, of.rank(), op);
  for (int k = 0; k < of.rank(); ++k)
    if (k != axis && !decide_at_least(of.shape[k], at.shape[k]))
      fail("{}: index is larger than x along axis {}: {} and {}", op, k, of, at);
  return axis;
}

/// The first elements of all axes but `axis`, as many as `shape` has.
Tensor first_of(Tensor x, const Shape& shape, int axis) {
  for (int k = 0; k < shape.rank(); ++k)
    if (k != axis && !decide_equal(x.shape()[k], shape[k])) x = slice_axis(x, k, 0, shape[k]);
  return x;
}

Tensors gathered_along(const DimAttrs& a, const Tensors& in) {
  int axis = check_index("gather", a.dim, in[0], in[1]);
  return {tn::take_along_axis(first_of(in[0], in[1].shape(), axis), in[1], Axis(axis))};
}

Tensors scattered_along(std::string_view op, Axis dim, const Tensors& in, std::string_view mode) {
  const Tensor &x = in[0], &index = in[1];
  int axis = check_index(op, dim, x, index);
  const Shape& shape = index.shape();
  Tensor source = cast_to(in[2], x.dtype());
  if (source.rank()) source = first_of(source, shape, -1);
  Tensor part = first_of(x, shape, axis);
  Tensor put = tn::put_along_axis(part, index, source, Axis(axis), mode);
  if (decide_equal(part.shape(), x.shape())) return {put};
  Offsets start, stop;
  for (Dim extent : part.shape()) start.push_back(0), stop.push_back(extent);
  return {tn::slice_update(x, put, start, stop)};
}

}  // namespace

constexpr auto max_along_dim_def = Composite<KeptDimAttrs>{
    .doc = "The largest elements along `dim` and their positions.",
    .aliases = {"torch.max"},
    .args = {"x"},
    .results = {"values", "indices"},
    .surface = false,
    .body = [](const KeptDimAttrs& a,
               const Tensors& in) { return extreme_along("max", a, in[0], true); },
};
TN_OP(max_along_dim);

constexpr auto min_along_dim_def = Composite<KeptDimAttrs>{
    .doc = "The smallest elements along `dim` and their positions.",
    .aliases = {"torch.min"},
    .args = {"x"},
    .results = {"values", "indices"},
    .surface = false,
    .body = [](const KeptDimAttrs& a,
               const Tensors& in) { return extreme_along("min", a, in[0], false); },
};
TN_OP(min_along_dim);

constexpr auto sort_along_dim_def = Composite<SortDimAttrs>{
    .doc = "The elements in order along `dim`, and where they were.",
    .aliases = {"torch.sort"},
    .args = {"x"},
    .results = {"values", "indices"},
    .surface = false,
    .body = rule<ordered_along>,
};
TN_OP(sort_along_dim);

constexpr auto median_along_dim_def = Composite<KeptDimAttrs>{
    .doc = "The lower of the middle elements along `dim`, and where it was.",
    .aliases = {"torch.median"},
    .args = {"x"},
    .results = {"values", "indices"},
    .surface = false,
    .body = rule<middle_along>,
};
TN_OP(median_along_dim);

constexpr auto cummax_along_dim_def = Composite<DimAttrs>{
    .doc = "The running maximum along `dim`, and where it was met.",
    .aliases = {"torch.cummax"},
    .args = {"x"},
    .results = {"values", "indices"},
    .surface = false,
    .body = [](const DimAttrs& a,
               const Tensors& in) { return running_along("cummax", a, in[0], true); },
};
TN_OP(cummax_along_dim);

constexpr auto cummin_along_dim_def = Composite<DimAttrs>{
    .doc = "The running minimum along `dim`, and where it was met.",
    .aliases = {"torch.cummin"},
    .args = {"x"},
    .results = {"values", "indices"},
    .surface = false,
    .body = [](const DimAttrs& a,
               const Tensors& in) { return running_along("cummin", a, in[0], false); },
};
TN_OP(cummin_along_dim);

constexpr auto gather_along_dim_def = Composite<DimAttrs>{
    .doc = "The element of each line along `dim` at every place of `index`.",
    .aliases = {"torch.gather"},
    .args = {"x", "index"},
    .surface = false,
    .body = rule<gathered_along>,
};
TN_OP(gather_along_dim);

constexpr auto scatter_along_dim_def = Composite<ScatterDimAttrs>{
    .doc = "`x` with `src` at the places along `dim` that `index` says.",
    .aliases = {"torch.scatter"},
    .args = {"x", "index", "src"},
    .surface = false,
    .body = [](const ScatterDimAttrs& a, const Tensors& in) -> Tensors {
      constexpr std::string_view kModes[] = {"set", "add", "mul"};
      return scattered_along("scatter", a.dim, in, kModes[static_cast<size_t>(a.reduce)]);
    },
};
TN_OP(scatter_along_dim);

constexpr auto scatter_add_along_dim_def = Composite<DimAttrs>{
    .doc = "`x` with `src` added at the places along `dim` that `index` says.",
    .aliases = {"torch.scatter_add"},
    .args = {"x", "index", "src"},
    .surface = false,
    .body = [](const DimAttrs& a,
               const Tensors& in) { return scattered_along("scatter_add", a.dim, in, "add"); },
};
TN_OP(scatter_add_along_dim);

}  // namespace tn::ops
