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

/// The same into every `out`, each of which may be the operand of the same place. `all` are the
/// bytes of the results that these are parts of: large ones bypass the caches.
void fold_to_all(Fold kind, Element type, std::span<const void* const> in,
                 std::span<void* const> out, int64_t count, int64_t all);

/// Copies past the caches to memory that is read much later. Other threads may read it when this
/// one has called `end_streaming`.
void stream_copy(void* to, const void* from, size_t bytes);
void end_streaming();

/// Results from this size on do not stay in the caches.
inline constexpr int64_t kStreamBytes = int64_t{8} << 20;

}  // namespace tn::workers
