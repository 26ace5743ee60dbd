// Tensors joined, turned, extended and thinned out along axes: NumPy's names for it.
#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct MaybeAxisAttrs {
  Maybe<Axis> axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct Rot90Attrs {
  int64_t k = 1;
  Maybe<Ints> axes;
  static constexpr void fields(auto& a, auto&& f) { f("k", a.k), f("axes", a.axes); }
};

/// Each operand with as many axes as the result needs, joined along `axis`.
Tensors join(std::string_view op, const Tensors& in, Tensor (*widened)(const Operand&), int axis) {
  if (in.empty()) fail("{}: no tensors to join", op);
  Tensors parts;
  for (const Tensor& x : in) parts.push_back(widened(x));
  return {tn::concat(parts, Axis(axis))};
}

Tensor as_columns(const Operand& x) {
  if (x.tensor->rank() >= 2) return *x.tensor;
  return tn::reshape(x, {Dim(-1), 1});
}

Tensors turn_by_quarters(const Rot90Attrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Ints axes = a.axes ? *a.axes : Ints{0, 1};
  if (axes.size() != 2) fail("rot90: axes are two numbers, not {}: {}", axes.size(), *type_of(x));
  int first = normal_axis(axes[0], x.rank(), "rot90");
  int second = normal_axis(axes[1], x.rank(), "rot90");
  if (first == second) fail("rot90: two different axes are needed: {} ({})", first, *type_of(x));
  switch (((a.k % 4) + 4) % 4) {
    case 1:
      return {tn::swapaxes(tn::flip(x, Axes(second)), first, second)};
    case 2:
      return {tn::flip(x, Axes{first, second})};
    case 3:
      return {tn::flip(tn::swapaxes(x, first, second), Axes(second))};
    default:
      return {x};
  }
}

/// `x` and the axis to work along: of the flattened tensor when none is given.
int settle_axis(std::string_view op, const Maybe<Axis>& axis, Tensor& x) {
  if (!axis) x = tn::reshape(x, {Dim(-1)});
  return axis ? normal_axis(*axis, x.rank(), op) : 0;
}

/// Indices, or where a mask is true. No indices at all may have any type.
Tensor places_in(std::string_view op, const Tensor& indices) {
  if (indices.rank() > 1) fail("{}: indices have at most one axis: {}", op, *type_of(indices));
  if (indices.rank() == 1 && indices.dtype() == DType::b1) return tn::nonzero(indices)[0];
  if (!indices.shape().elements().is(0)) check_kind(op, integers, indices.dtype());
  return cast_to(indices, DType::i64);
}

/// The values to insert, with all axes of `x`; their number along `axis` is how many are inserted.
Tensor inserted_values(const Tensor& x, int axis, const Tensor& indices, Tensor values) {
  if (values.rank() > x.rank())
    fail("insert: values have more axes than x: {} and {}", *type_of(values), *type_of(x));
  bool at_one_place = indices.rank() == 0 || decide_equal(indices.shape()[0], 1);
  values = tn::reshape(values, with_leading_ones(values.shape(), x.rank()));
  // x[:, 0, :] = values has the axes of values in another place than x[:, [0], :] = values.
  if (indices.rank() == 0) values = tn::moveaxis(values, Axes(0), Axes(axis));
  Dim count = at_one_place ? values.shape()[axis] : indices.shape()[0];
  return tn::broadcast_to(values, with_extent(x.shape(), axis, count));
}

/// Elements in the order of their places: what is inserted at i goes before element i.
Tensors insert_values(const MaybeAxisAttrs& a, const Tensors& in) {
  Tensor x = in[0];
  int axis = settle_axis("insert", a.axis, x);
  Dim n = x.shape()[axis];
  Tensor given = places_in("insert", in[1]);
  Tensor values = inserted_values(x, axis, given, cast_to(in[2], x.dtype()));
  Dim count = values.shape()[axis];
  if (auto ends = known_ends(given); ends && n.is_const()) {
    int64_t outside = ends->first < -n.raw ? ends->first : ends->second;
    if (outside < -n.raw || outside > n.raw)
      fail(Fault::index, "insert: index {} is out of bounds for an axis of extent {}: {}", outside,
           n, *type_of(in[0]));
    if (ends->first == ends->second) {  // at one place
      int64_t at = outside < 0 ? outside + n.raw : outside;
      return {tn::concat({slice_axis(x, axis, 0, at), values, slice_axis(x, axis, at, n)}, axis)};
    }
  }
  Tensor places = tn::clip(tn::where(given < 0, given + n, given), 0, n);
  places = tn::broadcast_to(places, {count});
  Tensor order = tn::argsort(tn::concat({places * 2, tn::iota({n}) * 2 + 1}, 0));
  return {tn::gather(tn::concat({values, x}, Axis(axis)), {order}, Axes(axis))};
}

