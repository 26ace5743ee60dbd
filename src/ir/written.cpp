#include "ir/written.h"

namespace tn {

const HostScopes* host_scopes = nullptr;

Written written_at(Loc loc) {
  uint32_t scope = scope_of(loc);
  return scope && host_scopes ? host_scopes->written(scope) : Written{};
}

Loc within(Loc loc, std::string_view composite) {
  if (!loc.is_host() || !host_scopes) return loc;
  return in_scope(loc, host_scopes->within(scope_of(loc), composite));
}

}  // namespace tn
