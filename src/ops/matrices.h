#pragma once
// What the ops on matrices share. Matrices are the last two axes; those before them are a batch.
#include "ir/emit.h"

namespace tn::ops {

/// Converts operands to one of the types that are factored: f32, f64, c64 or c128.
void promote_matrices(std::string_view op, Tensors& in);
/// The same for one operand, which must have two axes at least.
void prepare_matrix(std::string_view op, Tensors& in);
void prepare_square(std::string_view op, Tensors& in);
/// The same for an operand that counts as Hermitian: it becomes (x + xᴴ)/2.
void prepare_hermitian(std::string_view op, Tensors& in);

Dim rows_of(const Shape& shape);
Dim columns_of(const Shape& shape);
/// The axes before the last `count`.
Shape leading_shape(const Shape& shape, int count = 2);
int64_t batch_size(const Shape& shape);
/// The batch of `shape` with other axes after it.
Shape with_matrix(const Shape& shape, Dim rows, Dim columns);
Shape with_vector(const Shape& shape, Dim extent);

/// The conjugate transpose.
Tensor adjoint_of(const Tensor& x);
Tensor diagonal_of(const Tensor& x);
/// A vector's elements for the rows, or the columns, of a matrix.
Tensor as_column(const Tensor& x);
Tensor as_row(const Tensor& x);
/// The distance of 1 from the next number.
double epsilon_of(DType type);

/// The results of `svd` without full matrices.
Tensors reduced_svd(const Tensor& x);

enum class QrMode : uint8_t { reduced, complete };
inline constexpr std::string_view kQrModes[] = {"reduced", "complete"};
constexpr ChoiceNames choice_names(QrMode) { return kQrModes; }

struct QrAttrs {
  QrMode mode = QrMode::reduced;
  static constexpr void fields(auto& a, auto&& f) { f("mode", a.mode); }
};

struct SvdAttrs {
  bool full_matrices = true;
  static constexpr void fields(auto& a, auto&& f) { f("full_matrices", a.full_matrices); }
};

struct CholeskyAttrs {
  bool upper = false;
  static constexpr void fields(auto& a, auto&& f) { f("upper", a.upper); }
};

/// Of `matrix_solve`.
struct SolveAttrs {
  bool transpose = false;
  static constexpr void fields(auto& a, auto&& f) { f("transpose", a.transpose); }
};

/// Which triangle of a matrix is read, and how.
struct TriangularAttrs {
  bool upper = false, transpose = false, unit_diagonal = false;
  static constexpr void fields(auto& a, auto&& f) {
    f("upper", a.upper), f("transpose", a.transpose), f("unit_diagonal", a.unit_diagonal);
  }
};

/// A·X = B with one triangle of A, and one batch.
Tensor solve_triangular(const Tensor& a, const Tensor& b, TriangularAttrs kind);
/// A·X = B, with B a matrix; batches broadcast.
Tensor solve_matrix(const Tensor& a, const Tensor& b);

}  // namespace tn::ops
