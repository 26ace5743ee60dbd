// Axes added, removed, moved and merged: names for reshape, permute_dims and broadcast_to.
#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

struct SqueezeAttrs {
  Maybe<Axes> axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct MoveAttrs {
  Axes source, destination;
  static constexpr void fields(auto& a, auto&& f) {
    f("source", a.source, required), f("destination", a.destination, required);
  }
};

struct SwapAttrs {
  Axis axis1, axis2;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis1", a.axis1, required), f("axis2", a.axis2, required);
  }
};

struct FlattenAttrs {
  Axis start_axis = 0, end_axis = -1;
  static constexpr void fields(auto& a, auto&& f) {
    f("start_axis", a.start_axis), f("end_axis", a.end_axis);
  }
};

struct UnflattenAttrs {
  Axis axis;
  Shape shape;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis, required), f("shape", a.shape, required);
  }
};

struct ExpandAttrs {
  Shape shape;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape, required); }
};

struct NarrowAttrs {
  Axis axis;
  Offsets start;
  Dim length = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis, required), f("start", a.start, required), f("length", a.length, required);
  }
};

Tensors remove_axes(const SqueezeAttrs& a, const Tensors& in) {
  const Type& x = *type_of(in[0]);
  Axes axes = normal_axes(a.axis, x.rank(), "squeeze"), removed;
  for (Axis k : axes) {
    if (decide_equal(x.shape[k.i], 1))
      removed.push_back(k);
    else if (a.axis)
      fail("squeeze: axis {} has extent {}, not 1: {}", k.i, x.shape[k.i], x);
  }
  return {tn::reshape(in[0], without_axes(x.shape, removed))};
}

Tensors insert_axes(const SqueezeAttrs& a, const Tensors& in) {
  Axes given = a.axis.value_or(Axes(0));
  Axes axes = normal_axes(given, in[0].rank() + given.size(), "expand_dims");
  Shape shape = in[0].shape();
  for (Axis k : axes) shape.insert(k.i, 1);
  return {tn::reshape(in[0], shape)};
}

Tensors move_axes(const MoveAttrs& a, const Tensors& in) {
  int rank = in[0].rank(), count = a.source.size();
  if (a.destination.size() != count)
    fail("moveaxis: {} axes to {} places ({})", count, a.destination.size(), *type_of(in[0]));
  Axes source = normal_axes(a.source, rank, "moveaxis");
  normal_axes(a.destination, rank, "moveaxis");
  std::vector<int> order(static_cast<size_t>(rank), -1);
  for (int i = 0; i < count; ++i)
    order[static_cast<size_t>(normal_axis(a.destination[i], rank, "moveaxis"))] =
        normal_axis(a.source[i], rank, "moveaxis");
  int next = 0;
  Perm perm;
  for (int from : order) {
    while (from < 0 && source.has(next)) ++next;
    perm.push_back(from < 0 ? next++ : from);
  }
  return {tn::permute_dims(in[0], perm)};
}

Tensor swap(std::string_view op, const Tensor& x, Axis axis1, Axis axis2) {
  int first = normal_axis(axis1, x.rank(), op), second = normal_axis(axis2, x.rank(), op);
  Perm perm;
  for (int k = 0; k < x.rank(); ++k) perm.push_back(k == first ? second : k == second ? first : k);
  return tn::permute_dims(x, perm);
}

Tensors merge_axes(const FlattenAttrs& a, const Tensors& in) {
  const Shape& x = in[0].shape();
  if (x.rank() == 0) return {tn::reshape(in[0], {Dim(1)})};
  int first = normal_axis(a.start_axis, x.rank(), "flatten");
  int last = normal_axis(a.end_axis, x.rank(), "flatten");
  if (last < first) fail("flatten: axis {} comes after axis {}: {}", first, last, *type_of(in[0]));
  Shape shape;
  for (int k = 0; k < x.rank(); ++k) {
    if (k > first && k <= last)
      shape[first] *= x[k];
    else
      shape.push_back(x[k]);
  }
  return {tn::reshape(in[0], shape)};
}

