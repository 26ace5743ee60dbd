#pragma once
// Functions of complex numbers as pairs of scalars, for the complex rules of elementwise ops.
//
// Operands of f32 parts are computed in f64 and rounded once, so overflow and cancellation on the
// way do not matter to them; those of f64 parts use formulas that avoid both.
#include "loop/builder.h"

namespace tn::ops::cx {

using loop::S;
using loop::Z;

Z multiply(Z a, Z b);
Z divide(Z a, Z b);
Z reciprocal(Z z);
S abs(Z z);
Z sign(Z z);
Z sqrt(Z z);
Z exp(Z z);
Z expm1(Z z);
Z log(Z z);
/// The logarithm to another base: the natural one times `scale`.
Z log(Z z, double scale);
Z log1p(Z z);
Z pow(Z z, Z w);
Z sin(Z z);
Z cos(Z z);
Z tan(Z z);
Z sinh(Z z);
Z cosh(Z z);
Z tanh(Z z);
Z asin(Z z);
Z acos(Z z);
Z atan(Z z);
Z asinh(Z z);
Z acosh(Z z);
Z atanh(Z z);

}  // namespace tn::ops::cx
