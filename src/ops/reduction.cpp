// Reductions over sets of axes, and the positions of extremes.
#include "base/error.h"
#include "ops/cumulative.h"
#include "ops/families.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

/// Recorded reductions fold one axis at least: where none is given, a unit axis is added at the
/// end.
template <class A>
void settle_axes(std::string_view op, A& a, Tensor& x) {
  Axes axes = normal_axes(a.axis, x.rank(), op);
  if (axes.empty()) {
    Shape shape = x.shape();
    axes.push_back(shape.rank());
    shape.push_back(1);
    x = tn::reshape(x, shape);
    a.keepdims = false;
  }
  a.axis = axes;
}

/// Integers and bool become the widest type of their kind, so that sums of small types do not wrap.
void prepare_sum(std::string_view op, SumAttrs& a, Tensor& x) {
  check_kind(op, every_type, x.dtype());
  DType type = is_inexact(x.dtype()) ? x.dtype() : info(x.dtype()).accumulate;
  type = a.dtype.value_or(type);
  check_kind(op, numeric, type);
  if (is_complex(x.dtype()) && !is_complex(type))
    fail(Fault::type, "{}: a complex tensor has no {} {}: {}", op, type, op, *type_of(x));
  x = cast_to(x, type);
  a.dtype = {};
  settle_axes(op, a, x);
}

/// The result of a reduction over `axes`, as every element of `x` sees it.
Tensor spread_back(const Tensor& result, const Axes& axes, const Tensor& x) {
  return tn::broadcast_to(tn::reshape(result, without_axes(x.shape(), axes, true)), x.shape());
}

/// The sum of the tangents, each times all other factors: nothing is divided, so zeros do no harm.
Tensors jvp_prod(const SumAttrs& a, const Primal& p, const Tensors& t) {
  DType type = p.out[0].dtype(), wide = info(type).compute;
  Tensor x = lines_along(cast_to(p.in[0], wide), *a.axis);
  Tensor lines = lines_along(cast_to(t[0], wide), *a.axis);
  int axis = x.rank() - 1;
  Tensor sum = tn::sum(lines * products_of_others(x, axis), Axes(axis));
  return {cast_to(tn::reshape(sum, p.out[0].shape()), type)};
}

/// The mean of the tangents of the elements that equal the extreme.
Tensors jvp_extreme(const ReduceAttrs& a, const Primal& p, const Tensors& t) {
  DType wide = info(t[0].dtype()).compute;
  Tensor equal = tn::equal(p.in[0], spread_back(p.out[0], *a.axis, p.in[0]));
  Tensor count = tn::sum(cast_to(equal, wide), *a.axis, {}, a.keepdims);
  Tensor chosen = tn::where(equal, cast_to(t[0], wide), 0);
  return {cast_to(tn::sum(chosen, *a.axis, {}, a.keepdims) / count, t[0].dtype())};
}

void prepare_extreme(std::string_view op, ReduceAttrs& a, Tensor& x) {
  check_kind(op, ordered, x.dtype());
  settle_axes(op, a, x);
  for (Axis k : *a.axis)
    if (x.shape()[k.i].is(0))
      fail("{}: no elements along axis {}: {} ({})", op, k.i, x.shape(), *type_of(x));
}

void prepare_logical(std::string_view op, ReduceAttrs& a, Tensor& x) {
  check_kind(op, every_type, x.dtype());
  x = cast_to(x, DType::b1);
  settle_axes(op, a, x);
}

struct ArgAttrs {
  Maybe<Axis> axis;
  bool keepdims = false;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis), f("keepdims", a.keepdims); }
};

void prepare_argreduce(ArgreduceAttrs& a, Tensors& in) {
  Tensor& x = in[0];
  check_kind("argreduce", ordered, x.dtype());
  a.axis = normal_axis(a.axis, x.rank(), "argreduce");
  if (x.dtype() == DType::b1) x = cast_to(x, DType::u8);
}

Type infer_argreduce(const ArgreduceAttrs& a, Types in) {
  const Type& x = *in[0];
  check_kind("argreduce", reals, x.dtype);
  if (x.shape[a.axis.i].is(0))
    fail("argreduce: no elements along axis {}: {} ({})", a.axis.i, x.shape, x);
  return {DType::i64, without_axes(x.shape, Axes(a.axis.i))};
}

