// Norms of vectors and matrices, ranks, pseudoinverses and the cross product.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/matrices.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct VectorNormAttrs {
  Maybe<Axes> axis;
  bool keepdims = false;
  double ord = 2;
  static constexpr void fields(auto& a, auto&& f) {
    f("axis", a.axis), f("keepdims", a.keepdims), f("ord", a.ord);
  }
};

enum class MatrixNorm : uint8_t { fro, nuc, one, minus_one, two, minus_two, inf, minus_inf };
constexpr std::string_view kMatrixNorms[] = {"fro", "nuc", "1", "-1", "2", "-2", "inf", "-inf"};
constexpr ChoiceNames choice_names(MatrixNorm) { return kMatrixNorms; }

struct MatrixNormAttrs {
  bool keepdims = false;
  MatrixNorm ord = MatrixNorm::fro;
  static constexpr void fields(auto& a, auto&& f) { f("keepdims", a.keepdims), f("ord", a.ord); }
};

struct ToleranceAttrs {
  Maybe<double> rtol;
  static constexpr void fields(auto& a, auto&& f) { f("rtol", a.rtol); }
};

struct DistanceAttrs {
  double p = 2;
  static constexpr void fields(auto& a, auto&& f) { f("p", a.p); }
};

struct LstsqAttrs {
  Maybe<double> rcond;
  static constexpr void fields(auto& a, auto&& f) { f("rcond", a.rcond); }
};

struct MatrixCondAttrs {
  MatrixNorm ord = MatrixNorm::two;
  static constexpr void fields(auto& a, auto&& f) { f("ord", a.ord); }
};

struct CrossAttrs {
  Axis axis = -1;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

/// f(x), but 0 with derivative 0 where x is 0, although f's own is infinite or undefined there.
template <class F>
Tensor zero_at_zero(const Tensor& x, F f) {
  Tensor zero = x == 0;
  return tn::where(zero, 0, f(tn::where(zero, 1, x)));
}

Tensor squared_magnitude(const Tensor& x) {
  if (!is_complex(x.dtype())) return x * x;
  Tensor re = tn::real(x), im = tn::imag(x);
  return re * re + im * im;
}

/// Over sizes, of which none is below 0.
Tensor largest_or_zero(const Tensor& x, const Axes& axes, bool keepdims) {
  bool none = extent_of(x.shape(), axes).is(0);
  return none ? tn::sum(x, axes, {}, keepdims) : tn::max(x, axes, keepdims);
}

Tensor norm_over(const Tensor& x, const Axes& axes, bool keepdims, double ord) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (ord == 2)
    return zero_at_zero(tn::sum(squared_magnitude(x), axes, {}, keepdims),
                        [](T s) { return tn::sqrt(s); });
  if (ord == 0) return tn::sum(tn::astype(x != 0, real_of(x.dtype())), axes, {}, keepdims);
  Tensor size = tn::abs(x);
  if (ord == kInf) return largest_or_zero(size, axes, keepdims);
  if (ord == -kInf) return tn::min(size, axes, keepdims);
  if (ord == 1) return tn::sum(size, axes, {}, keepdims);
  auto power = [](const Tensor& of, double p) {
    return p < 0 ? tn::pow(of, p) : zero_at_zero(of, [&](T v) { return tn::pow(v, p); });
  };
  return power(tn::sum(power(size, ord), axes, {}, keepdims), 1 / ord);
}

Tensors vector_norm_body(const VectorNormAttrs& a, const Tensors& in) {
  Tensors x = in;
  promote_all(x, "vector_norm", every_type, true);
  return {norm_over(x[0], normal_axes(a.axis, x[0].rank(), "vector_norm"), a.keepdims, a.ord)};
}

/// Between all pairs of rows: [..., m, 1, k] less [..., 1, n, k], folded over k.
Tensors cdist_body(const DistanceAttrs& a, const Tensors& in) {
  Tensors x = in;
  promote_all(x, "cdist", floats, true);
  const Type &rows = *type_of(x[0]), &columns = *type_of(x[1]);
  if (rows.rank() < 2 || columns.rank() < 2 ||
      !decide_equal(rows.shape.back(), columns.shape.back()))
    fail("cdist: operands are [..., m, k] and [..., n, k]: x1 {} and x2 {}", rows, columns);
  if (!(a.p >= 0)) fail("cdist: p must be at least 0: {}", a.p);
  Tensor apart = tn::expand_dims(x[0], Axes(-2)) - tn::expand_dims(x[1], Axes(-3));
  return {norm_over(apart, Axes(apart.rank() - 1), false, a.p)};
}

