// Collectives: ops that all workers along one axis of a mesh compute together.
//
// A value either varies by worker or is replicated: the same on all. Transposes exchange the two:
//
//     all_gather       varying -> varying      reduce_scatter  varying -> varying
//     all_to_all       varying -> varying; its transpose exchanges the other way
//     all_sum          varying -> replicated   vary            replicated -> varying
//     slice_of_worker  replicated -> varying; its transpose is an all_gather
//     all_broadcast    varying -> replicated; its transpose is a sum that the root keeps
#include "ops/collectives.h"

#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

constexpr int64_t kMostWorkers = 1 << 20, kMostRadix = int64_t{1} << 40;

void check_workers(std::string_view op, int64_t workers) {
  if (workers < 1 || workers > kMostWorkers)
    fail("{}: a group has 1 to {} workers: {}", op, kMostWorkers, workers);
}

/// The extent without the digit of the workers.
Dim without_digit(std::string_view op, const Type& x, Axis axis, int64_t radix, int64_t workers) {
  check_workers(op, workers);
  int k = normal_axis(axis, x.rank(), op);
  if (radix < 1 || radix > kMostRadix || !decide_divides(radix * workers, x.shape[k]))
    fail("{}: {} workers at radix {} do not divide axis {}: {}", op, workers, radix, k, x);
  return floor_div(x.shape[k], workers);
}

/// The extent with the digit.
Dim with_digit(std::string_view op, const Type& x, Axis axis, int64_t radix, int64_t workers) {
  check_workers(op, workers);
  int k = normal_axis(axis, x.rank(), op);
  without_digit(op, x, axis, radix, 1);
  return x.shape[k] * workers;
}

Type infer_gathered(std::string_view op, const DigitAttrs& a, const Type& x) {
  Dim extent = with_digit(op, x, a.axis, a.radix, a.workers);
  return {x.dtype, with_extent(x.shape, normal_axis(a.axis, x.rank(), op), extent)};
}
Type infer_divided(std::string_view op, const DigitAttrs& a, const Type& x) {
  Dim extent = without_digit(op, x, a.axis, a.radix, a.workers);
  return {x.dtype, with_extent(x.shape, normal_axis(a.axis, x.rank(), op), extent)};
}

TypeList infer_exchange(const ExchangeAttrs& a, Types in) {
  int from = normal_axis(a.axis, in[0]->rank(), "all_to_all");
  int to = normal_axis(a.to_axis, in[0]->rank(), "all_to_all");
  // Digits of other axes of the mesh may lie between two digits of one dimension.
  if (from == to) fail("all_to_all: axis and to_axis must differ: both are {}", from);
  Type x = infer_gathered("all_to_all", {a.mesh_axis, a.workers, a.axis, a.radix}, *in[0]);
  return infer_divided("all_to_all", {a.mesh_axis, a.workers, a.to_axis, a.to_radix}, x);
}

/// Workers whose element is the extreme share the tangent evenly.
Tensors jvp_fold(const AllFoldAttrs& a, const Primal& p, const Tensors& t) {
  GroupAttrs group{a.mesh_axis, a.workers};
  Tensor share;
  if (a.mode == AllFold::prod) {  // the product of the others, of which one or more may be 0
    Tensor one = tn::ones_like(p.in[0]), none = tn::zeros_like(p.in[0]);
    Tensor is_zero = tn::equal(p.in[0], none), safe = tn::where(is_zero, one, p.in[0]);
    Tensor zeros = emit(all_sum, {tn::where(is_zero, one, none)}, group);
    Tensor of_others = emit(all_fold, {safe}, a) / safe;
    share = tn::where(tn::equal(zeros, tn::where(is_zero, one, none)), of_others, none);
  } else {
    Tensor is_it = cast_to(tn::equal(p.in[0], p.out[0]), p.out[0].dtype());
    share = is_it / emit(all_sum, {is_it}, group);
  }
  return {emit(vary, {emit(all_sum, {t[0] * share}, group)}, group)};
}

/// The root gets the sum of all cotangents.
Tensor adjoint_of_broadcast(const RootAttrs& a, T ct, const Tensors&, int) {
  DeviceScope there(ct.device());
  GroupAttrs group{a.mesh_axis, a.workers};
  Tensor sum = emit(vary, {emit(all_sum, {ct}, group)}, group);
  Tensor is_root = tn::equal(tn::arange(a.workers, {}, 1, DType::i64), a.root);
  DigitAttrs own{.mesh_axis = a.mesh_axis, .workers = a.workers, .axis = Axis(0)};
  Tensor mine = tn::reshape(emit(slice_of_worker, {is_root}, own), {});
  return tn::where(mine, sum, tn::zeros_like(sum));
}

Type infer_same(std::string_view op, int64_t workers, Types in) {
  check_workers(op, workers);
  return *in[0];
}

}  // namespace

constexpr auto all_sum_def = Op<GroupAttrs>{
    .doc =
        "The sum of `x` over the workers along an axis of the mesh, on all of them. Terms are "
        "added by a binary tree over aligned ranges of workers, so the bits are fixed.",
    .args = {"x"},
    .surface = false,
    .meets = true,
    .infer = [](const GroupAttrs& a, Types in) -> TypeList {
      return infer_same("all_sum", a.workers, in);
    },
    .linear = Linear::each,
    .adjoint = [](const GroupAttrs& a, T ct, const Tensors&, int) { return emit(vary, {ct}, a); },
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh_axis=\"data\", workers=1"}},
};
TN_OP(all_sum);

