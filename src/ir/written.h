#pragma once
// Names for kernels from the user's code: the module and the function that an op was called in.
//
// A place of a host language (Loc::host) has room for a number beside its id: a scope, which the
// host's binding interns. Zero is no scope. Places in C++ have none.
#include <string>
#include <string_view>

#include "ir/place.h"

namespace tn {

/// The path of the module that was called ("blocks[0].attn") and the composite that an op is a part
/// of ("softmax"). Either may be empty.
struct Written {
  std::string path, composite;
};

/// Set by a host language's binding. Any thread may call it.
struct HostScopes {
  Written (*written)(uint32_t scope);
  /// The scope of the parts of a composite that was called in `scope`.
  uint32_t (*within)(uint32_t scope, std::string_view composite);
};
extern const HostScopes* host_scopes;

constexpr int kScopeShift = 1 + Loc::kIdBits;
inline uint32_t scope_of(Loc loc) {
  return loc.is_host() ? static_cast<uint32_t>(loc.place() >> kScopeShift) : 0;
}
inline Loc in_scope(Loc host, uint32_t scope) {
  return {Loc::host(host.host_id()).bits | uint64_t{scope} << kScopeShift};
}

Written written_at(Loc loc);
/// The place of the parts of a composite that was called at `loc`.
Loc within(Loc loc, std::string_view composite);

}  // namespace tn
