#pragma once
// The layouts that signals give to the tensors of their regions.
#include "eval/key.h"
#include "eval/signals.h"
#include "ir/graph.h"

namespace tn {

/// What divides the tensors of a flush: the region's setting, that of TENON_AUTO_SHARD, or nothing.
const signal::Shard* shard_of(const SignalRegion* region);

/// Adds to the key what the layouts of a region depend on.
void add_layouts(FlushKey& key, const Walk& walk, const SignalRegion* region);

/// The graph of a walk with the layouts of its region: of what is made there, and of data that
/// enters it. Parameters stay as they are.
Graph with_layouts(Graph graph, const Walk& walk, const SignalRegion* region);

/// `x` as a setting says, if it lies on a mesh and has room.
Tensor as_said(const Tensor& x, const signal::Shard& shard);

}  // namespace tn
