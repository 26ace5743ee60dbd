// Sorting along an axis.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct PartitionAttrs {
  int64_t kth = 0;
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("kth", a.kth, required), f("axis", a.axis); }
};

/// Every sort is stable, so the attribute is not part of what is recorded.
void prepare_sort(std::string_view op, SortAttrs& a, const Tensor& x) {
  check_kind(op, every_type, x.dtype());
  if (x.rank() == 0) fail("{}: a scalar has no axis to sort: {}", op, *type_of(x));
  a.axis = normal_axis(a.axis, x.rank(), op);
  a.stable = true;
}

void prepare_top_k(TopKAttrs& a, Tensors& in) {
  const Type& x = *type_of(in[0]);
  check_kind("top_k", every_type, x.dtype);
  if (x.rank() == 0) fail("top_k: a scalar has no axis to choose from: {}", x);
  a.axis = normal_axis(a.axis, x.rank(), "top_k");
  Dim extent = x.shape[a.axis.i];
  if (a.k.is_negative() || !decide_at_least(extent, a.k))
    fail("top_k: k must lie in [0, {}], the extent of axis {}: {} ({})", extent, a.axis.i, a.k, x);
}

void check_kth(std::string_view op, const PartitionAttrs& a, const Tensor& x) {
  if (x.rank() == 0) fail("{}: a scalar has no axis: {}", op, *type_of(x));
  Dim extent = x.shape()[normal_axis(a.axis, x.rank(), op)];
  Offset place = a.kth < 0 ? Offset(a.kth) + extent : Offset(a.kth);
  if (!decide_at_least(place, 0) || decide_at_least(place, extent))
    fail(Fault::index, "{}: kth must lie in [-{}, {}): {} ({})", op, extent, extent, a.kth,
         *type_of(x));
}

}  // namespace

constexpr auto sort_def = Op<SortAttrs>{
    .doc =
        "The elements in ascending order along `axis`, or in `descending` order. Equal elements, 0 "
        "and "
        "-0 among them, keep their order. NaN comes last in both directions. Complex numbers "
        "compare "
        "by real part, then by imaginary part.",
    .args = {"x"},
    .prepare = [](SortAttrs& a, Tensors& in) { prepare_sort("sort", a, in[0]); },
    .infer = [](const SortAttrs&, Types in) -> TypeList { return Type(*in[0]); },
    .jvp = [](const SortAttrs& a, const Primal& p, const Tensors& t) -> Tensors {
      return {tn::take_along_axis(t[0], emit(argsort, {p.in[0]}, a), a.axis)};
    },
    .batch = Batch::aligned,
    .samples = {{"f32[7]"}, {"f32[3,5,2]", "axis=1"}, {"f32[4,3]", "axis=-2, descending=true"}},
};
TN_OP(sort);

constexpr auto argsort_def = Op<SortAttrs>{
    .doc =
        "The positions, as int64, that sort `x` along `axis`: `take_along_axis(x, argsort(x), "
        "axis)` is "
        "`sort(x)`. Equal elements keep their order; NaN comes last in both directions.",
    .args = {"x"},
    .prepare = [](SortAttrs& a, Tensors& in) { prepare_sort("argsort", a, in[0]); },
    .infer = [](const SortAttrs&, Types in) -> TypeList { return Type{DType::i64, in[0]->shape}; },
    .gradient = Gradient::zero,
    .batch = Batch::aligned,
    .samples = {{"f32[7]"}, {"f32[3,5,2]", "axis=1"}, {"f32[4,3]", "axis=-2, descending=true"}},
};
TN_OP(argsort);

constexpr auto top_k_def = Op<TopKAttrs>{
    .doc =
        "The `k` largest elements along `axis`, the largest first, and their positions as int64. "
        "Equal "
        "elements come in order of position; NaN counts as smallest.",
    .aliases = {"topk"},
    .args = {"x"},
    .results = {"values", "indices"},
    .prepare = rule<prepare_top_k>,
    .infer = [](const TopKAttrs& a, Types in) -> TypeList {
      Shape shape = with_extent(in[0]->shape, a.axis.i, a.k);
      return {Type{in[0]->dtype, shape}, Type{DType::i64, shape}};
    },
    .jvp = [](const TopKAttrs& a, const Primal& p, const Tensors& t) -> Tensors {
      return {tn::take_along_axis(t[0], p.out[1], a.axis), Tensor()};
    },
    .batch = Batch::aligned,
    .samples = {{"f32[7]", "k=3"}, {"f32[3,5,2]", "k=2, axis=1"}, {"f32[4,3]", "k=4, axis=-2"}},
};
TN_OP(top_k);

constexpr auto partition_def = Composite<PartitionAttrs>{
    .doc =
        "The elements along `axis` reordered so that number `kth` stands where sorting puts it, "
        "smaller "
        "or equal ones before it and larger or equal ones after it. Here the whole axis is sorted.",
    .args = {"x"},
    .body = [](const PartitionAttrs& a, const Tensors& in) -> Tensors {
      check_kth("partition", a, in[0]);
      return {tn::sort(in[0], a.axis)};
    },
    .samples = {{"f32[7]", "kth=3"}, {"f32[4,3]", "kth=-1, axis=0"}},
};
TN_OP(partition);

constexpr auto argpartition_def = Composite<PartitionAttrs>{
    .doc = "The positions, as int64, that `partition` along `axis`. Here the whole axis is sorted.",
    .args = {"x"},
    .body = [](const PartitionAttrs& a, const Tensors& in) -> Tensors {
      check_kth("argpartition", a, in[0]);
      return {tn::argsort(in[0], a.axis)};
    },
    .samples = {{"f32[7]", "kth=3"}, {"f32[4,3]", "kth=-1, axis=0"}},
};
TN_OP(argpartition);

}  // namespace tn::ops