/// The places of the elements that go, in order, each once.
std::vector<int64_t> deleted_places(const Tensor& which, int64_t count, const Type& x) {
  std::vector<int64_t> gone;
  if (which.dtype() == DType::b1) {
    if (which.rank() != 1 || !decide_equal(which.shape()[0], count))
      fail("delete: the mask does not fit the axis of extent {}: {} and {}", count, *type_of(which),
           x);
    Tensor known = values_now("delete", which);
    auto* goes = static_cast<const bool*>(known.data());
    for (int64_t i = 0; i < count; ++i)
      if (goes[i]) gone.push_back(i);
    return gone;
  }
  Tensor places = places_in("delete", which);
  Tensor known = values_now("delete", places);
  auto* at = known.data<int64_t>();
  for (int64_t i = 0; i < places.size(); ++i) {
    if (at[i] < -count || at[i] >= count)
      fail(Fault::index, "delete: index {} is out of bounds for an axis of extent {}: {}", at[i],
           count, x);
    gone.push_back(at[i] < 0 ? at[i] + count : at[i]);
  }
  std::ranges::sort(gone);
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  return gone;
}

/// Few runs of elements that stay are slices, joined; many are gathered.
Tensors delete_at(const MaybeAxisAttrs& a, const Tensors& in) {
  constexpr size_t kFewRuns = 8;
  Tensor x = in[0];
  int axis = settle_axis("delete", a.axis, x);
  int64_t n = x.shape()[axis].value(), begin = 0;
  std::vector<int64_t> gone = deleted_places(in[1], n, *type_of(in[0]));
  std::vector<std::pair<int64_t, int64_t>> runs;
  gone.push_back(n);
  for (int64_t end : gone) {
    if (begin < end) runs.emplace_back(begin, end);
    begin = end + 1;
  }
  if (runs.empty()) return {slice_axis(x, axis, 0, 0)};
  if (runs.size() <= kFewRuns) {
    Tensors parts;
    for (auto [first, end] : runs) parts.push_back(slice_axis(x, axis, first, end));
    return {tn::concat(parts, Axis(axis))};
  }
  std::vector<int64_t> places(static_cast<size_t>(n) + 1 - gone.size());
  auto to = places.begin();
  for (auto [first, end] : runs)
    for (int64_t i = first; i < end; ++i) *to++ = i;
  Dim count = static_cast<int64_t>(places.size());
  return {tn::gather(x, {from_elements(places.data(), places.size(), DType::i64, {count})},
                     Axes(axis))};
}

}  // namespace

constexpr auto vstack_def = Composite<>{
    .doc = "Joins tensors as rows, along axis 0; those of one axis become rows first.",
    .args = {"*arrays"},
    .body = [](const NoAttrs&, const Tensors& in) { return join("vstack", in, tn::atleast_2d, 0); },
    .samples = {{"f32[3], f32[3]"}, {"f32[2,3], f32[3], f32[1,3]"}, {"f32[], f32[]"}},
};
TN_OP(vstack);

constexpr auto hstack_def = Composite<>{
    .doc = "Joins tensors side by side: along axis 1, those of one axis along axis 0.",
    .args = {"*arrays"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      bool flat = !in.empty() && in[0].rank() < 2;
      return join("hstack", in, tn::atleast_1d, flat ? 0 : 1);
    },
    .samples = {{"f32[3], f32[2]"}, {"f32[2,3], f32[2,1]"}, {"f32[], f32[]"}},
};
TN_OP(hstack);

