// The one contraction primitive.
#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/contract.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/ops.h"

namespace tn::ops {

Axes free_axes(int rank, const Axes& batch, const Axes& contracted) {
  Axes out;
  for (int k = 0; k < rank; ++k)
    if (!batch.has(k) && !contracted.has(k)) out.push_back(k);
  return out;
}

Run merge(const Shape& shape, const Ints& strides, const Axes& axes) {
  Run run;
  for (Axis a : axes) {
    int64_t extent = shape[a.i].value(), stride = strides[a.i];
    if (extent == 1) continue;
    run.merged = run.merged && (run.extent == 1 || run.stride == stride * extent);
    run.extent *= extent, run.stride = stride;
  }
  return run;
}

namespace {

void normalise(Axes& axes, int rank) {
  for (Axis& a : axes) a = normal_axis(a, rank, "dot");
}

/// Pairs in ascending order of the left axes.
void sort_pairs(Axes& left, Axes& right) {
  for (int i = 1; i < left.size(); ++i)
    for (int k = i; k > 0 && left[k].i < left[k - 1].i; --k)
      std::swap(left[k], left[k - 1]), std::swap(right[k], right[k - 1]);
}

void prepare_dot(DotAttrs& a, Tensors& in) {
  promote_all(in, "dot", every_type);
  const Type &x = *type_of(in[0]), &y = *type_of(in[1]);
  if (a.lhs_contract.size() != a.rhs_contract.size() || a.lhs_batch.size() != a.rhs_batch.size())
    fail("dot: axes do not pair up: {} and {} contracted, {} and {} batch ({} and {})",
         a.lhs_contract.size(), a.rhs_contract.size(), a.lhs_batch.size(), a.rhs_batch.size(), x,
         y);
  normalise(a.lhs_contract, x.rank()), normalise(a.lhs_batch, x.rank());
  normalise(a.rhs_contract, y.rank()), normalise(a.rhs_batch, y.rank());
  sort_pairs(a.lhs_contract, a.rhs_contract), sort_pairs(a.lhs_batch, a.rhs_batch);
}

/// Every axis named once.
void check_distinct(const Axes& batch, const Axes& contracted, const Type& x) {
  uint32_t seen = 0;
  for (const Axes* axes : {&batch, &contracted})
    for (Axis a : *axes) {
      if (a.i < 0 || a.i >= x.rank()) fail(Fault::index, "dot: no axis {}: {}", a.i, x);
      if (seen >> a.i & 1) fail("dot: axis {} is named twice: {}", a.i, x);
      seen |= 1u << a.i;
    }
}

void check_pairs(const Axes& left, const Axes& right, const Type& x, const Type& y) {
  for (int i = 0; i < left.size(); ++i) {
    Dim m = x.shape[left[i].i], n = y.shape[right[i].i];
    if (!decide_equal(m, n))
      fail("dot: extents differ: {} (axis {} of {}) and {} (axis {} of {})", m, left[i].i, x, n,
           right[i].i, y);
  }
}

TypeList infer_dot(const DotAttrs& a, Types in) {
  const Type &x = *in[0], &y = *in[1];
  check_kind("dot", every_type, x.dtype);
  if (x.dtype != y.dtype)
    fail(Fault::type, "dot: operands have different element types: {} and {}", x, y);
  check_distinct(a.lhs_batch, a.lhs_contract, x);
  check_distinct(a.rhs_batch, a.rhs_contract, y);
  check_pairs(a.lhs_contract, a.rhs_contract, x, y);
  check_pairs(a.lhs_batch, a.rhs_batch, x, y);
  Type out{x.dtype, {}};
  for (Axis k : a.lhs_batch) out.shape.push_back(x.shape[k.i]);
  for (Axis k : free_axes(x.rank(), a.lhs_batch, a.lhs_contract)) out.shape.push_back(x.shape[k.i]);
  for (Axis k : free_axes(y.rank(), a.rhs_batch, a.rhs_contract)) out.shape.push_back(y.shape[k.i]);
  return out;
}

/// A label for each axis of the operands and the result; paired axes share theirs.
struct DotLabels {
  Labels x, y, out;
  DotLabels(const DotAttrs& a, int x_rank, int y_rank)
      : x(letters(x_rank, 'a')), y(letters(y_rank, 'A')) {
    auto pair = [&](const Axes& left, const Axes& right) {
      for (int i = 0; i < left.size(); ++i)
        y[static_cast<size_t>(right[i].i)] = x[static_cast<size_t>(left[i].i)];
    };
    pair(a.lhs_contract, a.rhs_contract), pair(a.lhs_batch, a.rhs_batch);
    for (Axis k : a.lhs_batch) out += x[static_cast<size_t>(k.i)];
    for (Axis k : free_axes(x_rank, a.lhs_batch, a.lhs_contract))
      out += x[static_cast<size_t>(k.i)];
    for (Axis k : free_axes(y_rank, a.rhs_batch, a.rhs_contract))
      out += y[static_cast<size_t>(k.i)];
  }
  static Labels letters(int rank, char first) {
    Labels made;
    for (int k = 0; k < rank; ++k) made += static_cast<char>(first + k);
    return made;
  }
};

Tensor adjoint_dot(const DotAttrs& a, const Tensor& ct, const Tensors& in, int k) {
  DotLabels labels(a, in[0].rank(), in[1].rank());
  if (k == 0) return contract(ct, labels.out, in[1], labels.y, labels.x);
  return contract(in[0], labels.x, ct, labels.out, labels.y);
}

/// With both operands batched the batch is one more pair; with one it is a free axis of that one.
Tensors batch_dot(const DotAttrs& a, const BatchCall& call) {
  DotAttrs moved = a;
  auto shift = [](Axes& axes) {
    for (Axis& k : axes) ++k.i;
  };
  if (call.batched[0]) shift(moved.lhs_contract), shift(moved.lhs_batch);
  if (call.batched[1]) shift(moved.rhs_contract), shift(moved.rhs_batch);
  if (call.batched[0] && call.batched[1]) {
    moved.lhs_batch.insert(0, 0), moved.rhs_batch.insert(0, 0);
    return emit_all(dot, call.in, &moved);
  }
  Tensor out = emit_all(dot, call.in, &moved)[0];
  int place = a.lhs_batch.size();
  if (call.batched[1]) place += free_axes(call.in[0].rank(), a.lhs_batch, a.lhs_contract).size();
  return {place == 0 ? out : tn::moveaxis(out, Axes(place), Axes(0))};
}

}  // namespace

constexpr auto dot_def = Op<DotAttrs>{
    .doc =
        "Sums products over paired axes of both operands. The result has the batch axes, then the "
        "free axes of `x1`, then those of `x2`. Without elements to sum it is 0. float16 and "
        "bfloat16 are summed in float32 and rounded once, integers wrap, booleans are or-and.",
    .args = {"x1", "x2"},
    .prepare = rule<prepare_dot>,
    .infer = rule<infer_dot>,
    .linear = Linear::each,
    .adjoint = rule<adjoint_dot>,
    .precision = Precision::low,
    .batch_rule = rule<batch_dot>,
    .samples = {{"f32[2,3], f32[3,4]", "lhs_contract=[1], rhs_contract=[0]"},
                {"f32[2,3,4], f32[4,2,5]",
                 "lhs_contract=[-1], rhs_contract=[0], lhs_batch=[0], rhs_batch=[1]"},
                {"f32[2,3,4], f32[4,5,2]", "lhs_contract=[0,2], rhs_contract=[2,0]"},
                {"f32[3], f32[3]", "lhs_contract=[0], rhs_contract=[0]"}},
};
TN_OP(dot);

}  // namespace tn::ops
