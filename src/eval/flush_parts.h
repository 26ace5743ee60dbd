#pragma once
// The parts of a flush: regions with a plan of their own are computed one by one, in the order in
// which they were recorded; what is between them, with what is around.
#include "eval/signals.h"
#include "tenon/hot_paths.h"

namespace tn {

struct FlushPart {
  Tensors wanted;  // what other parts, or others, need of it; empty: what is left in the end
  RegionRef region;
};

std::vector<FlushPart> parts_of(std::span<const Tensor> wanted);

/// What holds in a region, or (null) outside of all.
HotPathPolicy policy_in(const SignalRegion* region);

}  // namespace tn
