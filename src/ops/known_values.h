#pragma once
// Values that an op needs at the time of the call: its result shape depends on them, or they must
// be validated.
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "runtime/buffer.h"
#include "tenon/tensor.h"

namespace tn::ops {

/// Whether a parameter of a trace is behind `x`.
bool is_unknown(const Tensor& x);

/// The elements of `x`, evaluated now. While tracing this fails, with an error that names `op` and
/// shows `hint`.
Tensor values_now(std::string_view op, const Tensor& x, const Hint& hint = {});

/// Whether `holds` is false for an element. It is computed now; while tracing it is not known, and
/// the answer is no.
bool is_known_false(const Tensor& holds);

/// Fails with `rule`, and the first element of `x` that breaks it, where `holds` is known to be
/// false for one.
void check_values(std::string_view op, std::string_view rule, const Tensor& x, const Tensor& holds);

/// The least and the largest of integers, computed now. Nothing while tracing, or where there are
/// none.
std::optional<std::pair<int64_t, int64_t>> known_ends(const Tensor& x);

/// Values that the host has found, as an operand of what is computed with them.
Tensor operand(BufferRef values, DType dtype, const Shape& shape);

}  // namespace tn::ops
