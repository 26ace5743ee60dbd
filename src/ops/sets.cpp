// Tensors as sets: distinct values and membership.
#include "base/error.h"
#include "ir/interned.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"
#include "ops/shapes.h"
#include "plan/host_search.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

Unique find_unique(std::string_view op, const Tensor& x) {
  check_kind(op, every_type, x.dtype());
  Tensor known = values_now(op, x);
  const void* values = known.data();
  return tn::unique(element_of(x.dtype()), values, x.size());
}

Tensor positions(BufferRef& list, const Shape& shape) {
  return operand(std::move(list), DType::i64, shape);
}

/// The distinct values as elements of `x`, so that derivatives reach them.
Tensor values_at(const Tensor& x, const Tensor& first) {
  return tn::take(tn::reshape(x, {Dim(-1)}), first, Axis(0));
}

struct IsinAttrs {
  bool invert = false;
  static constexpr void fields(auto& a, auto&& f) { f("invert", a.invert); }
};

/// Compares with the one element of the sorted list that may be equal.
Tensor is_member(const Tensor& x, const Tensor& list) {
  Tensor sorted = tn::sort(list);
  Tensor at = tn::minimum(tn::searchsorted(sorted, x), list.shape()[0] - 1);
  return tn::equal(tn::take(sorted, at, Axis(0)), x);
}

Tensors isin_body(const IsinAttrs& a, const Tensors& in) {
  Tensors both = in;
  promote_all(both, "isin", every_type);
  Tensor list = tn::reshape(both[1], {Dim(-1)});
  if (list.shape()[0].is(0))
    return {tn::broadcast_to(Tensor::from_scalar(Scalar(a.invert)), both[0].shape())};
  Tensor found = is_member(both[0], list);
  return {a.invert ? tn::logical_not(found) : found};
}

struct UniqueAttrs {
  Maybe<Axis> axis;
  Maybe<int64_t> size;
  Maybe<Scalar> fill_value;
  bool equal_nan = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("size", a.size), f("fill_value", a.fill_value);
    f("equal_nan", a.equal_nan);
  }
};

/// The order that sorts the rows of a matrix: by the last column, and stably by those before it.
Tensor row_order(const Tensor& rows) {
  constexpr int64_t kMost = 1 << 14;
  int64_t columns = rows.shape()[1].value();
  if (columns > kMost) fail("unique: rows of more than {} elements: {}", kMost, *type_of(rows));
  Tensor order;
  for (int64_t k = columns - 1; k >= 0; --k) {
    Tensor column = tn::reshape(slice_axis(rows, 1, k, k + 1), {Dim(-1)});
    Tensor next = tn::argsort(order.defined() ? tn::gather(column, {order}, Axes(0)) : column);
    order = order.defined() ? tn::gather(order, {next}, Axes(0)) : next;
  }
  return order.defined() ? order : tn::iota({rows.shape()[0]});
}

/// Whether each row of a sorted matrix differs from the one before it; the first one does.
Tensor starts_of_runs(const Tensor& rows, bool equal_nan) {
  Dim n = rows.shape()[0];
  Tensor later = slice_axis(rows, 0, 1, n), earlier = slice_axis(rows, 0, 0, n - 1);
  Tensor differ = later != earlier;
  if (equal_nan && is_inexact(rows.dtype()))
    differ = differ & tn::logical_not(tn::isnan(later) & tn::isnan(earlier));
  return tn::concat({filled(true, DType::b1, {1}), tn::any(differ, Axes(1))}, 0);
}

/// Where the runs start, as many as there are or as asked for, and where the last one ends. Runs
/// behind the last one start at the end.
Tensor ends_of_runs(const UniqueAttrs& a, const Tensor& starts, const Tensor& number) {
  if (a.size) {
    if (*a.size < 0) fail("unique: a negative size: {}", *a.size);
    return tn::searchsorted(number, tn::iota({*a.size + 1}));
  }
  values_now("unique", starts, Hint{"give `size`, the number of results"});
  Tensor end = tn::reshape(value_of(starts.shape()[0], DType::i64), {1});
  return tn::concat({tn::nonzero(starts)[0], end}, 0);
}

/// Sorted, each run of equal rows is one of the distinct ones; `x` has them as its first axis.
Tensors distinct_rows(const UniqueAttrs& a, const Tensor& x) {
  Dim n = x.shape()[0];
  if (decide_equal(n, 0)) {
    Tensor none = filled(0, DType::i64, {0});
    return {x, none, none, none};
  }
  Tensor rows = x.rank() == 1 ? tn::reshape(x, {n, 1}) : tn::flatten(x, 1);
  Tensor order = row_order(rows);
  Tensor starts = starts_of_runs(tn::gather(rows, {order}, Axes(0)), a.equal_nan);
  Tensor number = tn::cumulative_sum(starts, Axis(0)) - 1;
  Tensor ends = ends_of_runs(a, starts, number);
  Dim count = ends.shape()[0] - 1;
  Tensor first = slice_axis(ends, 0, 0, count);
  Tensor indices = tn::gather(order, {first}, Axes(0), 0, "clamp");  // behind the last one: any
  Tensor inverse = tn::scatter(filled(0, DType::i64, {n}), number, {order}, Axes(0));
  Tensor values = tn::gather(x, {indices}, Axes(0));
  if (a.size) {  // behind the last one the fill value, or the first value
    Tensor beyond = tn::reshape(first == n, with_extent(Shape::filled(x.rank(), 1), 0, count));
    Tensor fill = a.fill_value ? make_scalar(*a.fill_value, x.dtype(), false)
                               : slice_axis(values, 0, 0, decide_min(count, 1));
    indices = tn::where(first == n, slice_axis(indices, 0, 0, decide_min(count, 1)), indices);
    values = tn::where(beyond, fill, values);
  }
  return {values, indices, inverse, tn::diff(ends)};
}

