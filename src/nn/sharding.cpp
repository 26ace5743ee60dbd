#include "tenon/nn/sharding.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/error.h"

namespace tn::nn {

void shard(const Parameters& parameters,
           const std::vector<std::pair<std::string, ShardSpec>>& specs) {
  auto fits = [](const auto& spec, const std::string& name) {
    return fnmatch(spec.first.c_str(), name.c_str(), 0) == 0;
  };
  for (const auto& spec : specs)
    if (std::ranges::none_of(parameters, [&](const Parameter& p) { return fits(spec, p.name); }))
      fail("nn.shard: no parameter is called '{}'", spec.first);
  for (const Parameter& p : parameters) {
    auto found = std::ranges::find_if(specs, [&](auto& spec) { return fits(spec, p.name); });
    if (found == specs.end()) continue;
    ShardSpec spec = found->second;
    spec.is_parameter = true;
    p.tensor = tn::shard(p.tensor, spec).eval();
  }
}

}  // namespace tn::nn