/// The largest, or smallest, sum of magnitudes along `axis`.
Tensor extreme_sum(const Tensor& x, int axis, bool largest, bool keepdims) {
  Tensor sums = tn::sum(tn::abs(x), Axes(axis), {}, true);
  Axes both{-2, -1};
  if (largest) return largest_or_zero(sums, normal_axes(both, x.rank(), "matrix_norm"), keepdims);
  return tn::min(sums, both, keepdims);
}

bool has_values(const Tensor& x) {
  return !rows_of(x.shape()).is(0) && !columns_of(x.shape()).is(0);
}

Tensors matrix_norm_body(const MatrixNormAttrs& a, const Tensors& in) {
  Tensors x = in;
  prepare_matrix("matrix_norm", x);
  bool keep = a.keepdims;
  if (a.ord == MatrixNorm::fro) return {norm_over(x[0], Axes{-2, -1}, keep, 2)};
  if (a.ord == MatrixNorm::one || a.ord == MatrixNorm::minus_one)
    return {extreme_sum(x[0], -2, a.ord == MatrixNorm::one, keep)};
  if (a.ord == MatrixNorm::inf || a.ord == MatrixNorm::minus_inf)
    return {extreme_sum(x[0], -1, a.ord == MatrixNorm::inf, keep)};
  Tensor s = emit(svdvals, {x[0]}), norm;
  if (a.ord == MatrixNorm::minus_two)
    norm = tn::min(s, Axes(-1), keep);
  else if (a.ord == MatrixNorm::two && has_values(x[0]))
    norm = tn::max(s, Axes(-1), keep);
  else
    norm = tn::sum(s, Axes(-1), {}, keep);
  return {keep ? as_column(norm) : norm};
}

/// The least singular value that counts, from the largest (which are kept as an axis).
Tensor least_value(const Tensor& x, const Tensor& s, const Maybe<double>& rtol) {
  Dim side = tn::max(rows_of(x.shape()), columns_of(x.shape()));
  Tensor share = make_scalar(rtol.value_or(epsilon_of(x.dtype())), DType::f64, false);
  if (!rtol) share = share * side;
  return tn::max(s, Axes(-1), true) * cast_to(share, s.dtype());
}

Tensors pinv_body(const ToleranceAttrs& a, const Tensors& in) {
  T x = in[0];
  if (!has_values(x)) return {adjoint_of(x)};
  Tensors f = reduced_svd(x);
  Tensor small = f[1] <= least_value(x, f[1], a.rtol);
  Tensor inverse = tn::where(small, 0, 1 / tn::where(small, 1, f[1]));
  return {tn::matmul(adjoint_of(f[2]) * as_row(cast_to(inverse, x.dtype())), adjoint_of(f[0]))};
}

/// Where the rank stays: dP = -P·dA·P + P·Pᴴ·dAᴴ·(1 - A·P) + (1 - P·A)·dAᴴ·Pᴴ·P
Tensors jvp_pinv(const ToleranceAttrs&, const Primal& p, const Tensors& t) {
  T x = p.in[0], inverse = p.out[0];
  Tensor turned = adjoint_of(t[0]), back = adjoint_of(inverse);
  Tensor left = tn::matmul(tn::matmul(inverse, back), turned);
  Tensor right = tn::matmul(turned, tn::matmul(back, inverse));
  Tensor change = left - tn::matmul(tn::matmul(left, x), inverse);
  change = change + right - tn::matmul(inverse, tn::matmul(x, right));
  return {change - tn::matmul(tn::matmul(inverse, t[0]), inverse)};
}

Tensors matrix_rank_body(const ToleranceAttrs& a, const Tensors& in) {
  Tensors x = in;
  prepare_matrix("matrix_rank", x);
  if (!has_values(x[0])) return {filled(0, DType::i64, leading_shape(x[0].shape()))};
  Tensor s = emit(svdvals, {x[0]});
  return {tn::sum(tn::astype(s > least_value(x[0], s, a.rtol), DType::i64), Axes(-1))};
}

