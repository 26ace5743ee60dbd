#pragma once
// Which instruction of the interpreter kernel an operation of LoopIR is.
#include <optional>

#include "backend/cuda/prebuilt/bytecode.h"
#include "ir/dtype.h"
#include "loop/op.h"

namespace tn::cuda {

/// How the elements of a type are held and computed with.
enum class NumberClass : uint8_t { i32, u32, i64, u64, f32, f64 };
/// Narrow floats are only moved: they are u32.
NumberClass class_of(DType type);
/// Of 8 and 16 bits among the integers: results are wrapped.
std::optional<bytecode::Small> small_of(DType type);
std::optional<bytecode::Narrow> narrow_of(DType type);

/// Of operands of a class; nothing where the interpreter has none.
std::optional<bytecode::Code> code_of(loop::Op op, NumberClass operands);
bool has_function(loop::Op op);  // of f32

bytecode::Code load_of(DType type);
bytecode::Code store_of(DType type);
bytecode::Code truth_of(NumberClass from);
/// From integers to floats and back, and between widths. Nothing: the bits stay.
std::optional<bytecode::Code> conversion(NumberClass from, NumberClass to);

}  // namespace tn::cuda
