#pragma once
// Costs of blocks, for summaries and drawings.
#include "model/infer.h"

namespace tn::model {

struct BlockCost {
  int64_t parameters = 0;       // elements of the parameters it reads first
  int64_t parameter_bytes = 0;  // of these
  int64_t bytes = 0;            // of what it writes
  double flops = 0;             // a multiplication and an addition are two
};

/// By block; open sizes are taken as `model.sizes` says.
std::vector<BlockCost> costs(const Resolved& model);

}  // namespace tn::model
