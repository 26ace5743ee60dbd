// Triangular factors, and what follows from them: systems of equations, inverses, determinants.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/matrices.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct PowerAttrs {
  int64_t n = 0;
  static constexpr void fields(auto& a, auto&& f) { f("n", a.n, required); }
};

/// dL = L·Φ(L⁻¹·dA·L⁻ᴴ), where Φ takes the lower triangle and half the diagonal.
Tensors jvp_cholesky(const CholeskyAttrs& a, const Primal& p, const Tensors& t) {
  Tensor l = a.upper ? adjoint_of(p.out[0]) : p.out[0];
  Tensor half = solve_triangular(l, t[0], {});
  Tensor both = adjoint_of(solve_triangular(l, adjoint_of(half), {}));
  Dim n = rows_of(l.shape());
  Tensor phi = tn::tri(n, {}, 0, real_of(l.dtype())) - tn::eye(n, {}, 0, real_of(l.dtype())) * 0.5;
  Tensor change = tn::matmul(l, both * phi);
  return {a.upper ? adjoint_of(change) : change};
}

/// The rows of `x` in another order.
Tensor permuted_rows(const Tensor& x, const Tensor& order) {
  return tn::take_along_axis(x, tn::broadcast_to(as_column(order), x.shape()), -2);
}

/// With M = L⁻¹·P·dA·U⁻¹: dL = L·tril(M, -1) and dU = triu(M)·U.
Tensors jvp_lu_factor(const NoAttrs&, const Primal& p, const Tensors& t) {
  T lu = p.out[0];
  Tensor left = solve_triangular(lu, permuted_rows(t[0], p.out[2]), {.unit_diagonal = true});
  Tensor m = tn::matrix_transpose(
      solve_triangular(lu, tn::matrix_transpose(left), {.upper = true, .transpose = true}));
  Dim n = rows_of(lu.shape());
  Tensor l = tn::tril(lu, -1) + tn::eye(n, {}, 0, lu.dtype());
  return {tn::matmul(l, tn::tril(m, -1)) + tn::matmul(tn::triu(m), tn::triu(lu)), {}, {}};
}

/// Batches broadcast, so that the two operands have one.
void share_batch(std::string_view op, Tensor& a, Tensor& b) {
  Shape batch = broadcast(leading_shape(a.shape()), leading_shape(b.shape()), op);
  for (Tensor* x : {&a, &b}) {
    Shape whole = batch;
    whole.push_back(rows_of(x->shape())), whole.push_back(columns_of(x->shape()));
    if (!identical(x->shape(), whole)) *x = tn::broadcast_to(*x, whole);
  }
}

void check_system(std::string_view op, const Tensor& a, const Tensor& b) {
  const Type &x = *type_of(a), &y = *type_of(b);
  if (x.rank() < 2 || !decide_equal(rows_of(x.shape), columns_of(x.shape)))
    fail("{}: x1 must be a square matrix: {}", op, x);
  if (y.rank() < 2) fail("{}: x2 must be a matrix: {}", op, y);
  if (!decide_equal(rows_of(x.shape), rows_of(y.shape)))
    fail("{}: rows differ: {} (x1 {}) and {} (x2 {})", op, rows_of(x.shape), x, rows_of(y.shape),
         y);
}

void prepare_triangular(TriangularAttrs&, Tensors& in) {
  promote_matrices("triangular_solve", in);
  check_system("triangular_solve", in[0], in[1]);
  share_batch("triangular_solve", in[0], in[1]);
}

/// The elements of a triangle that are read.
Tensor triangle_of(const TriangularAttrs& a, const Tensor& x) {
  return a.upper ? tn::triu(x, a.unit_diagonal) : tn::tril(x, a.unit_diagonal ? -1 : 0);
}

/// A·dX = dB - dA·X
Tensors jvp_triangular(const TriangularAttrs& a, const Primal& p, const Tensors& t) {
  Tensor right = t[1];
  if (t[0].defined()) {
    Tensor change = triangle_of(a, t[0]);
    change = tn::matmul(a.transpose ? tn::matrix_transpose(change) : change, p.out[0]);
    right = right.defined() ? right - change : -change;
  }
  return {solve_triangular(p.in[0], right, a)};
}

Tensors vjp_triangular(const TriangularAttrs& a, const Primal& p, const Tensors& ct) {
  TriangularAttrs turned = a;
  turned.transpose = !a.transpose;
  Tensor right = solve_triangular(p.in[0], ct[0], turned);
  Tensor change = tn::matmul(right, tn::matrix_transpose(p.out[0]));
  return {-triangle_of(a, a.transpose ? tn::matrix_transpose(change) : change), right};
}

