// Reading by index: gather and what is built on it.
#include "base/error.h"
#include "ops/families.h"
#include "ops/indexing.h"
#include "ops/op_decls.h"
#include "ops/scatter_kernel.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct GatherAttrs {
  Axes axes;
  static constexpr void fields(auto& a, auto&& f) { f("axes", a.axes, required); }
};

struct TakeAttrs {
  Maybe<Axis> axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct AlongAttrs {
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct SizesAttrs {
  Shape sizes;
  static constexpr void fields(auto& a, auto&& f) { f("sizes", a.sizes, required); }
};

struct OneHotAttrs {
  int64_t num_classes = 0;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) {
    f("num_classes", a.num_classes, required), f("dtype", a.dtype);
  }
};

Type infer_gather(const GatherAttrs& a, Types in) {
  Shape indices = index_shape("gather", in.subspan(1));
  return {in[0]->dtype, indexed_shape("gather", *in[0], a.axes, indices)};
}

/// The coordinates of an operand of `shape` that broadcasts to the axes at[first, first + rank).
loop::Coords broadcast_coords(loop::Lowering& l, const Shape& shape, const loop::Coords& at,
                              int end) {
  loop::Coords out;
  for (int k = 0; k < shape.rank(); ++k)
    out.push_back(shape[k] == Dim(1) ? l.number(0)
                                     : at[static_cast<size_t>(end - shape.rank() + k)]);
  return out;
}

void lower_gather(const GatherAttrs& a, loop::Lowering& l) {
  const Shape& shape = l.in[0]->shape;
  int index_rank = index_shape("gather", l.in.subspan(1)).rank();
  loop::Coords to = l.loops(l.out[0]->shape), from;
  int first = a.axes[0].i, next = 0, operand = 1;
  for (int k = 0; k < shape.rank(); ++k) {
    if (k == first) next += index_rank;
    if (!a.axes.has(k)) {
      from.push_back(to[static_cast<size_t>(next++)]);
      continue;
    }
    const Shape& indices = l.in[static_cast<size_t>(operand)]->shape;
    S place = l.load_real(operand++, broadcast_coords(l, indices, to, first + index_rank));
    from.push_back(l.coordinate(place, shape[k]));
  }
  l.store(0, to, l.load(0, from));
}

void run_gather(const LibraryCall& call) {
  const auto& a = *static_cast<const GatherAttrs*>(call.attrs);
  Types indices = call.in_types.subspan(1);
  const Type& x = *call.in_types[0];
  ScatterPlan plan = plan_scatter(x.shape, a.axes, index_shape("gather", indices), indices,
                                  call.in + 1, OutOfRange::clamp);
  gather_from(plan, x.dtype, call.in[0], call.out[0]);
}

Tensors take_at(const TakeAttrs& a, const Tensors& in) {
  Tensor x = a.axis ? in[0] : tn::reshape(in[0], {Dim(-1)});
  int axis = a.axis ? normal_axis(*a.axis, x.rank(), "take") : 0;
  check_kind("take", integers, in[1].dtype());
  return {tn::gather(x, {wrap_negative(in[1], x.shape()[axis])}, Axes(axis))};
}

Tensors take_along(const AlongAttrs& a, const Tensors& in) {
  const Type &x = *type_of(in[0]), &at = *type_of(in[1]);
  check_kind("take_along_axis", integers, at.dtype);
  if (x.rank() != at.rank()) fail("take_along_axis: ranks differ: {} and {}", x, at);
  int axis = normal_axis(a.axis, x.rank(), "take_along_axis");
  Shape shape = broadcast(with_extent(x.shape, axis, 1), at.shape, "take_along_axis");
  Tensor wide = tn::broadcast_to(in[0], with_extent(shape, axis, x.shape[axis]));
  Tensor indices = tn::broadcast_to(wrap_negative(in[1], x.shape[axis]), shape);
  Axes axes;
  for (int k = 0; k < x.rank(); ++k) axes.push_back(k);
  return {tn::gather(wide, along_axis(indices, axis), axes)};
}

void prepare_dynamic_slice(SizesAttrs&, Tensors& in) {
  for (size_t i = 1; i < in.size(); ++i) {
    check_kind("dynamic_slice", integers, in[i].dtype());
    in[i] = cast_to(in[i], DType::i64);
  }
}

Type infer_dynamic_slice(const SizesAttrs& a, Types in) {
  const Type& x = *in[0];
  if (a.sizes.rank() != x.rank() || static_cast<int>(in.size()) != x.rank() + 1)
    fail("dynamic_slice: {} sizes and {} starts for {}", a.sizes.rank(), in.size() - 1, x);
  for (int k = 0; k < x.rank(); ++k) {
    const Type& start = *in[static_cast<size_t>(k) + 1];
    if (start.rank() != 0) fail("dynamic_slice: a start must be one integer: {}", start);
    if (a.sizes[k].is_inferred() || at_least(x.shape[k], a.sizes[k]) != Tri::yes)
      fail("dynamic_slice: size {} does not fit axis {}: {} ({})", a.sizes[k], k, x.shape[k], x);
  }
  return {x.dtype, a.sizes};
}

/// A start is moved so that the whole slice lies inside.
void lower_dynamic_slice(const SizesAttrs& a, loop::Lowering& l) {
  loop::Coords to = l.loops(a.sizes), from;
  for (int k = 0; k < a.sizes.rank(); ++k) {
    Dim places = l.in[0]->shape[k] - a.sizes[k] + Dim(1);
    from.push_back(l.add(l.coordinate(l.load_real(k + 1, {}), places), to[static_cast<size_t>(k)]));
  }
  l.store(0, to, l.load(0, from));
}

}  // namespace

