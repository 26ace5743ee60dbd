#pragma once
// Hot paths: repeated computations are compiled automatically, in the background.
//
//     tn::set_auto_compile(true);  // or TENON_AUTO_COMPILE=1 in the environment
//     for (const tn::HotPathInfo& path : tn::hot_paths()) ...
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tn {

/// When code outside compiled functions is compiled.
struct HotPathPolicy {
  enum class When : uint8_t {
    never,
    hot,    // after `threshold` runs, in the background
    always  // before the first run
  };
  When when = When::never;
  int64_t threshold = 10;
  friend bool operator==(const HotPathPolicy&, const HotPathPolicy&) = default;
};

/// The policy of the process, initialised from TENON_COMPILE, TENON_AUTO_COMPILE and
/// TENON_HOTPATH_THRESHOLD.
HotPathPolicy hot_path_policy();
/// Returns the previous policy.
HotPathPolicy set_hot_path_policy(const HotPathPolicy& policy);
/// Enables or disables compiling sequences of ops after `threshold` runs. Returns the old policy.
HotPathPolicy set_auto_compile(bool enabled, int64_t threshold = 10);

enum class HotPathStatus : uint8_t {
  cold,
  queued,
  compiling,
  trial,    // compiled, being measured
  kept,     // compiled and faster
  dropped,  // compiled and not faster
  failed,   // the interpreter still runs it
  capped,   // not compiled: one of too many
};
std::string_view name_of(HotPathStatus status);

/// A sequence of ops that is evaluated together.
struct HotPathInfo {
  uint64_t hash = 0;
  std::string sequence;  // "matmul -> relu -> sum"
  int64_t count = 0;     // number of runs
  HotPathStatus status = HotPathStatus::cold;
  double interpreted_ms = 0, compiled_ms = 0, compile_ms = 0;  // 0: not measured
  std::string reason;                                          // of a failure, a cap, a drop
  std::string region;  // the signal that configures it, see signal.h; "": the process

  /// The measured speed-up of compiled code; 0: unknown.
  double speedup() const {
    return interpreted_ms > 0 && compiled_ms > 0 ? interpreted_ms / compiled_ms : 0;
  }
};
/// The first 12 hexadecimal digits of the hash, which identify a sequence in logs.
std::string short_hash(uint64_t hash);
/// "Sequence hash: ...", "Execution count: ...", "Status: ...", one line each.
std::string to_text(const HotPathInfo& path);

/// The known sequences, the most frequent first. A sequence is known while its plan is cached.
std::vector<HotPathInfo> hot_paths();

}  // namespace tn