void lower_argreduce(const ArgreduceAttrs& a, loop::Lowering& l) {
  const Shape& shape = l.in[0]->shape;
  loop::Coords to = l.loops(l.out[0]->shape);
  loop::Coords from = to;
  from.insert(from.begin() + a.axis.i, l.loops({shape[a.axis.i]}, loop::AxisKind::red)[0]);
  auto monoid = a.mode == Extreme::max ? loop::Monoid::argmax : loop::Monoid::argmin;
  loop::AxisSet over = loop::AxisSet{1} << to.size();
  l.store_real(0, to, l.b.reduce(monoid, l.load_real(0, from), over));
}

Tensors find_extreme(std::string_view op, const ArgAttrs& a, const Tensor& x, Extreme mode) {
  check_kind(op, ordered, x.dtype());
  Axes axes = normal_axes(a.axis ? Maybe<Axes>(Axes(a.axis->i)) : Maybe<Axes>(), x.rank(), op);
  if (extent_of(x.shape(), axes).is(0)) fail("{}: no elements to choose from: {}", op, *type_of(x));
  ArgreduceAttrs attrs{a.axis ? axes[0] : Axis(0), mode};
  Tensor flat = a.axis ? x : tn::reshape(x, {Dim(-1)});
  Tensor at = call_with(argreduce, {flat}, &attrs)[0];
  if (!a.keepdims) return {at};
  return {tn::reshape(at, without_axes(x.shape(), axes, true))};
}

}  // namespace

constexpr auto sum_def = Reduction<SumAttrs>{
    .doc =
        "Sum over `axis`, over all axes when it is left out. The sum of no elements is 0. Bool and "
        "integers are summed as int64, unsigned ones as uint64, unless `dtype` says otherwise; "
        "float16 and bfloat16 are accumulated in float32 and rounded once. Integer sums wrap.",
    .monoid = loop::Monoid::add,
    .types = numeric,
    .prepare = [](SumAttrs& a, Tensors& in) { prepare_sum("sum", a, in[0]); },
    .linear = Linear::each,
    .adjoint = [](const SumAttrs& a, const Tensor& ct, const Tensors& in,
                  int) { return spread_back(ct, *a.axis, in[0]); },
    .samples = {{"f32[2,3]"},
                {"f32[2,3,4]", "axis=[0,-1], keepdims=true"},
                {"f32[5]", "axis=[0], dtype=c128"},
                {"f32[]"}},
};
TN_OP(sum);

constexpr auto prod_def = Reduction<SumAttrs>{
    .doc =
        "Product over `axis`, over all axes when it is left out. The product of no elements is 1. "
        "Element types are those of `sum`. Integer products wrap.",
    .monoid = loop::Monoid::mul,
    .types = numeric,
    .prepare = [](SumAttrs& a, Tensors& in) { prepare_sum("prod", a, in[0]); },
    .jvp = rule<jvp_prod>,
    .samples = {{"f32[2,3]"},
                {"f32[2,3,4]", "axis=[0,-1], keepdims=true"},
                {"f32[5]", "axis=[0], dtype=c128"}},
};
TN_OP(prod);

constexpr auto max_def = Reduction<>{
    .doc =
        "Largest element over `axis`, over all axes when it is left out. NaN if any element is "
        "NaN. "
        "An axis without elements is an error.",
    .monoid = loop::Monoid::max,
    .types = ordered,
    .prepare = [](ReduceAttrs& a, Tensors& in) { prepare_extreme("max", a, in[0]); },
    .jvp = rule<jvp_extreme>,
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], keepdims=true"}, {"f32[]"}},
};
TN_OP(max);

constexpr auto min_def = Reduction<>{
    .doc =
        "Smallest element over `axis`, over all axes when it is left out. NaN if any element is "
        "NaN. An axis without elements is an error.",
    .monoid = loop::Monoid::min,
    .types = ordered,
    .prepare = [](ReduceAttrs& a, Tensors& in) { prepare_extreme("min", a, in[0]); },
    .jvp = rule<jvp_extreme>,
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], keepdims=true"}, {"f32[]"}},
};
TN_OP(min);

constexpr auto amax_def = Composite<ReduceAttrs>{
    .doc = "`max`, by NumPy's other name. With PyTorch's `dim=` it gives no indices, as there.",
    .args = {"x"},
    .body = [](const ReduceAttrs& a, const Tensors& in) -> Tensors {
      return {tn::max(in[0], a.axis, a.keepdims)};
    },
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], keepdims=true"}},
};
TN_OP(amax);

