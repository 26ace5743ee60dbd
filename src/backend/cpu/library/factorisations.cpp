// Factors of matrices and triangular systems, by LAPACK.
#include "backend/cpu/kernels/factorise.h"
#include "backend/cpu/library/cpu_library.h"
#include "ops/matrices.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"

namespace tn::cpu {
namespace {

using namespace ops;

void run_qr(const LibraryCall& call) {
  const Type& x = *call.in_types[0];
  bool complete = static_cast<const QrAttrs*>(call.attrs)->mode == QrMode::complete;
  tn::qr(element_of(x.dtype), batch_size(x.shape), rows_of(x.shape).value(),
         columns_of(x.shape).value(), complete, call.in[0], call.out[0], call.out[1]);
}

void run_svd(const LibraryCall& call) {
  const Type& x = *call.in_types[0];
  bool full = static_cast<const SvdAttrs*>(call.attrs)->full_matrices;
  tn::svd(element_of(x.dtype), batch_size(x.shape), rows_of(x.shape).value(),
          columns_of(x.shape).value(), full, call.in[0], call.out[0], call.out[1], call.out[2]);
}

void run_svdvals(const LibraryCall& call) {
  const Type& x = *call.in_types[0];
  tn::svd(element_of(x.dtype), batch_size(x.shape), rows_of(x.shape).value(),
          columns_of(x.shape).value(), false, call.in[0], nullptr, call.out[0], nullptr);
}

void run_eigh(const LibraryCall& call) {
  const Type& x = *call.in_types[0];
  tn::eigh(element_of(x.dtype), batch_size(x.shape), rows_of(x.shape).value(), call.in[0],
           call.out[0], call.out_types.size() > 1 ? call.out[1] : nullptr);
}

void run_eig(const LibraryCall& call) {
  const Type& x = *call.in_types[0];
  tn::eig(element_of(x.dtype), batch_size(x.shape), rows_of(x.shape).value(), call.in[0],
          call.out[0], call.out_types.size() > 1 ? call.out[1] : nullptr);
}

void run_cholesky(const LibraryCall& call) {
  const Type& x = *call.in_types[0];
  bool upper = static_cast<const CholeskyAttrs*>(call.attrs)->upper;
  tn::cholesky(element_of(x.dtype), batch_size(x.shape), rows_of(x.shape).value(), upper,
               call.in[0], call.out[0]);
}

void run_lu_factor(const LibraryCall& call) {
  const Type& x = *call.in_types[0];
  tn::lu_factor(element_of(x.dtype), batch_size(x.shape), rows_of(x.shape).value(), call.in[0],
                call.out[0], static_cast<int64_t*>(call.out[1]),
                static_cast<int64_t*>(call.out[2]));
}

void run_triangular(const LibraryCall& call) {
  const auto& a = *static_cast<const TriangularAttrs*>(call.attrs);
  const Type &x = *call.in_types[0], &b = *call.in_types[1];
  tn::triangular_solve(element_of(x.dtype), batch_size(x.shape), rows_of(x.shape).value(),
                       columns_of(b.shape).value(), {a.upper, a.transpose, a.unit_diagonal},
                       call.in[0], call.in[1], call.out[0]);
}

constexpr LibraryKernel kEntriesFactors[] = {
    {&ops::qr, run_qr},
    {&ops::svd, run_svd},
    {&ops::svdvals, run_svdvals},
    {&ops::eigh, run_eigh},
    {&ops::eigvalsh, run_eigh},
    {&ops::eig, run_eig},
    {&ops::eigvals, run_eig},
    {&ops::cholesky, run_cholesky},
    {&ops::lu_factor, run_lu_factor},
    {&ops::triangular_solve, run_triangular},
};

}  // namespace

LibraryTable factor_kernels() { return kEntriesFactors; }

}  // namespace tn::cpu
