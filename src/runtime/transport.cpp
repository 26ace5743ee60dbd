#include "runtime/transport.h"

namespace tn::workers {

std::string_view name_of(Collective kind) {
  constexpr std::string_view kNames[] = {"barrier",    "all_reduce", "all_gather", "reduce_scatter",
                                         "all_to_all", "broadcast",  "send",       "recv"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace tn::workers
