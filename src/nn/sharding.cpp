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
  std::vector<std::pair<const Parameter*, Tensor>> made;  // all of them before any is replaced
  for (const Parameter& p : parameters) {
    auto found = std::ranges::find_if(specs, [&](auto& spec) { return fits(spec, p.name); });
    if (found == specs.end()) continue;
    ShardSpec spec = found->second;
    spec.is_parameter = true;
    try {
      made.emplace_back(&p, tn::shard(p.tensor, spec));  // which checks that it fits
    } catch (const UserError& error) {
      throw UserError(error.fault(), format("{}: {}", p.name, error.what()));
    }
  }
  for (auto& [p, tensor] : made) tensor.eval();
  for (auto& [p, tensor] : made) p->tensor = std::move(tensor);
}

}  // namespace tn::nn
