#pragma once
// Scalar functions of LoopIR as expressions over whole arrays.
#include <span>

#include "backend/source/python_text.h"
#include "loop/kernel.h"

namespace tn::source {

/// "np", "torch", "jnp".
std::string_view module_of(std::string_view target);
/// The element type as the target names it: np.float32. One it does not have is an error.
std::string dtype_text(std::string_view target, DType type);
/// What the target computes with in the place of `type`: PyTorch has few operations on unsigned
/// integers, which are held in int64.
DType carrier(std::string_view target, DType type);

/// A number of `type`, without a type of its own.
Expression literal(std::string_view target, const Scalar& value, DType type);
/// The same as an array of `type`.
std::string typed(std::string_view target, const Expression& literal, DType type);

/// `x`, of type `from`, converted as the op astype does.
Expression cast_text(std::string_view target, const Expression& x, DType from, DType to);
Expression bitcast_text(std::string_view target, const Expression& x, DType from, DType to);

/// The operation `value` of operands of type `in`; complex ones too, where the target has them.
Expression operation(std::string_view target, const loop::Value& value, DType in,
                     std::span<const Expression> operands);
/// Whether `operation` takes complex numbers.
bool takes_complex(loop::Op op);

}  // namespace tn::source
