#include "ops/matrices.h"

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {

void promote_matrices(std::string_view op, Tensors& in) {
  for (const Tensor& x : in) check_kind(op, numeric, x.dtype());
  DType type = promote_all(in, op, numeric, true);
  if (type == DType::f16 || type == DType::bf16)
    fail(Fault::type, Hint{"convert it: astype(x, float32)"},
         "{}: matrices of {} are not supported", op, type);
}

void prepare_matrix(std::string_view op, Tensors& in) {
  promote_matrices(op, in);
  if (in[0].rank() < 2) fail("{}: at least two axes are needed: {}", op, *type_of(in[0]));
}

void prepare_square(std::string_view op, Tensors& in) {
  prepare_matrix(op, in);
  const Shape& shape = in[0].shape();
  if (!decide_equal(rows_of(shape), columns_of(shape)))
    fail("{}: the last two axes must be equal: {}", op, *type_of(in[0]));
}

void prepare_hermitian(std::string_view op, Tensors& in) {
  prepare_square(op, in);
  in[0] = tn::multiply(tn::add(in[0], adjoint_of(in[0])), 0.5);
}

Dim rows_of(const Shape& shape) { return shape[shape.rank() - 2]; }
Dim columns_of(const Shape& shape) { return shape[shape.rank() - 1]; }
Shape leading_shape(const Shape& shape, int count) { return {shape.begin(), shape.end() - count}; }
int64_t batch_size(const Shape& shape) { return span_of(shape, 0, shape.rank() - 2); }

Shape with_matrix(const Shape& shape, Dim rows, Dim columns) {
  Shape out = with_vector(shape, rows);
  out.push_back(columns);
  return out;
}

Shape with_vector(const Shape& shape, Dim extent) {
  Shape out = leading_shape(shape);
  out.push_back(extent);
  return out;
}

Tensor adjoint_of(const Tensor& x) {
  Tensor turned = tn::matrix_transpose(x);
  return is_complex(x.dtype()) ? tn::conj(turned) : turned;
}

Tensor diagonal_of(const Tensor& x) { return tn::diagonal(x, 0, -2, -1); }
Tensor as_column(const Tensor& x) { return tn::expand_dims(x, -1); }
Tensor as_row(const Tensor& x) { return tn::expand_dims(x, -2); }

double epsilon_of(DType type) { return real_of(type) == DType::f64 ? 0x1p-52 : 0x1p-23; }

}  // namespace tn::ops
