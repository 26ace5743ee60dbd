#pragma once
// Checksums of parts of the weights: a worker verifies what it holds, and reads nothing else.
#include <span>

#include "storage/tnx.h"

namespace tn::tnx {

/// Bytes of the section of weights.
struct WeightRange {
  uint64_t place, bytes;
};

/// Compares the checksums of the blocks that these ranges touch; of the whole file where blocks
/// have none. Fails as File::verify.
void verify_weights(const File& file, std::span<const WeightRange> ranges);

}  // namespace tn::tnx