Tensors factors_of(const Tensor& a) { return emit_all(lu_factor, {{a}}, nullptr); }

/// P·A = L·U, so A⁻¹·B = U⁻¹·L⁻¹·P·B and A⁻ᵀ·B = Pᵀ·L⁻ᵀ·U⁻ᵀ·B.
Tensor apply_inverse(const Tensor& lu, const Tensor& order, const Tensor& b, bool transpose) {
  if (!transpose) {
    Tensor half = solve_triangular(lu, permuted_rows(b, order), {.unit_diagonal = true});
    return solve_triangular(lu, half, {.upper = true});
  }
  Tensor half = solve_triangular(lu, b, {.upper = true, .transpose = true});
  half = solve_triangular(lu, half, {.transpose = true, .unit_diagonal = true});
  return permuted_rows(half, tn::argsort(order));
}

Tensor system(const Tensor& a, const Tensor& b, bool transpose = false) {
  return emit(matrix_solve, {a, b}, SolveAttrs{transpose});
}

/// A·dX = dB - dA·X
Tensors jvp_solve(const SolveAttrs& a, const Primal& p, const Tensors& t) {
  Tensor right = t[1];
  if (t[0].defined()) {
    Tensor change = tn::matmul(a.transpose ? tn::matrix_transpose(t[0]) : t[0], p.out[0]);
    right = right.defined() ? right - change : -change;
  }
  return {system(p.in[0], right, a.transpose)};
}

Tensors vjp_solve(const SolveAttrs& a, const Primal& p, const Tensors& ct) {
  Tensor right = system(p.in[0], ct[0], !a.transpose);
  Tensor change = -tn::matmul(right, tn::matrix_transpose(p.out[0]));
  return {a.transpose ? tn::matrix_transpose(change) : change, right};
}

Tensors solve_body(const NoAttrs&, const Tensors& in) {
  Tensors both = in;
  promote_matrices("solve", both);
  bool vector = both[1].rank() == 1;
  if (vector) both[1] = as_column(both[1]);
  check_system("solve", both[0], both[1]);
  Tensor x = solve_matrix(both[0], both[1]);
  return {vector ? tn::squeeze(x, Axes(-1)) : x};
}

Tensor identity_like(const Tensor& x) {
  Tensor one = tn::eye(rows_of(x.shape()), {}, 0, x.dtype());
  return tn::broadcast_to(one, x.shape());
}

Tensors inv_body(const NoAttrs&, const Tensors& in) {
  Tensors x = in;
  prepare_square("inv", x);
  return {solve_matrix(x[0], identity_like(x[0]))};
}

/// 1, or -1 for an odd number of exchanged rows.
Tensor sign_of(const Tensor& pivots, DType type) {
  Tensor own = tn::iota({columns_of(pivots.shape())});
  return tn::prod(tn::where(pivots != own, filled(-1, type, {}), filled(1, type, {})), Axes(-1));
}

Tensor determinant(const Tensor& lu, const Tensor& pivots) {
  return tn::prod(diagonal_of(lu), Axes(-1)) * sign_of(pivots, lu.dtype());
}

/// d det A = det A · tr(A⁻¹·dA). Pivots that are 0 count as tiny ones: the product of the
/// determinant, as small, and the inverse, as large, then still is the adjugate matrix.
Tensors jvp_det(const NoAttrs&, const Primal& p, const Tensors& t) {
  Tensors factors = factors_of(p.in[0]);
  T lu = factors[0];
  Dim n = rows_of(lu.shape());
  if (n.is(0)) return {Tensor()};
  Tensor largest = tn::max(tn::abs(lu), Axes{-2, -1}, true);
  Tensor tiny = tn::where(largest == 0, 1, largest) * epsilon_of(lu.dtype());
  Tensor missing = (lu == 0) & (tn::eye(n, {}, 0, DType::b1));
  Tensor regular = tn::where(missing, cast_to(tiny, lu.dtype()), lu);
  Tensor value =
      tn::where(p.out[0] == 0, tn::stop_gradient(determinant(regular, factors[1])), p.out[0]);
  Tensor inner = apply_inverse(regular, factors[2], t[0], false);
  return {value * tn::sum(diagonal_of(inner), Axes(-1))};
}