/// With the pseudoinverse, whose derivative exists where singular values repeat.
Tensors lstsq_body(const LstsqAttrs& a, const Tensors& in) {
  Tensors both = in;
  promote_matrices("lstsq", both);
  const Tensor& x = both[0];
  bool vector = both[1].rank() == 1;
  Tensor y = vector ? as_column(both[1]) : both[1];
  if (x.rank() != 2 || y.rank() != 2 || !decide_equal(rows_of(x.shape()), rows_of(y.shape())))
    fail("lstsq: a matrix and a right side with as many rows are needed: {} and {}",
         *type_of(in[0]), *type_of(in[1]));
  Tensor found = tn::matmul(tn::pinv(x, a.rcond), y), apart = y - tn::matmul(x, found);
  // As many equations as unknowns leave nothing.
  bool over = !decide_at_least(columns_of(x.shape()), rows_of(x.shape()));
  Tensor left = tn::sum(squared_magnitude(apart), Axes(0)), rank = tn::matrix_rank(x, a.rcond);
  if (!over || is_known_false(rank == columns_of(x.shape()))) left = slice_axis(left, 0, 0, 0);
  return {vector ? tn::squeeze(found, Axes(1)) : found, left, rank, emit(svdvals, {x})};
}

/// A matrix without NaN whose quotient is NaN is singular.
Tensor infinite_without_cause(const Tensor& value, const Tensor& x) {
  Tensor given = tn::any(tn::isnan(x), Axes{-2, -1});
  return tn::where(tn::isnan(value) & ~given, std::numeric_limits<double>::infinity(), value);
}

Tensors condition_body(const MatrixCondAttrs& a, const Tensors& in) {
  Tensors x = in;
  prepare_matrix("condition_number", x);
  if (!has_values(x[0])) fail("condition_number: no elements: {}", *type_of(in[0]));
  if (a.ord == MatrixNorm::two || a.ord == MatrixNorm::minus_two) {
    Tensor s = emit(svdvals, {x[0]}), most = tn::max(s, Axes(-1)), least = tn::min(s, Axes(-1));
    Tensor value = a.ord == MatrixNorm::two ? most / least : least / most;
    return {infinite_without_cause(value, x[0])};
  }
  prepare_square("condition_number", x);
  std::string_view ord = kMatrixNorms[static_cast<size_t>(a.ord)];
  Tensor value = tn::matrix_norm(x[0], false, ord) * tn::matrix_norm(tn::inv(x[0]), false, ord);
  return {infinite_without_cause(value, x[0])};
}

/// c[i] = a[i+1]·b[i+2] - a[i+2]·b[i+1], counted round.
Tensors cross_body(const CrossAttrs& a, const Tensors& in) {
  Tensors both = in;
  promote_all(both, "cross", numeric);
  Shape shape = broadcast(both[0].shape(), both[1].shape(), "cross");
  int axis = normal_axis(a.axis, shape.rank(), "cross");
  for (Tensor& x : both) {
    int own = axis - (shape.rank() - x.rank());
    if (own < 0 || !decide_equal(x.shape()[own], Dim(3)))
      fail("cross: vectors of three numbers are needed along axis {}: x1 {} and x2 {}", a.axis.i,
           *type_of(both[0]), *type_of(both[1]));
    x = tn::broadcast_to(x, shape);
  }
  auto turned = [&](T x, int64_t by) { return tn::roll(x, Ints(by), Axes(axis)); };
  return {turned(both[0], -1) * turned(both[1], -2) - turned(both[0], -2) * turned(both[1], -1)};
}

}  // namespace

constexpr auto vector_norm_def = Composite<VectorNormAttrs>{
    .doc =
        "The norm of the vectors along `axis` (all elements by default): sum(|x|^ord)^(1/ord), "
        "the largest magnitude for inf, the smallest for -inf, the number of elements that are "
        "not 0 for 0. The derivative of a zero vector's norm is 0.",
    .module = "linalg",
    .args = {"x"},
    .body = rule<vector_norm_body>,
    .samples = {{"f32[3]"},
                {"f32[2,3]", "axis=[1], ord=1"},
                {"f32[2,3]", "axis=[0], ord=3, keepdims=true"},
                {"f32[2,3,2]", "axis=[0,2]"},
                {"f32[4]", "ord=0"}},
};
TN_OP(vector_norm);