Tensors part_axis(const UnflattenAttrs& a, const Tensors& in) {
  const Type& x = *type_of(in[0]);
  int axis = normal_axis(a.axis, x.rank(), "unflatten"), left = -1;
  Dim known = 1;
  Shape shape = x.shape;
  shape.erase(axis);
  for (int i = 0; i < a.shape.rank(); ++i) {
    shape.insert(axis + i, a.shape[i]);
    if (!a.shape[i].is_inferred())
      known *= a.shape[i];
    else if (left >= 0)
      fail("unflatten: only one extent may be -1: {} ({})", a.shape, x);
    else
      left = axis + i;
  }
  std::optional<Dim> rest = left >= 0 ? divided(x.shape[axis], known) : Dim(1);
  if (left >= 0 && rest) shape[left] = *rest;
  if (!rest || (left < 0 && !decide_equal(known, x.shape[axis])))
    fail("unflatten: axis {} of extent {} does not make {}: {}", axis, x.shape[axis], a.shape, x);
  return {tn::reshape(in[0], shape)};
}

Tensors expand_to(const ExpandAttrs& a, const Tensors& in) {
  const Type& x = *type_of(in[0]);
  Shape shape = a.shape;
  int added = shape.rank() - x.rank();
  for (int k = 0; k < shape.rank(); ++k) {
    if (!shape[k].is_inferred()) continue;
    if (k < added) fail("expand: a new axis needs an extent: {} ({})", shape, x);
    shape[k] = x.shape[k - added];
  }
  return {tn::broadcast_to(in[0], shape)};
}

Tensors narrow_axis(const NarrowAttrs& a, const Tensors& in) {
  const Type& x = *type_of(in[0]);
  int axis = normal_axis(a.axis, x.rank(), "narrow");
  if (a.start.size() != 1) fail("narrow: start is one integer, not {} ({})", a.start.size(), x);
  Dim n = x.shape[axis];
  Offset from = decide_at_least(a.start[0], 0) ? a.start[0] : a.start[0] + n;
  if (!decide_at_least(from, 0) || !decide_at_least(n, from.size() + a.length))
    fail(Fault::index, "narrow: {} elements from index {} exceed axis {} of extent {}: {}",
         a.length, a.start[0], axis, n, x);
  return {slice_axis(in[0], axis, from, from + a.length)};
}

Tensors broadcast_all(const NoAttrs&, const Tensors& in) {
  Shape shape;
  for (const Tensor& t : in) shape = broadcast(shape, t.shape(), "broadcast_arrays");
  Tensors out;
  for (const Tensor& t : in)
    out.push_back(identical(t.shape(), shape) ? t : tn::broadcast_to(t, shape));
  return out;
}

}  // namespace

constexpr auto squeeze_def = Composite<SqueezeAttrs>{
    .doc =
        "Removes the axes in `axis`, which must have extent 1; all such axes when it is left out.",
    .args = {"x"},
    .body = rule<remove_axes>,
    .samples = {{"f32[1,3,1]"}, {"f32[1,3,1]", "axis=[-1]"}, {"f32[1,1]", "axis=[0,1]"}},
};
TN_OP(squeeze);

constexpr auto expand_dims_def = Composite<SqueezeAttrs>{
    .doc =
        "Adds axes of extent 1 at the places `axis` of the result; in front when it is left out.",
    .aliases = {"unsqueeze"},
    .args = {"x"},
    .body = rule<insert_axes>,
    .samples = {{"f32[2,3]", "axis=[0]"}, {"f32[2,3]", "axis=[-1,1]"}, {"f32[]", "axis=[0]"}},
};
TN_OP(expand_dims);

constexpr auto moveaxis_def = Composite<MoveAttrs>{
    .doc = "Moves the axes `source` to the places `destination`; the others keep their order.",
    .aliases = {"movedim"},
    .args = {"x"},
    .body = rule<move_axes>,
    .samples = {{"f32[2,3,4]", "source=[0], destination=[-1]"},
                {"f32[2,3,4]", "source=[2,0], destination=[0,1]"}},
};
TN_OP(moveaxis);

constexpr auto swapaxes_def = Composite<SwapAttrs>{
    .doc = "Exchanges two axes.",
    .aliases = {"swapdims"},
    .args = {"x"},
    .body = [](const SwapAttrs& a, const Tensors& in) -> Tensors {
      return {swap("swapaxes", in[0], a.axis1, a.axis2)};
    },
    .samples = {{"f32[2,3,4]", "axis1=0, axis2=-1"}, {"f32[2,3]", "axis1=1, axis2=1"}},
};
TN_OP(swapaxes);

