#pragma once
// What random ops share: checks of keys and shapes, numbers in [0, 1).
#include <optional>

#include "ops/shapes.h"

namespace tn::ops {

/// A key may have leading axes, of a batch.
void check_key(std::string_view op, const Tensor& key);
void check_one_key(std::string_view op, const Tensor& key);
/// `x` as `type`, when it broadcasts to `shape` without making it larger.
Tensor parameter(std::string_view op, std::string_view name, const Tensor& x, const Shape& shape,
                 DType type);
/// The number behind a 0-d constant, if it is one.
std::optional<Scalar> known_number(const Tensor& x);
bool is_number(const Tensor& x, double value);

/// The words of `n` new keys.
Tensors split_key(const Tensor& key, int64_t n);
/// Uniform in [0, 1): as many random bits as the mantissa of `type` holds. The leading axes of
/// `key` come before `shape`.
Tensor draw_unit(const Tensor& key, const Shape& shape, DType type);
/// Uniform in [low, high), at least `low`.
Tensor draw_between(const Tensor& key, const Shape& shape, DType type, const Tensor& low,
                    const Tensor& high);
/// Uniform in (-1, 1).
Tensor draw_symmetric(const Tensor& key, const Shape& shape, DType type);
/// Standard normal: sqrt(2)·erfinv of a uniform number in (-1, 1).
Tensor draw_normal(const Tensor& key, const Shape& shape, DType type);
/// -log(-log u).
Tensor draw_gumbel(const Tensor& key, const Shape& shape, DType type);

/// Called when a compiled function takes a key from the state of the thread, which makes it a
/// constant. It fails; a host language may set one that warns.
extern void (*on_frozen_key)();

}  // namespace tn::ops