constexpr auto matrix_norm_def = Composite<MatrixNormAttrs>{
    .doc =
        "The norm of matrices: the root of the sum of squares (`fro`), the sum (`nuc`), the "
        "largest (`2`) or the smallest (`-2`) of the singular values, the largest or smallest sum "
        "of magnitudes of a column (`1`, `-1`) or a row (`inf`, `-inf`).",
    .module = "linalg",
    .args = {"x"},
    .body = rule<matrix_norm_body>,
    .samples = {{"f32[3,2]"}, {"f32[2,3,3]", "ord=nuc"}, {"f32[3,4]", "keepdims=true, ord=2"}},
};
TN_OP(matrix_norm);

constexpr auto cdist_def = Composite<DistanceAttrs>{
    .doc =
        "The distances between the rows of `x1`, [..., m, k], and of `x2`, [..., n, k], as [..., "
        "m, n]: the `p`-norm of their differences, as of `vector_norm`. Leading axes broadcast. "
        "The derivative of a distance of 0 is 0.",
    .args = {"x1", "x2"},
    .body = rule<cdist_body>,
    .precision = Precision::full,
    .samples = {{"f32[3,4], f32[2,4]"},
                {"f32[2,3,4], f32[5,4]", "p=1.0"},
                {"f32[3,2], f32[2,2]", "p=3.0"}},
};
TN_OP(cdist);

constexpr auto pinv_def = Composite<ToleranceAttrs>{
    .doc =
        "The pseudoinverse, by singular values: those not above `rtol` times the largest count as "
        "0. `rtol` defaults to the larger side times the distance of 1 from the next number.",
    .module = "linalg",
    .args = {"x"},
    .recorded = true,
    .prepare = [](ToleranceAttrs&, Tensors& in) { prepare_matrix("pinv", in); },
    .body = rule<pinv_body>,
    .jvp = rule<jvp_pinv>,
    .samples = {{"f32[3,3]"}, {"f32[2,4,3]"}, {"f32[2,4]", "rtol=0.001"}},
};
TN_OP(pinv);

constexpr auto matrix_rank_def = Composite<ToleranceAttrs>{
    .doc = "The number of singular values above `rtol` times the largest. See `pinv`.",
    .module = "linalg",
    .args = {"x"},
    .body = rule<matrix_rank_body>,
    .samples = {{"f32[3,3]"}, {"f32[2,4,3]", "rtol=0.3"}},
};
TN_OP(matrix_rank);

constexpr auto lstsq_def = Composite<LstsqAttrs>{
    .doc =
        "The least squares solution X of `x1` @ X = `x2`, the shortest of several: X, the sum of "
        "squares that each column leaves (none unless there are more equations than unknowns, nor "
        "where values are known and the rank is less), the rank of `x1` and its singular values. "
        "Those not above `rcond` times the largest "
        "count as 0; see `pinv`. `x2` is a vector if it has one axis.",
    .module = "linalg",
    .args = {"x1", "x2"},
    .results = {"x", "residuals", "rank", "singular_values"},
    .body = rule<lstsq_body>,
    .samples = {{"f32[4,3], f32[4,2]"}, {"f32[5,2], f32[5]"}, {"f32[2,4], f32[2]", "rcond=0.001"}},
};
TN_OP(lstsq);

constexpr auto condition_number_def = Composite<MatrixCondAttrs>{
    .doc =
        "How much a matrix may enlarge relative errors: the quotient of its largest and smallest "
        "singular values, or the product of the norms, as `matrix_norm` has them, of a square "
        "matrix and its inverse.",
    .module = "linalg",
    .args = {"x"},
    .body = rule<condition_body>,
    .samples = {{"f32[3,3]"}, {"f32[2,4,3]", "ord=-2"}, {"f32[2,2]", "ord=fro"}},
};
TN_OP(condition_number);

constexpr auto cross_def = Composite<CrossAttrs>{
    .doc = "The cross product of the vectors of three numbers along `axis`; the rest broadcasts.",
    .module = "linalg",
    .args = {"x1", "x2"},
    .body = rule<cross_body>,
    .samples = {{"f32[3], f32[3]"}, {"f32[2,3], f32[3]"}, {"f32[3,2], f32[3,1]", "axis=0"}},
};
TN_OP(cross);

}  // namespace tn::ops