Tensors slogdet_body(const NoAttrs&, const Tensors& in) {
  Tensors factors = factors_of(in[0]);
  Tensor pivots = diagonal_of(factors[0]);
  Tensor sign = tn::prod(tn::sign(pivots), Axes(-1)) * sign_of(factors[1], in[0].dtype());
  return {sign, tn::sum(tn::log(tn::abs(pivots)), Axes(-1))};
}

/// d log det A = tr(A⁻¹·dA): the real part moves the logarithm, the imaginary part the sign.
Tensors jvp_slogdet(const NoAttrs&, const Primal& p, const Tensors& t) {
  Tensor change = tn::sum(diagonal_of(system(p.in[0], t[0])), Axes(-1));
  if (!is_complex(change.dtype())) return {Tensor(), change};
  Tensor real = tn::real(change);
  return {p.out[0] * (change - cast_to(real, change.dtype())), real};
}

Tensors matrix_power_body(const PowerAttrs& a, const Tensors& in) {
  Tensor x = in[0];
  if (x.rank() < 2 || !decide_equal(rows_of(x.shape()), columns_of(x.shape())))
    fail("matrix_power: the last two axes must be equal: {}", *type_of(x));
  if (a.n == 0) return {cast_to(identity_like(x), x.dtype())};
  if (a.n < 0) x = inv_body({}, {x})[0];
  Tensor product;
  for (uint64_t rest = a.n < 0 ? -static_cast<uint64_t>(a.n) : static_cast<uint64_t>(a.n); rest;) {
    if (rest & 1) product = product.defined() ? tn::matmul(product, x) : x;
    rest >>= 1;
    if (rest) x = tn::matmul(x, x);
  }
  return {product};
}

}  // namespace

Tensor solve_matrix(const Tensor& a, const Tensor& b) {
  if (a.rank() > 2 || b.rank() == 2) {
    Tensor left = a, right = b;
    share_batch("solve", left, right);
    return system(left, right);
  }
  // One matrix for all right sides: they are its columns.
  Tensor front = tn::moveaxis(b, Axes(-2), Axes(0));
  Tensor x = system(a, tn::reshape(front, {rows_of(a.shape()), Dim(-1)}));
  return tn::moveaxis(tn::reshape(x, front.shape()), Axes(0), Axes(-2));
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, TriangularAttrs kind) {
  return emit(triangular_solve, {a, b}, kind);
}

constexpr auto cholesky_def = Op<CholeskyAttrs>{
    .doc =
        "The lower triangular matrix with positive diagonal whose product with its conjugate "
        "transpose is `x`, or that transpose when `upper`. `x` counts as (x + xᴴ)/2. NaN for a "
        "matrix that is not positive definite.",
    .module = "linalg",
    .args = {"x"},
    .prepare = [](CholeskyAttrs&, Tensors& in) { prepare_hermitian("cholesky", in); },
    .infer = [](const CholeskyAttrs&, Types in) -> TypeList { return Type(*in[0]); },
    .jvp = rule<jvp_cholesky>,
    .batch = Batch::aligned,
    .samples = {{"f32[3,1,1]", "", 0.5, 2}, {"f32[1,1]", "upper=true", 0.5, 2}},
};
TN_OP(cholesky);

constexpr auto lu_factor_def = Op<>{
    .doc =
        "`x` with rows in the order of `permutation` is L·U: `lu` holds U on and above the "
        "diagonal, L below it, whose own diagonal is 1. Row i was exchanged with row `pivots[i]`, "
        "one after the other. A singular matrix gives zeros on the diagonal of U.",
    .module = "linalg",
    .args = {"x"},
    .results = {"lu", "pivots", "permutation"},
    .prepare = [](NoAttrs&, Tensors& in) { prepare_square("lu_factor", in); },
    .infer = [](const NoAttrs&, Types in) -> TypeList {
      Type rows{DType::i64, with_vector(in[0]->shape, rows_of(in[0]->shape))};
      return {*in[0], rows, rows};
    },
    .jvp = rule<jvp_lu_factor>,
    .batch = Batch::aligned,
    .samples = {{"f32[3,3]"}, {"f32[2,4,4]"}},
};
TN_OP(lu_factor);