constexpr auto amin_def = Composite<ReduceAttrs>{
    .doc = "`min`, by NumPy's other name. With PyTorch's `dim=` it gives no indices, as there.",
    .args = {"x"},
    .body = [](const ReduceAttrs& a, const Tensors& in) -> Tensors {
      return {tn::min(in[0], a.axis, a.keepdims)};
    },
    .samples = {{"f32[2,3]"}, {"f32[2,3,4]", "axis=[0,-1], keepdims=true"}},
};
TN_OP(amin);

constexpr auto all_def = Reduction<>{
    .doc =
        "Whether every element over `axis` is true, that is, not 0. NaN is true; of no elements it "
        "holds.",
    .monoid = loop::Monoid::and_,
    .types = booleans,
    .prepare = [](ReduceAttrs& a, Tensors& in) { prepare_logical("all", a, in[0]); },
    .gradient = Gradient::zero,
    .samples = {{"f32[2,3]", "", 0, 2}, {"f32[2,3,4]", "axis=[-1], keepdims=true", 0, 2}},
};
TN_OP(all);

constexpr auto any_def = Reduction<>{
    .doc =
        "Whether some element over `axis` is true, that is, not 0. NaN is true; of no elements it "
        "does not hold.",
    .monoid = loop::Monoid::or_,
    .types = booleans,
    .prepare = [](ReduceAttrs& a, Tensors& in) { prepare_logical("any", a, in[0]); },
    .gradient = Gradient::zero,
    .samples = {{"f32[2,3]", "", 0, 2}, {"f32[2,3,4]", "axis=[-1], keepdims=true", 0, 2}},
};
TN_OP(any);

constexpr auto argreduce_def = Op<ArgreduceAttrs>{
    .doc =
        "Index of the first largest or smallest element along `axis`, as int64. The first NaN, if "
        "there is one, counts as the extreme.",
    .args = {"x"},
    .prepare = rule<prepare_argreduce>,
    .infer = rule<infer_argreduce>,
    .lower = rule<lower_argreduce>,
    .gradient = Gradient::zero,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "axis=1"}, {"f32[4,2,3]", "axis=0, mode=min"}},
};
TN_OP(argreduce);

constexpr auto argmax_def = Composite<ArgAttrs>{
    .doc =
        "Index of the largest element along `axis`, in row-major order of all elements when it is "
        "left out; the first of equal ones, the first NaN if there is one. The result is int64.",
    .args = {"x"},
    .body = [](const ArgAttrs& a,
               const Tensors& in) { return find_extreme("argmax", a, in[0], Extreme::max); },
    .samples = {{"f32[2,3]"},
                {"f32[4,2,3]", "axis=-2, keepdims=true"},
                {"f32[2,3]", "keepdims=true"}},
};
TN_OP(argmax);

constexpr auto argmin_def = Composite<ArgAttrs>{
    .doc =
        "Index of the smallest element along `axis`, in row-major order of all elements when it is "
        "left out; the first of equal ones, the first NaN if there is one. The result is int64.",
    .args = {"x"},
    .body = [](const ArgAttrs& a,
               const Tensors& in) { return find_extreme("argmin", a, in[0], Extreme::min); },
    .samples = {{"f32[2,3]"},
                {"f32[4,2,3]", "axis=-2, keepdims=true"},
                {"f32[2,3]", "keepdims=true"}},
};
TN_OP(argmin);

constexpr auto count_nonzero_def = Composite<ReduceAttrs>{
    .doc = "Number of elements over `axis` that are not 0, as int64. NaN counts.",
    .args = {"x"},
    .body = [](const ReduceAttrs& a, const Tensors& in) -> Tensors {
      check_kind("count_nonzero", every_type, in[0].dtype());
      normal_axes(a.axis, in[0].rank(), "count_nonzero");
      return {tn::sum(cast_to(in[0], DType::b1), a.axis, {}, a.keepdims)};
    },
    .samples = {{"f32[2,3]", "", 0, 2}, {"f32[2,3,4]", "axis=[1], keepdims=true", 0, 2}},
};
TN_OP(count_nonzero);

}  // namespace tn::ops
