#pragma once
// Factorisations of matrices of f32, f64, c64 and c128, by LAPACK.
//
// All take `batch` row-major matrices, one after the other, and write results the same way. Results
// of a matrix that cannot be factored (not positive definite, not finite, no convergence) are NaN,
// and the others are not disturbed.
#include <cstdint>

#include "runtime/element_kind.h"

namespace tn {

/// A = L·Lᴴ, n×n; reads the lower triangle. Zeros above the diagonal. Or A = Lᴴ·L from the `upper`
/// one, zeros below.
void cholesky(Element type, int64_t batch, int64_t n, bool upper, const void* a, void* l);

/// A[permutation] = L·U with partial pivoting, n×n, both in `lu`; L has ones on its diagonal.
/// Row i was exchanged with row pivots[i], in order of i.
void lu_factor(Element type, int64_t batch, int64_t n, const void* a, void* lu, int64_t* pivots,
               int64_t* permutation);

struct Triangle {
  bool upper = false, transpose = false, unit_diagonal = false;
};
/// A·X = B, or Aᵀ·X = B, with B n×k; reads one triangle of A. Zeros on its diagonal divide.
void triangular_solve(Element type, int64_t batch, int64_t n, int64_t k, Triangle kind,
                      const void* a, const void* b, void* x);

/// A = Q·R, m×n. Q has min(m, n) columns, or m when `complete`.
void qr(Element type, int64_t batch, int64_t m, int64_t n, bool complete, const void* a, void* q,
        void* r);

/// A = U·diag(s)·Vᴴ, m×n, singular values in descending order. U and Vᴴ are square when `full`,
/// else have min(m, n) columns and rows; both are left out when null.
void svd(Element type, int64_t batch, int64_t m, int64_t n, bool full, const void* a, void* u,
         void* s, void* vh);

/// A = V·diag(w)·Vᴴ for Hermitian A, n×n, eigenvalues in ascending order; reads the lower
/// triangle. V is left out when null.
void eigh(Element type, int64_t batch, int64_t n, const void* a, void* w, void* v);

/// A·V = V·diag(w), n×n; w and V are complex. V's columns have norm 1; V is left out when null.
void eig(Element type, int64_t batch, int64_t n, const void* a, void* w, void* v);

}  // namespace tn