void sort_indices(std::string_view op, Axes& axes, Tensors& in, size_t first) {
  int count = static_cast<int>(in.size() - first);
  if (count == 0 || axes.size() != count)
    fail("{}: {} index tensors for {} axes ({})", op, count, axes.size(), *type_of(in[0]));
  for (int i = 0; i < count; ++i) {
    check_kind(op, integers, in[first + static_cast<size_t>(i)].dtype());
    axes[i] = normal_axis(axes[i], in[0].rank(), op);
  }
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && axes[j].i <= axes[j - 1].i; --j) {
      if (axes[j] == axes[j - 1])
        fail("{}: axis {} is given twice ({})", op, axes[j].i, *type_of(in[0]));
      std::swap(axes[j], axes[j - 1]);
      std::swap(in[first + static_cast<size_t>(j)], in[first + static_cast<size_t>(j) - 1]);
    }
  }
}

Shape index_shape(std::string_view op, Types indices) {
  Shape shape;
  for (TypeRef type : indices) {
    check_kind(op, integers, type->dtype);
    shape = broadcast(shape, type->shape, op);
  }
  return shape;
}

Shape indexed_shape(std::string_view op, const Type& x, const Axes& axes, const Shape& indices) {
  Shape shape;
  for (int k = 0; k < x.rank(); ++k) {
    if (k == axes[0].i)
      for (Dim d : indices) shape.push_back(d);
    if (!axes.has(k)) shape.push_back(x.shape[k]);
  }
  for (Axis k : axes)
    if (x.shape[k.i] == Dim(0) && shape.elements() != Dim(0))
      fail("{}: nothing to index along axis {}: {}", op, k.i, x);
  return shape;
}

Tensor wrap_negative(const Tensor& indices, Dim extent) {
  if (kind_of(indices.dtype()) == Kind::natural) return indices;
  Tensor wide = cast_to(indices, DType::i64);  // so that adding the extent cannot overflow
  return tn::where(tn::less(wide, 0), wide + extent.value(), wide);
}

