// Orthogonal factors, singular values and eigenvalues. docs/design/007-linalg-derivatives.md says
// what their derivatives are where values repeat and how vectors are scaled.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/matrices.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

/// Values that differ by less count as equal in derivatives, relative to the largest.
constexpr double kCloseSteps = 8;

Tensor close_distance(const Tensor& values) {
  Tensor largest = tn::max(tn::abs(values), Axes(-1), true);
  return as_column(largest * (kCloseSteps * epsilon_of(values.dtype())));
}

/// 1/x, or 0 where x is at most `least`.
Tensor inverse_above(const Tensor& x, const Tensor& least) {
  Tensor small = tn::abs(x) <= least;
  return tn::where(small, 0, 1 / tn::where(small, 1, x));
}

/// F[i,j] = 1/(v[j] - v[i]), or 0 where the two are close, as on the diagonal.
Tensor inverse_gaps(const Tensor& values, const Tensor& least) {
  return inverse_above(as_row(values) - as_column(values), least);
}

bool is_empty(const Tensor& x) { return x.shape().elements().is(0); }

Dim rank_of(const Shape& shape) { return decide_min(rows_of(shape), columns_of(shape)); }

TypeList infer_qr(const QrAttrs& a, Types in) {
  const Shape& shape = in[0]->shape;
  Dim m = rows_of(shape), k = a.mode == QrMode::complete ? m : rank_of(shape);
  return {Type{in[0]->dtype, with_matrix(shape, m, k)},
          Type{in[0]->dtype, with_matrix(shape, k, columns_of(shape))}};
}

/// With C = dA·R⁻¹ and M = Qᴴ·C: dR = (M - W)·R and dQ = C - Q·(M - W), where W is
/// skew-Hermitian, agrees with M below the diagonal, and leaves the diagonal of dR real.
Tensors jvp_qr(const QrAttrs& a, const Primal& p, const Tensors& t) {
  const Type& x = *type_of(p.in[0]);
  Dim m = rows_of(x.shape), n = columns_of(x.shape);
  if (!decide_at_least(m, n) || (a.mode == QrMode::complete && !decide_equal(m, n)))
    unsupported({"use mode \"reduced\" and at least as many rows as columns"},
                "qr: mode {} has no derivative for {}", kQrModes[static_cast<int>(a.mode)], x);
  T q = p.out[0], r = p.out[1];
  // C·R = dA, by the transpose.
  Tensor c = tn::matrix_transpose(
      solve_triangular(r, tn::matrix_transpose(t[0]), {.upper = true, .transpose = true}));
  Tensor inner = tn::matmul(adjoint_of(q), c);
  Tensor lower = tn::tril(inner, -1);
  Tensor turn = lower - adjoint_of(lower);
  if (is_complex(x.dtype))
    turn = turn + (inner - cast_to(tn::real(inner), x.dtype)) * tn::eye(n, {}, 0, x.dtype);
  Tensor rest = inner - turn;
  return {c - tn::matmul(q, rest), tn::matmul(rest, r)};
}

TypeList infer_svd(const SvdAttrs& a, Types in) {
  const Shape& shape = in[0]->shape;
  DType type = in[0]->dtype;
  Dim m = rows_of(shape), n = columns_of(shape), k = rank_of(shape);
  return {Type{type, with_matrix(shape, m, a.full_matrices ? m : k)},
          Type{real_of(type), with_vector(shape, k)},
          Type{type, with_matrix(shape, a.full_matrices ? n : k, n)}};
}

/// The real diagonal of Xᴴ·A·Y.
Tensor diagonal_between(const Tensor& x, const Tensor& a, const Tensor& y) {
  Tensor products = (is_complex(x.dtype()) ? tn::conj(x) : x) * tn::matmul(a, y);
  return tn::real(tn::sum(products, Axes(-2)));
}

