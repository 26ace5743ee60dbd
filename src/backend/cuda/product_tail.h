#pragma once
// What comes after a product and cuBLASLt can do itself: a bias for each column, an activation.
#include <optional>

#include "loop/kernel.h"
#include "plan/plan.h"

namespace tn::cuda {

enum class Activation : uint8_t { none, relu, gelu_tanh };

/// result = activation(product + bias), element by element. Buffers are those of the kernel.
struct ProductTail {
  Activation activation = Activation::none;
  int32_t bias = -1;  // with one element for each column; -1: there is none
  int32_t result = 0;
};

/// Of a kernel over batch, rows and columns of a product, which is its buffer `product`. Nothing
/// where it does anything else. Conversions between float types on the way are passed over.
std::optional<ProductTail> tail_of(const loop::Kernel& kernel, int32_t product);
/// Of the kernel behind a library call, if it leaves its result in the place of the product: then
/// nothing else reads that.
std::optional<ProductTail> tail_of(const Step& step);

}  // namespace tn::cuda
