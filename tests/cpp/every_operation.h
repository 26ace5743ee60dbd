#pragma once
// One small kernel for every operation of LoopIR on every element type, and for every cast.
#include "loop/kernel.h"

namespace tn::loop {

struct OperationKernel {
  Op op;
  DType type;  // of the operands
  Kernel kernel;
};

/// y = op(x0, x1, x2) over `n` points, for all operations and types that go together, and for the
/// narrow forms of math.
std::vector<OperationKernel> every_operation(int64_t n);
std::vector<OperationKernel> every_cast(int64_t n);

/// Rows with two reductions, of which the second depends on the first.
Kernel rows_kernel(int64_t rows, int64_t columns, const char* type, const char* monoid);

}  // namespace tn::loop