constexpr auto dstack_def = Composite<>{
    .doc = "Joins tensors along axis 2; [n] counts as [1,n,1] and [m,n] as [m,n,1].",
    .args = {"*arrays"},
    .body = [](const NoAttrs&, const Tensors& in) { return join("dstack", in, tn::atleast_3d, 2); },
    .samples = {{"f32[3], f32[3]"}, {"f32[2,3], f32[2,3]"}, {"f32[2,3,1], f32[2,3,2]"}},
};
TN_OP(dstack);

constexpr auto column_stack_def = Composite<>{
    .doc = "Joins tensors along axis 1; those of one axis become columns first.",
    .args = {"*arrays"},
    .body = [](const NoAttrs&,
               const Tensors& in) { return join("column_stack", in, as_columns, 1); },
    .samples = {{"f32[3], f32[3]"}, {"f32[2,3], f32[2]"}},
};
TN_OP(column_stack);

constexpr auto append_def = Composite<MaybeAxisAttrs>{
    .doc = "`values` behind the elements of `x` along `axis`; without it both are flattened first.",
    .args = {"x", "values"},
    .body = [](const MaybeAxisAttrs& a, const Tensors& in) -> Tensors {
      return {tn::concat({in[0], in[1]}, a.axis)};
    },
    .samples = {{"f32[3], f32[2]"}, {"f32[2,3], f32[]"}, {"f32[2,3], f32[1,3]", "axis=0"}},
};
TN_OP(append);

constexpr auto insert_elements_def = Composite<MaybeAxisAttrs>{
    .doc =
        "`x` with `values` before the elements at `indices` along `axis`; without it `x` is "
        "flattened first. Indices count the elements of `x` as it was, negative ones from its end; "
        "values inserted at one place keep their order. A mask is true at the indices. `values` "
        "broadcast and take the type of `x`. Indices out of bounds are errors; in traced "
        "functions, which do not know them, they are clamped.",
    .args = {"x", "indices", "values"},
    .body = rule<insert_values>,
    .samples = {{"f32[4], i64[], f32[]", "", 0, 2},
                {"f32[2,3], i64[2], f32[]", "axis=1", -2, 2},
                {"f32[3,2], i64[3], f32[3,2]", "axis=0", 0, 3},
                {"f32[2,3], i64[], f32[2,1]", "axis=1", 0, 3}},
};
TN_OP(insert_elements);

constexpr auto delete_elements_def = Composite<MaybeAxisAttrs>{
    .doc =
        "`x` without the elements at `indices` along `axis`; without it `x` is flattened first. "
        "`indices` are integers, negative ones counting from the end, or a mask that is true for "
        "what goes. The size depends on their values, so they are computed now.",
    .args = {"x", "indices"},
    .body = rule<delete_at>,
    .samples = {{"f32[4], i64[]", "", 0, 3},
                {"f32[3,4], i64[2]", "axis=1", -2, 2},
                {"f32[3,2], bool[3]", "axis=0"}},
};
TN_OP(delete_elements);

constexpr auto rot90_def = Composite<Rot90Attrs>{
    .doc =
        "Turns the plane of `axes` (0 and 1 by default) by `k` quarters, from the first axis "
        "towards the second.",
    .args = {"x"},
    .body = rule<turn_by_quarters>,
    .samples = {{"f32[2,3]"},
                {"f32[2,3]", "k=-1"},
                {"f32[2,3,4]", "k=2, axes=[1,2]"},
                {"f32[2,3,4]", "k=7, axes=[2,0]"}},
};
TN_OP(rot90);

constexpr auto fliplr_def = Composite<>{
    .doc = "Reverses axis 1.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      if (in[0].rank() < 2) fail("fliplr: two axes are needed: {}", *type_of(in[0]));
      return {tn::flip(in[0], Axes(1))};
    },
    .samples = {{"f32[2,3]"}, {"f32[2,3,2]"}},
};
TN_OP(fliplr);

constexpr auto flipud_def = Composite<>{
    .doc = "Reverses axis 0.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      if (in[0].rank() < 1) fail("flipud: an axis is needed: {}", *type_of(in[0]));
      return {tn::flip(in[0], Axes(0))};
    },
    .samples = {{"f32[3]"}, {"f32[2,3]"}},
};
TN_OP(flipud);

}  // namespace tn::ops