constexpr auto vary_def = Op<GroupAttrs>{
    .doc =
        "`x`, the same on all workers along an axis of the mesh, as a value that may differ "
        "between them: its cotangents are summed over the workers.",
    .args = {"x"},
    .surface = false,
    .infer = [](const GroupAttrs& a, Types in) -> TypeList {
      return infer_same("vary", a.workers, in);
    },
    .lower =
        [](const GroupAttrs&, loop::Lowering& l) {
          loop::Coords at = l.loops(l.out[0]->shape);
          l.store(0, at, l.load(0, at));
        },
    .linear = Linear::each,
    .adjoint = [](const GroupAttrs& a, T ct, const Tensors&,
                  int) { return emit(all_sum, {ct}, a); },
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh_axis=\"data\", workers=1"}},
};
TN_OP(vary);

constexpr auto all_fold_def = Op<AllFoldAttrs>{
    .doc =
        "The product, extreme or conjunction of `x` over the workers along an axis of the mesh, "
        "on all of them, in the order of `all_sum`.",
    .args = {"x"},
    .surface = false,
    .meets = true,
    .infer = [](const AllFoldAttrs& a, Types in) -> TypeList {
      return infer_same("all_fold", a.workers, in);
    },
    .jvp = rule<jvp_fold>,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh_axis=\"data\", workers=1, mode=max"}},
};
TN_OP(all_fold);

constexpr auto all_gather_def = Op<DigitAttrs>{
    .doc =
        "`x` of all workers along an axis of the mesh, joined along `axis`. The result counts "
        "there as [radix, workers, rest], and the middle digit is the worker.",
    .args = {"x"},
    .surface = false,
    .meets = true,
    .infer = [](const DigitAttrs& a, Types in) -> TypeList {
      return infer_gathered("all_gather", a, *in[0]);
    },
    .linear = Linear::each,
    .adjoint = [](const DigitAttrs& a, T ct, const Tensors&,
                  int) { return emit(reduce_scatter, {ct}, a); },
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh_axis=\"data\", workers=1, axis=1"}},
};
TN_OP(all_gather);

constexpr auto reduce_scatter_def = Op<DigitAttrs>{
    .doc =
        "The sum of `x` over the workers along an axis of the mesh, of which each keeps its part "
        "along `axis`. The bits are those of `all_sum`.",
    .args = {"x"},
    .surface = false,
    .meets = true,
    .infer = [](const DigitAttrs& a, Types in) -> TypeList {
      return infer_divided("reduce_scatter", a, *in[0]);
    },
    .linear = Linear::each,
    .adjoint = [](const DigitAttrs& a, T ct, const Tensors&,
                  int) { return emit(all_gather, {ct}, a); },
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh_axis=\"data\", workers=1, axis=0"}},
};
TN_OP(reduce_scatter);

constexpr auto all_to_all_def = Op<ExchangeAttrs>{
    .doc =
        "`x`, divided along `axis` at `radix`, divided along `to_axis` at `to_radix` instead: "
        "every worker along the axis of the mesh sends a part to every other.",
    .args = {"x"},
    .surface = false,
    .meets = true,
    .infer = rule<infer_exchange>,
    .linear = Linear::each,
    .adjoint =
        [](const ExchangeAttrs& a, T ct, const Tensors&, int) {
          ExchangeAttrs back{a.mesh_axis, a.workers, a.to_axis, a.to_radix, a.axis, a.radix};
          return emit(all_to_all, {ct}, back);
        },
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh_axis=\"data\", workers=1, axis=0, to_axis=1"}},
};
TN_OP(all_to_all);

constexpr auto all_broadcast_def = Op<RootAttrs>{
    .doc = "The `x` of one worker, on all workers along an axis of the mesh.",
    .args = {"x"},
    .surface = false,
    .meets = true,
    .infer = [](const RootAttrs& a, Types in) -> TypeList {
      return infer_same("all_broadcast", a.workers, in);
    },
    .linear = Linear::each,
    .adjoint = rule<adjoint_of_broadcast>,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh_axis=\"data\", workers=1, root=0"}},
};
TN_OP(all_broadcast);

constexpr auto slice_of_worker_def = Op<DigitAttrs>{
    .doc =
        "The part of `x`, the same on all workers along an axis of the mesh, that belongs to each "
        "of them along `axis`.",
    .args = {"x"},
    .surface = false,
    .infer = [](const DigitAttrs& a, Types in) -> TypeList {
      return infer_divided("slice_of_worker", a, *in[0]);
    },
    .linear = Linear::each,
    .adjoint = [](const DigitAttrs& a, T ct, const Tensors&,
                  int) { return emit(all_gather, {ct}, a); },
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "mesh_axis=\"data\", workers=1, axis=0"}},
};
TN_OP(slice_of_worker);

bool is_collective(const OpDef& op) {
  static constexpr const OpDef* kAll[] = {
      &all_sum, &vary, &all_fold, &all_gather, &reduce_scatter, &all_to_all, &slice_of_worker};
  return std::ranges::count(kAll, &op) > 0;
}

bool needs_workers(const OpDef& op) {
  return is_collective(op) || &op == &all_broadcast || &op == &send || &op == &recv;
}

}  // namespace tn::ops