Tensors unique_body(const UniqueAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  check_kind("unique", every_type, x.dtype());
  if (!a.axis) {
    Tensors found = distinct_rows(a, tn::reshape(x, {Dim(-1)}));
    found[2] = tn::reshape(found[2], x.shape());
    return found;
  }
  int axis = normal_axis(*a.axis, x.rank(), "unique");
  Tensors found = distinct_rows(a, tn::moveaxis(x, Axes(axis), Axes(0)));
  found[0] = tn::moveaxis(found[0], Axes(0), Axes(axis));
  return found;
}

}  // namespace

constexpr auto distinct_def = Composite<UniqueAttrs>{
    .doc =
        "The distinct elements in ascending order, or the distinct slices along `axis`; where the "
        "first of each is, for each element the number of its value, and how often each value "
        "occurs. NaN equals NaN unless `equal_nan` is false. The size depends on the values, so "
        "they are computed now, unless `size` is given: then there are that many results, filled "
        "up with `fill_value`, the first value by default.",
    .args = {"x"},
    .results = {"values", "indices", "inverse_indices", "counts"},
    .body = rule<unique_body>,
    .samples = {{"f32[7]", "size=9"},
                {"f32[2,3]", "size=4, fill_value=0.0"},
                {"f32[4,2]", "axis=0, size=4"},
                {"f32[2,3]", "axis=-1, size=3, equal_nan=false"}},
};
TN_OP(distinct);

constexpr auto unique_all_def = Composite<>{
    .doc =
        "The distinct elements in ascending order, the row-major position of the first of each, "
        "for each "
        "element the number of its value (in the shape of `x`), and how often each value occurs. "
        "NaN "
        "differs from NaN. Sizes depend on the values, so they are computed now.",
    .args = {"x"},
    .results = {"values", "indices", "inverse_indices", "counts"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Unique u = find_unique("unique_all", in[0]);
      Tensor first = positions(u.first, {u.count});
      return {values_at(in[0], first), first, positions(u.inverse, in[0].shape()),
              positions(u.counts, {u.count})};
    },
    .samples = {{"f32[7]"}, {"f32[2,3]"}, {"f32[]"}},
};
TN_OP(unique_all);

constexpr auto unique_counts_def = Composite<>{
    .doc =
        "The distinct elements in ascending order and how often each occurs. NaN differs from NaN. "
        "Sizes "
        "depend on the values, so they are computed now.",
    .args = {"x"},
    .results = {"values", "counts"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Unique u = find_unique("unique_counts", in[0]);
      Tensor values = values_at(in[0], positions(u.first, {u.count}));
      return {values, positions(u.counts, {u.count})};
    },
    .samples = {{"f32[7]"}, {"f32[2,3]"}},
};
TN_OP(unique_counts);

constexpr auto unique_inverse_def = Composite<>{
    .doc =
        "The distinct elements in ascending order and, in the shape of `x`, for each element the "
        "number "
        "of its value: `take(values, inverse_indices)` is `x`. NaN differs from NaN. Sizes depend "
        "on the "
        "values, so they are computed now.",
    .args = {"x"},
    .results = {"values", "inverse_indices"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Unique u = find_unique("unique_inverse", in[0]);
      Tensor values = values_at(in[0], positions(u.first, {u.count}));
      return {values, positions(u.inverse, in[0].shape())};
    },
    .samples = {{"f32[7]"}, {"f32[2,3]"}},
};
TN_OP(unique_inverse);

constexpr auto unique_values_def = Composite<>{
    .doc =
        "The distinct elements in ascending order. NaN differs from NaN. The size depends on the "
        "values, "
        "so they are computed now.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Unique u = find_unique("unique_values", in[0]);
      return {values_at(in[0], positions(u.first, {u.count}))};
    },
    .samples = {{"f32[7]"}, {"f32[2,3]"}},
};
TN_OP(unique_values);

constexpr auto isin_def = Composite<IsinAttrs>{
    .doc =
        "Whether each element of `x1` is among those of `x2`, or is not when `invert` is set. NaN "
        "is in "
        "no set.",
    .args = {"x1", "x2"},
    .body = rule<isin_body>,
    .samples = {{"f32[2,3], f32[4]"}, {"f32[5], f32[2,2]", "invert=true"}, {"f32[], f32[3]"}},
};
TN_OP(isin);

}  // namespace tn::ops
