#pragma once
// Models whose parameters are divided among workers.
#include <string>
#include <utility>
#include <vector>

#include "tenon/mesh.h"
#include "tenon/nn/parameters.h"

namespace tn::nn {

/// Divides parameters among the workers of the mesh, by patterns of their names. The first pattern
/// that fits a name decides; other parameters stay whole.
///
///     tn::nn::shard(model.parameters(), {{"*.down.weight", {"", "model"}}});
///     tn::nn::shard(model.parameters(), {{"*", tn::stored("data")}});
void shard(const Parameters& parameters,
           const std::vector<std::pair<std::string, ShardSpec>>& specs);

}  // namespace tn::nn
