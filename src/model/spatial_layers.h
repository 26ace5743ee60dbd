#pragma once
// The layers of tenon/model_blocks.h that are named by their number of spatial axes, 1 to 3.
#include "tenon/model_blocks.h"

namespace tn::model {

Block adaptive_avg_pool_block(int axes, const Ints& output_size);

}  // namespace tn::model
