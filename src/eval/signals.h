#pragma once
// Signals in force: the regions that flushes compute on their own.
#include "ir/region.h"
#include "tenon/signal.h"

namespace tn {

/// A passage through a context of which the configuration says something.
class SignalRegion final : public Region {
 public:
  std::string name;                        // of the signal that says whether it is compiled
  std::optional<signal::Compile> compile;  // nothing: as the process
  std::optional<signal::Shard> shard;      // how what is made or enters here is divided
  uint64_t plan = 0;  // passages with a number are computed on their own; 0: with what is around
  uint64_t settings = 0;  // differs for what was loaded at different times; 0: without `compile`
  std::string backward;   // the signal of its derivatives; "": not said

  bool has_mode(std::string_view mode) const { return compile && compile->mode == mode; }
  RegionRef of_derivatives() const override;
};
inline const SignalRegion* as_signal(const RegionRef& region) {
  return static_cast<const SignalRegion*>(region.get());  // there are no others
}

/// Warnings about the configuration, a line each, to be shown once.
std::vector<std::string> take_signal_notes();

}  // namespace tn