/// With M = Uᴴ·dA·V: dS is its real diagonal, and with F[i,j] = 1/(s[j]² - s[i]²)
/// dU = U·(F∘(M·S + S·Mᴴ)) + (1 - U·Uᴴ)·dA·V·S⁻¹, dV likewise. The phase of a pair of complex
/// vectors is free; U takes its change.
Tensors jvp_svd(const SvdAttrs& a, const Primal& p, const Tensors& t) {
  T u = p.out[0], s = p.out[1], vh = p.out[2];
  DType type = u.dtype();
  if (a.full_matrices && !identical(rows_of(u.shape()), columns_of(vh.shape())))
    unsupported({"use full_matrices=False", "use full_matrices = false"},
                "svd: full matrices have no derivative for {}", *type_of(p.in[0]));
  if (is_empty(s)) return Tensors(3);
  Tensor v = adjoint_of(vh), inner = tn::matmul(tn::matmul(adjoint_of(u), t[0]), v);
  Tensor squares = s * s;
  Tensor gaps = cast_to(inverse_gaps(squares, close_distance(squares)), type);
  Tensor column = cast_to(as_column(s), type), row = cast_to(as_row(s), type);
  Tensor left = inner * row, right = column * inner;
  Tensor du = gaps * (left + adjoint_of(left)), dv = gaps * (right + adjoint_of(right));
  Tensor inverse = cast_to(inverse_above(as_row(s), close_distance(s)), type);
  if (is_complex(type))
    du = du + (inner - cast_to(tn::real(inner), type)) * inverse *
                  tn::eye(columns_of(s.shape()), {}, 0, type);
  du = tn::matmul(u, du), dv = tn::matmul(v, dv);
  Tensor image = tn::matmul(t[0], v) * inverse;
  Tensor back = tn::matmul(adjoint_of(t[0]), u) * inverse;
  du = du + image - tn::matmul(u, tn::matmul(adjoint_of(u), image));
  dv = dv + back - tn::matmul(v, tn::matmul(vh, back));
  return {du, tn::real(diagonal_of(inner)), adjoint_of(dv)};
}

/// With M = Vᴴ·dA·V: dw is its diagonal, and dV = V·(F∘M).
Tensors jvp_eigh(const NoAttrs&, const Primal& p, const Tensors& t) {
  T w = p.out[0], v = p.out[1];
  if (is_empty(w)) return Tensors(2);
  Tensor inner = tn::matmul(adjoint_of(v), tn::matmul(t[0], v));
  Tensor gaps = cast_to(inverse_gaps(w, close_distance(w)), v.dtype());
  return {tn::real(diagonal_of(inner)), tn::matmul(v, gaps * inner)};
}

/// With M = V⁻¹·dA·V: dw is its diagonal, and dV = V·(F∘M) less what lies along each vector, which
/// keeps its norm and phase.
Tensors jvp_eig(const NoAttrs&, const Primal& p, const Tensors& t) {
  T w = p.out[0], v = p.out[1];
  if (is_empty(w)) return Tensors(2);
  Tensor inner = solve_matrix(v, tn::matmul(cast_to(t[0], v.dtype()), v));
  Tensor dv = tn::matmul(v, inverse_gaps(w, close_distance(w)) * inner);
  Tensor along = tn::sum(tn::conj(v) * dv, Axes(-2), {}, true);
  return {diagonal_of(inner), dv - v * along};
}

Type values_type(Types in, DType type) {
  return {type, with_vector(in[0]->shape, rows_of(in[0]->shape))};
}

}  // namespace

Tensors reduced_svd(const Tensor& x) {
  SvdAttrs reduced{false};
  return emit_all(svd, {{x}}, &reduced);
}

constexpr auto qr_def = Op<QrAttrs>{
    .doc =
        "The factors of `x` = Q @ R: Q has orthonormal columns, R zeros below the diagonal. Of a "
        "matrix of m rows and n columns Q has min(m, n) columns, or m in mode `complete`. Has a "
        "derivative for m >= n in mode `reduced`.",
    .module = "linalg",
    .args = {"x"},
    .results = {"Q", "R"},
    .prepare = [](QrAttrs&, Tensors& in) { prepare_matrix("qr", in); },
    .infer = rule<infer_qr>,
    .jvp = rule<jvp_qr>,
    .batch = Batch::aligned,
    .samples = {{"f32[3,3]"}, {"f32[2,4,3]"}},
};
TN_OP(qr);

constexpr auto svd_def = Op<SvdAttrs>{
    .doc =
        "The factors of `x` = U @ diag(S) @ Vh: U and Vh are unitary, the singular values S real, "
        "not negative and in descending order. Unless `full_matrices`, U has only as many columns "
        "and Vh as many rows as S has values, and only then are there derivatives. NaN for a "
        "matrix that is not finite.",
    .module = "linalg",
    .args = {"x"},
    .results = {"U", "S", "Vh"},
    .prepare = [](SvdAttrs&, Tensors& in) { prepare_matrix("svd", in); },
    .infer = rule<infer_svd>,
    .jvp = rule<jvp_svd>,
    .batch = Batch::aligned,
    .samples = {{"f32[3,3]", "full_matrices=false"},
                {"f32[2,4,3]", "full_matrices=false"},
                {"f32[2,4]", "full_matrices=false"}},
};
TN_OP(svd);