constexpr auto matrix_transpose_def = Composite<>{
    .doc = "Exchanges the last two axes.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      if (in[0].rank() < 2) fail("matrix_transpose: two axes are needed: {}", *type_of(in[0]));
      return {swap("matrix_transpose", in[0], -2, -1)};
    },
    .samples = {{"f32[2,3]"}, {"f32[4,2,3]"}},
};
TN_OP(matrix_transpose);

constexpr auto flatten_def = Composite<FlattenAttrs>{
    .doc =
        "Merges the axes from `start_axis` to `end_axis`, both included, into one. A 0-d tensor "
        "becomes 1-d.",
    .aliases = {"ravel"},
    .args = {"x"},
    .body = rule<merge_axes>,
    .samples = {{"f32[2,3,4]"},
                {"f32[2,3,4]", "start_axis=1"},
                {"f32[2,3,4]", "start_axis=0, end_axis=-2"}},
};
TN_OP(flatten);

constexpr auto unflatten_def = Composite<UnflattenAttrs>{
    .doc = "Parts `axis` into axes of `shape`, where one extent may be -1.",
    .args = {"x"},
    .body = rule<part_axis>,
    .samples = {{"f32[2,6]", "axis=1, shape=[2,3]"}, {"f32[6,2]", "axis=-2, shape=[3,-1]"}},
};
TN_OP(unflatten);

constexpr auto expand_def = Composite<ExpandAttrs>{
    .doc = "As `broadcast_to`, where -1 keeps the extent.",
    .args = {"x"},
    .body = rule<expand_to>,
    .samples = {{"f32[1,3]", "shape=[2,-1]"}, {"f32[2,1]", "shape=[4,-1,3]"}},
};
TN_OP(expand);

constexpr auto expand_as_def = Composite<>{
    .doc = "`x` broadcast to the shape of `other`.",
    .args = {"x", "other"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      return {tn::broadcast_to(in[0], in[1].shape())};
    },
    .samples = {{"f32[3], f32[2,3]"}, {"f32[2,1], f32[4,2,3]"}},
};
TN_OP(expand_as);

constexpr auto narrow_def = Composite<NarrowAttrs>{
    .doc =
        "The `length` elements of `axis` from `start` on, which counts from the end when it is "
        "negative. A part that leaves the axis is an error.",
    .args = {"x"},
    .body = rule<narrow_axis>,
    .samples = {{"f32[5,2]", "axis=0, start=[1], length=3"},
                {"f32[2,5]", "axis=-1, start=[-3], length=2"}},
};
TN_OP(narrow);

constexpr auto broadcast_arrays_def = Composite<>{
    .doc = "Broadcasts tensors against each other. Element types stay.",
    .args = {"*arrays"},
    .results = {"*"},
    .body = rule<broadcast_all>,
    .samples = {{"f32[2,1], f32[3]"}, {"f32[2,3], f32[]"}},
};
TN_OP(broadcast_arrays);

constexpr auto atleast_1d_def = Composite<>{
    .doc = "A 0-d tensor as 1-d; others stay.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      return {in[0].rank() < 1 ? tn::reshape(in[0], {Dim(1)}) : in[0]};
    },
    .samples = {{"f32[]"}, {"f32[2]"}},
};
TN_OP(atleast_1d);

constexpr auto atleast_2d_def = Composite<>{
    .doc = "A tensor of fewer than two axes with axes of extent 1 in front; others stay.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      bool fits = in[0].rank() >= 2;
      return {fits ? in[0] : tn::reshape(in[0], with_leading_ones(in[0].shape(), 2))};
    },
    .samples = {{"f32[]"}, {"f32[2]"}, {"f32[2,3]"}},
};
TN_OP(atleast_2d);

constexpr auto atleast_3d_def = Composite<>{
    .doc =
        "A tensor with three axes at least: [] becomes [1,1,1], [n] becomes [1,n,1], [m,n] becomes "
        "[m,n,1]; others stay.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Shape shape = in[0].shape();
      if (shape.rank() >= 3) return {in[0]};
      if (shape.rank() < 2) shape.insert(0, 1);
      while (shape.rank() < 3) shape.push_back(1);
      return {tn::reshape(in[0], shape)};
    },
    .samples = {{"f32[]"}, {"f32[2]"}, {"f32[2,3]"}, {"f32[2,3,4]"}},
};
TN_OP(atleast_3d);

}  // namespace tn::ops
