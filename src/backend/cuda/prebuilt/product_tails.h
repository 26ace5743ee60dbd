#pragma once
// What a kernel of a product does with its results before it stores them, for device code and for
// the host that reads it from the kernel behind the product (tail_program.h).

constexpr int kTailLoads = 3, kTailSteps = 6;

/// A tensor of float32 with an element for each result, row or column, or with one element.
struct TailLoad {
  const float* first;
  long long row, column;  // strides
};

/// An operation on `x`, which is the result at first, or on a second number `y` beside it. `o` is
/// the operand.
enum TailOp {
  kTailSet,           // o
  kTailAdd,           // x + o
  kTailMultiply,      // x * o
  kTailSubtract,      // x - o
  kTailSubtractFrom,  // o - x
  kTailLargest,       // x if it is NaN or larger, else o
  kTailKeepAbove,     // x where y > least, else o
};
/// Operands but for loads, which come first.
enum TailOperand { kTailNumber = kTailLoads, kTailBeside };
struct TailStep {
  int op, operand;
  int is_beside;  // on y
  float number, least;
};

/// Results go to `out`; those of the product itself too where `keeps_product`. Null: no tail.
struct TailProgram {
  float* out;
  int keeps_product, loads, steps;
  TailLoad load[kTailLoads];
  TailStep step[kTailSteps];
};

/// Kernels whose threads have more results have no registers for it.
constexpr int kTailMostResults = 4;
