#include "functions/trace_table.h"

namespace tn {

constinit thread_local int traces_under_way = 0;

Retrace reason_beside(const Compiled& nearest, std::vector<Difference> differences,
                      std::span<const TypeRef> types, const Callback<std::string(size_t)>& name,
                      const Callback<std::optional<Difference>()>& other) {
  Retrace why{.differences = std::move(differences), .call = current_loc};
  std::vector<Difference>& found = why.differences;
  std::vector<Binding> sizes;
  std::vector<SymbolPlace> places;
  add_symbols(nearest.pattern(), name, places);
  if (found.empty() && nearest.pattern().matches(types, sizes))
    if (auto broken = broken_guard(nearest.guards(), sizes, places)) found = {*broken};
  if (found.empty())
    if (auto broken = other()) found = {*broken};
  if (auto policy = other_policy(nearest.narrow())) found.push_back(*policy);
  if (auto products = other_products(nearest.products())) found.push_back(*products);
  if (auto device = other_device(nearest.made_at())) found.push_back(*device);
  if (found.empty()) found = {inside_another_trace()};
  why.reason = found[0].reason;
  return why;
}

}  // namespace tn
