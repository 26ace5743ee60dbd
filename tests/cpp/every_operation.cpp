#include "every_operation.h"

#include "loop/builder.h"

namespace tn::loop {
namespace {

constexpr DType kTypes[] = {DType::b1,     DType::i8,  DType::i16,  DType::i32, DType::i64,
                            DType::u8,     DType::u16, DType::u32,  DType::u64, DType::f8e4m3,
                            DType::f8e5m2, DType::f16, DType::bf16, DType::f32, DType::f64};

/// y = op(x0, x1, x2), with operands of `type`; of math the narrow form if wanted.
Kernel kernel_of(Op op, DType type, int64_t n, bool narrow = false) {
  Builder b("op");
  if (narrow) b.compute_for(DType::bf16);
  int axis = b.add_axis(n);
  S x[3];
  for (int k = 0; k < 3; ++k) x[k] = b.load(b.add_buffer(format("x{}", k), type, n), b.axis(axis));
  int operands = facts(op).operands;
  S y = operands == 1 ? b.unary(op, x[0]) : operands == 2 ? b.binary(op, x[0], x[1]) : x[0];
  if (op == Op::fma) y = b.ternary(op, x[0], x[1], x[2]);
  if (op == Op::select) y = sc::select(x[0] < x[1], x[1], x[2]);
  b.store(b.add_buffer("y", y.type(), n, true), b.axis(axis), y);
  return b.finish();
}

bool is_defined(Op op, DType type) {
  bool real = type == DType::f32 || type == DType::f64, whole = is_integer(type);
  if (facts(op).math) return real;
  switch (op) {
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::sqrt:
    case Op::is_nan:
    case Op::copysign:
    case Op::fma:
      return real;
    case Op::shl:
    case Op::shr:
      return whole;
    case Op::and_:
    case Op::or_:
    case Op::xor_:
    case Op::not_:
      return whole || type == DType::b1;
    case Op::max:
    case Op::min:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::select:
      return real || whole || type == DType::b1;
    case Op::neg:
    case Op::abs:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::rem:
      return real || whole;
    default:
      return false;
  }
}

}  // namespace

std::vector<OperationKernel> every_operation(int64_t n) {
  std::vector<OperationKernel> all;
  for (int k = 0; k < kOps; ++k)
    for (DType type : kTypes)
      if (Op op = static_cast<Op>(k); is_defined(op, type))
        all.push_back({op, type, kernel_of(op, type, n)});
  for (int k = 0; k < kOps; ++k)
    if (Op op = static_cast<Op>(k); facts(op).narrow)
      all.push_back({op, DType::f32, kernel_of(op, DType::f32, n, true)});
  return all;
}

std::vector<OperationKernel> every_cast(int64_t n) {
  std::vector<OperationKernel> all;
  for (DType from : kTypes)
    for (DType to : kTypes) {
      Builder b("cast");
      int axis = b.add_axis(n);
      S x = b.load(b.add_buffer("x", from, n), b.axis(axis));
      b.store(b.add_buffer("y", to, n, true), b.axis(axis), b.cast(x, to));
      all.push_back({Op::cast, from, b.finish()});
    }
  return all;
}

Kernel rows_kernel(int64_t rows, int64_t columns, const char* type, const char* monoid) {
  return parse_kernel(format(R"(kernel rows(x: {2}[{3}]) -> (y: {2}[{3}]) {{
  axes p0:{0} par, r1:{1} red
  v0 = load x[{1}*p0 + r1] : {2}
  v1 = reduce {4} v0 over r1 : {2}
  v2 = sub v0, v1 : {2}
  v3 = reduce add v2 over r1 : {2}
  v4 = mul v2, v3 : {2}
  store y[{1}*p0 + r1] = v4
}})",
                             rows, columns, type, rows * columns, monoid));
}

}  // namespace tn::loop