constexpr auto svdvals_def = Op<>{
    .doc = "The singular values, in descending order. See `svd`.",
    .module = "linalg",
    .args = {"x"},
    .prepare = [](NoAttrs&, Tensors& in) { prepare_matrix("svdvals", in); },
    .infer = [](const NoAttrs&, Types in) -> TypeList {
      return Type{real_of(in[0]->dtype), with_vector(in[0]->shape, rank_of(in[0]->shape))};
    },
    .jvp = [](const NoAttrs&, const Primal& p, const Tensors& t) -> Tensors {
      Tensors f = reduced_svd(p.in[0]);
      return {diagonal_between(f[0], t[0], adjoint_of(f[2]))};
    },
    .batch = Batch::aligned,
    .samples = {{"f32[3,3]"}, {"f32[2,4,3]"}, {"f32[2,4]"}},
};
TN_OP(svdvals);

constexpr auto eigh_def = Op<>{
    .doc =
        "Eigenvalues, real and in ascending order, and orthonormal eigenvectors, as columns, of a "
        "Hermitian matrix; `x` counts as (x + xᴴ)/2. NaN for a matrix that is not finite.",
    .module = "linalg",
    .args = {"x"},
    .results = {"eigenvalues", "eigenvectors"},
    .prepare = [](NoAttrs&, Tensors& in) { prepare_hermitian("eigh", in); },
    .infer = [](const NoAttrs&, Types in) -> TypeList {
      return {values_type(in, real_of(in[0]->dtype)), *in[0]};
    },
    .jvp = rule<jvp_eigh>,
    .batch = Batch::aligned,
    .samples = {{"f32[3,3]"}, {"f32[2,4,4]"}},
};
TN_OP(eigh);

constexpr auto eigvalsh_def = Op<>{
    .doc = "The eigenvalues of a Hermitian matrix, in ascending order. See `eigh`.",
    .module = "linalg",
    .args = {"x"},
    .prepare = [](NoAttrs&, Tensors& in) { prepare_hermitian("eigvalsh", in); },
    .infer = [](const NoAttrs&, Types in) -> TypeList {
      return values_type(in, real_of(in[0]->dtype));
    },
    .jvp = [](const NoAttrs&, const Primal& p, const Tensors& t) -> Tensors {
      Tensor v = emit_all(eigh, p.in, nullptr)[1];
      return {diagonal_between(v, t[0], v)};
    },
    .batch = Batch::aligned,
    .samples = {{"f32[3,3]"}, {"f32[2,4,4]"}},
};
TN_OP(eigvalsh);

constexpr auto eig_def = Op<>{
    .doc =
        "Eigenvalues, in no particular order, and eigenvectors, as columns of norm 1, both "
        "complex. NaN for a matrix that is not finite or whose iteration does not converge.",
    .module = "linalg",
    .args = {"x"},
    .results = {"eigenvalues", "eigenvectors"},
    .prepare = [](NoAttrs&, Tensors& in) { prepare_square("eig", in); },
    .infer = [](const NoAttrs&, Types in) -> TypeList {
      DType type = complex_of(in[0]->dtype);
      return {values_type(in, type), Type{type, in[0]->shape}};
    },
    .jvp = rule<jvp_eig>,
    .batch = Batch::aligned,
    .samples = {{"f32[3,3]"}, {"f32[2,4,4]"}},
};
TN_OP(eig);

constexpr auto eigvals_def = Op<>{
    .doc = "The eigenvalues, complex and in no particular order. See `eig`.",
    .module = "linalg",
    .args = {"x"},
    .prepare = [](NoAttrs&, Tensors& in) { prepare_square("eigvals", in); },
    .infer = [](const NoAttrs&, Types in) -> TypeList {
      return values_type(in, complex_of(in[0]->dtype));
    },
    .jvp = [](const NoAttrs&, const Primal& p, const Tensors& t) -> Tensors {
      Tensor v = emit_all(eig, p.in, nullptr)[1];
      return {diagonal_of(solve_matrix(v, tn::matmul(cast_to(t[0], v.dtype()), v)))};
    },
    .batch = Batch::aligned,
    .samples = {{"f32[3,3]"}, {"f32[2,4,4]"}},
};
TN_OP(eigvals);

}  // namespace tn::ops
