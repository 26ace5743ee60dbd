// Diagonals, and tensors addressed by strides.
#include <algorithm>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/indexing.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct DiagAttrs {
  int64_t k = 0;
  static constexpr void fields(auto& a, auto&& f) { f("k", a.k); }
};

struct DiagonalAttrs {
  int64_t offset = 0;
  Axis axis1 = 0, axis2 = 1;
  static constexpr void fields(auto& a, auto&& f) {
    f("offset", a.offset), f("axis1", a.axis1), f("axis2", a.axis2);
  }
};

struct TraceAttrs {
  int64_t offset = 0;
  Axis axis1 = 0, axis2 = 1;
  Maybe<DType> dtype;
  static constexpr void fields(auto& a, auto&& f) {
    f("offset", a.offset), f("axis1", a.axis1), f("axis2", a.axis2), f("dtype", a.dtype);
  }
};

struct StridedAttrs {
  Maybe<Shape> shape;
  Maybe<Ints> strides;
  int64_t offset = 0;
  static constexpr void fields(auto& a, auto&& f) {
    f("shape", a.shape), f("strides", a.strides), f("offset", a.offset);
  }
};

/// Flattened row-major, the diagonal of [m,n] is a slice of step n + 1.
Tensor diagonal_of(std::string_view op, const Tensor& x, int64_t offset, Axis axis1, Axis axis2) {
  int first = normal_axis(axis1, x.rank(), op), second = normal_axis(axis2, x.rank(), op);
  if (first == second) fail("{}: two different axes are needed: {} ({})", op, first, *type_of(x));
  Perm perm;
  Shape flat;
  for (int k = 0; k < x.rank(); ++k)
    if (k != first && k != second) perm.push_back(k), flat.push_back(x.shape()[k]);
  perm.push_back(first), perm.push_back(second);
  Dim rows = x.shape()[first], columns = x.shape()[second];
  Dim down = offset < 0 ? decide_min(rows, -std::max(offset, -INT64_MAX)) : 0;
  Dim right = offset > 0 ? decide_min(columns, offset) : 0;
  Dim count = decide_min(rows - down, columns - right);
  flat.push_back(rows * columns);
  Tensor lines = tn::reshape(tn::permute_dims(x, perm), flat);
  return spaced(lines, flat.rank() - 1, down * columns + right, count, columns + 1);
}

/// In rows of n + 1 the elements stand in the first column; row-major, that is a matrix of n
/// columns.
Tensor matrix_of(const Tensor& x, int64_t k) {
  constexpr int64_t kMost = int64_t{1} << 30;  // a side whose square fits 64 bits with room
  Dim count = x.shape()[0];
  if (!decide_at_least(kMost, count) || k > kMost || k < -kMost)
    fail("diag: a matrix of more than {} rows: diagonal {} of {}", kMost, k, *type_of(x));
  Dim n = count + std::abs(k);
  if (count.is(0)) return filled(0, x.dtype(), {n, n});
  Tensor rows = tn::pad(tn::reshape(x, {count, 1}), {0, 0, 0, n});
  Tensor line = slice_axis(tn::reshape(rows, {count * (n + 1)}), 0, 0, (count - 1) * (n + 1) + 1);
  Dim before = k >= 0 ? Dim(k) : n * -k;
  Dim after = n * n - before - ((count - 1) * (n + 1) + 1);
  return tn::reshape(tn::pad(line, {before, after}), {n, n});
}

Tensors read_strided(const StridedAttrs& a, const Tensors& in) {
  const Type& x = *type_of(in[0]);
  Shape shape = a.shape.value_or(x.shape);
  check_sizes("as_strided", shape);
  Ints strides = a.strides ? *a.strides : Strided::row_major(shape).strides;
  if (strides.size() != shape.rank())
    fail("as_strided: {} strides for the shape {} ({})", strides.size(), shape, x);
  int64_t low = a.offset, high = a.offset, count = shape.elements().value();
  Tensor places = filled(a.offset, DType::i64, shape);
  for (int k = 0; k < shape.rank(); ++k) {
    int64_t reach, last = std::max<int64_t>(shape[k].value() - 1, 0);
    bool far = __builtin_mul_overflow(last, strides[k], &reach);
    int64_t& end = reach < 0 ? low : high;
    if (far || __builtin_add_overflow(end, reach, &end))
      fail("as_strided: stride {} over {} elements passes 64 bits ({})", strides[k], last, x);
    places = places + positions(shape[k], shape.rank(), k) * strides[k];
  }
  if (count > 0 && (low < 0 || high >= x.shape.elements().value()))
    fail("as_strided: elements {} to {} of {}", low, high, x);
  return {tn::gather(tn::reshape(in[0], {Dim(-1)}), {places}, Axes(0))};
}

}  // namespace

constexpr auto diagonal_def = Composite<DiagonalAttrs>{
    .doc =
        "The diagonal of the matrices in `axis1` and `axis2`, as the last axis; `offset` places to "
        "the "
        "right of the main one, to the left when negative. Empty when it lies outside.",
    .args = {"x"},
    .body = [](const DiagonalAttrs& a, const Tensors& in) -> Tensors {
      return {diagonal_of("diagonal", in[0], a.offset, a.axis1, a.axis2)};
    },
    .samples = {{"f32[3,4]"},
                {"f32[3,4]", "offset=-1"},
                {"f32[2,3,4]", "offset=2, axis1=-2, axis2=-1"},
                {"f32[2,3]", "offset=5"}},
};
TN_OP(diagonal);

constexpr auto diag_def = Composite<DiagAttrs>{
    .doc =
        "The matrix with a 1-d tensor as its diagonal number `k` and 0 elsewhere, or diagonal "
        "number "
        "`k` of a matrix.",
    .args = {"x"},
    .body = [](const DiagAttrs& a, const Tensors& in) -> Tensors {
      if (in[0].rank() == 1) return {matrix_of(in[0], a.k)};
      if (in[0].rank() != 2) fail("diag: one axis or two are needed: {}", *type_of(in[0]));
      return {diagonal_of("diag", in[0], a.k, 0, 1)};
    },
    .samples = {{"f32[3]"}, {"f32[3]", "k=-2"}, {"f32[3]", "k=1"}, {"f32[3,4]", "k=1"}},
};
TN_OP(diag);

constexpr auto trace_def = Composite<TraceAttrs>{
    .doc =
        "Sum of the diagonal `offset` of the matrices in `axis1` and `axis2`. Element types are "
        "those "
        "of `sum`.",
    .args = {"x"},
    .body = [](const TraceAttrs& a, const Tensors& in) -> Tensors {
      return {tn::sum(diagonal_of("trace", in[0], a.offset, a.axis1, a.axis2), Axes(-1), a.dtype)};
    },
    .precision = Precision::full,
    .samples = {{"f32[3,4]"},
                {"f32[2,3,4]", "offset=1, axis1=1, axis2=2"},
                {"f32[3,3]", "dtype=c128"}},
};
TN_OP(trace);

constexpr auto as_strided_def = Composite<StridedAttrs>{
    .doc =
        "Element (i, j, …) is number `offset + i*strides[0] + j*strides[1] + …` of `x` in "
        "row-major "
        "order. Strides count elements and default to those of `shape`; reaching outside is an "
        "error.",
    .args = {"x"},
    .body = rule<read_strided>,
    .samples = {{"f32[8]", "shape=[3,4], strides=[2,1]"},
                {"f32[3,4]", "shape=[4,3], strides=[1,4]"},
                {"f32[6]", "shape=[3], strides=[-2], offset=5"}},
};
TN_OP(as_strided);

}  // namespace tn::ops
