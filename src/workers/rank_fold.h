#pragma once
// Sums, maxima and minima of the operands of several workers, in a fixed order.
#include <cstdint>
#include <span>

#include "runtime/element_kind.h"
#include "runtime/transport.h"

namespace tn::workers {

/// out[i] = the fold of in[0][i], in[1][i], …: the left half is folded, then the right half, then
/// both, where the left half has the largest power of two below the number of operands.
void fold(Fold kind, Element type, std::span<const void* const> in, void* out, int64_t count);

}  // namespace tn::workers