Tensor positions(Dim extent, int rank, int axis) {
  return tn::iota(with_extent(Shape::filled(rank, 1), axis, extent), axis);
}

Tensors along_axis(const Tensor& indices, int axis) {
  Tensors list;
  for (int k = 0; k < indices.rank(); ++k)
    list.push_back(k == axis ? indices : positions(indices.shape()[k], indices.rank(), k));
  return list;
}

constinit const OpDef gather = Op<GatherAttrs>{
    .name = "gather",
    .doc =
        "Elements of `x` at `indices`, one integer tensor for each of `axes`, which broadcast "
        "together; "
        "their axes stand in the place of the first indexed axis, axes not indexed stay. Indices "
        "out "
        "of bounds are clamped.",
    .args = {"x", "*indices"},
    .prepare = [](GatherAttrs& a, Tensors& in) { sort_indices("gather", a.axes, in, 1); },
    .infer = rule<infer_gather>,
    .lower = rule<lower_gather>,
    .run = run_gather,
    .samples = {{"f32[5,4], i64[3]", "axes=[0]", 0, 3},
                {"f32[5,4], i64[3,1], i64[2]", "axes=[1,0]", 0, 3},
                {"f32[5,4,3], i32[2], i32[2]", "axes=[0,2]", 0, 2}},
};

constinit const OpDef take = Composite<TakeAttrs>{
    .name = "take",
    .doc =
        "Elements at `indices` along `axis`; of the flattened tensor when it is left out. Negative "
        "indices count from the end, those out of bounds are clamped.",
    .args = {"x", "indices"},
    .body = rule<take_at>,
    .samples = {{"f32[5], i64[3]", "", 0, 4},
                {"f32[5,4], i64[3]", "axis=1", -4, 3},
                {"f32[5,4], i64[2,3]", "axis=0", 0, 4}},
};

constinit const OpDef take_along_axis = Composite<AlongAttrs>{
    .name = "take_along_axis",
    .doc =
        "For each line along `axis` the elements at the matching line of `indices`; the other axes "
        "broadcast. Negative indices count from the end, those out of bounds are clamped.",
    .args = {"x", "indices"},
    .body = rule<take_along>,
    .samples = {{"f32[3,4], i64[3,2]", "", 0, 3}, {"f32[3,4], i64[2,4]", "axis=0", -3, 2}},
};

constinit const OpDef dynamic_slice = Op<SizesAttrs>{
    .name = "dynamic_slice",
    .doc =
        "The block of `sizes` that begins at `starts`, one integer for each axis. A start is "
        "clamped so "
        "that the block lies inside.",
    .args = {"x", "*starts"},
    .prepare = rule<prepare_dynamic_slice>,
    .infer = rule<infer_dynamic_slice>,
    .lower = rule<lower_dynamic_slice>,
    .samples = {{"f32[5], i64[]", "sizes=[3]", 0, 4},
                {"f32[5,4], i64[], i64[]", "sizes=[2,4]", -1, 4}},
};

constinit const OpDef one_hot = Composite<OneHotAttrs>{
    .name = "one_hot",
    .doc =
        "A new last axis of `num_classes` that is 1 at the index in `x` and 0 elsewhere; all 0 "
        "when the "
        "index is out of bounds.",
    .args = {"x"},
    .body = [](const OneHotAttrs& a, const Tensors& in) -> Tensors {
      check_kind("one_hot", integers, in[0].dtype());
      if (a.num_classes < 0) fail("one_hot: a negative number of classes: {}", a.num_classes);
      Tensor classes = tn::iota({a.num_classes});
      Shape shape = in[0].shape();
      shape.push_back(1);
      return {cast_to(tn::equal(tn::reshape(cast_to(in[0], DType::i64), shape), classes), a.dtype)};
    },
    .samples = {{"i64[4]", "num_classes=3", -1, 3}, {"i64[2,3]", "num_classes=4, dtype=i32", 0, 3}},
};

}  // namespace tn::ops