constexpr auto triangular_solve_def = Op<TriangularAttrs>{
    .doc =
        "The matrix X with `x1` @ X = `x2`, or `x1.mT` @ X = `x2` when `transpose`. Only the lower "
        "triangle of `x1` is read, or the `upper` one; its diagonal counts as 1 when "
        "`unit_diagonal`. Leading axes broadcast. Zeros on the diagonal divide.",
    .module = "linalg",
    .args = {"x1", "x2"},
    .prepare = rule<prepare_triangular>,
    .infer = [](const TriangularAttrs&, Types in) -> TypeList { return Type(*in[1]); },
    .jvp = rule<jvp_triangular>,
    .vjp = rule<vjp_triangular>,
    .batch = Batch::aligned,
    .samples = {{"f32[3,3], f32[3,2]", "", 1, 2},
                {"f32[2,3,3], f32[3,2]", "upper=true", 1, 2},
                {"f32[3,3], f32[2,3,1]", "transpose=true", 1, 2},
                {"f32[2,2], f32[2,2]", "upper=true, transpose=true, unit_diagonal=true"}},
};
TN_OP(triangular_solve);

constexpr auto matrix_solve_def = Composite<SolveAttrs>{
    .doc =
        "The matrix X with `x1` @ X = `x2`, or `x1.mT` @ X = `x2` when `transpose`; leading axes "
        "broadcast. What `solve` and `inv` are made of.",
    .module = "linalg",
    .args = {"x1", "x2"},
    .recorded = true,
    .prepare =
        [](SolveAttrs&, Tensors& in) {
          promote_matrices("matrix_solve", in);
          check_system("matrix_solve", in[0], in[1]);
          share_batch("matrix_solve", in[0], in[1]);
        },
    .body = [](const SolveAttrs& a, const Tensors& in) -> Tensors {
      Tensors factors = factors_of(in[0]);
      return {apply_inverse(factors[0], factors[2], in[1], a.transpose)};
    },
    .jvp = rule<jvp_solve>,
    .vjp = rule<vjp_solve>,
    .batch = Batch::aligned,
    .samples = {{"f32[3,3], f32[3,2]"}, {"f32[2,3,3], f32[3,1]", "transpose=true"}},
};
TN_OP(matrix_solve);

constexpr auto solve_def = Composite<>{
    .doc =
        "The solution X of `x1` @ X = `x2` for square `x1`; leading axes broadcast. `x2` is a "
        "vector if it has one axis. A singular matrix gives infinities or NaN.",
    .module = "linalg",
    .args = {"x1", "x2"},
    .body = rule<solve_body>,
    .samples = {{"f32[3,3], f32[3,2]"}, {"f32[2,3,3], f32[3,1]"}, {"f32[3,3], f32[3]"}},
};
TN_OP(solve);

constexpr auto inv_def = Composite<>{
    .doc = "The inverse matrix. A singular matrix gives infinities or NaN.",
    .module = "linalg",
    .args = {"x"},
    .body = rule<inv_body>,
    .samples = {{"f32[3,3]"}, {"f32[2,2,2]"}},
};
TN_OP(inv);

constexpr auto det_def = Composite<>{
    .doc =
        "The determinant; 1 for a matrix of no elements. Its derivative exists at singular "
        "matrices too.",
    .module = "linalg",
    .args = {"x"},
    .recorded = true,
    .prepare = [](NoAttrs&, Tensors& in) { prepare_square("det", in); },
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Tensors factors = factors_of(in[0]);
      return {determinant(factors[0], factors[1])};
    },
    .jvp = rule<jvp_det>,
    .samples = {{"f32[3,3]"}, {"f32[2,4,4]"}},
};
TN_OP(det);

constexpr auto slogdet_def = Composite<>{
    .doc =
        "The determinant as its `sign` (a complex number of magnitude 1 if complex) and the "
        "logarithm of its magnitude; 0 and -inf for a singular matrix.",
    .module = "linalg",
    .args = {"x"},
    .results = {"sign", "logabsdet"},
    .recorded = true,
    .prepare = [](NoAttrs&, Tensors& in) { prepare_square("slogdet", in); },
    .body = rule<slogdet_body>,
    .jvp = rule<jvp_slogdet>,
    .samples = {{"f32[3,3]"}, {"f32[2,4,4]"}},
};
TN_OP(slogdet);

constexpr auto matrix_power_def = Composite<PowerAttrs>{
    .doc = "The product of `n` matrices `x`; of its inverses when `n` is negative.",
    .module = "linalg",
    .args = {"x"},
    .body = rule<matrix_power_body>,
    .samples = {{"f32[3,3]", "n=3"}, {"f32[2,2,2]", "n=0"}, {"f32[2,2]", "n=-2"}},
};
TN_OP(matrix_power);

}  // namespace tn::ops
