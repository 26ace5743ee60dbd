#pragma once
// Hot paths: sequences of ops that run often are compiled automatically, in the background.
//
//     tn::set_auto_compile(true);  // or TENON_AUTO_COMPILE=1 in the environment
//     for (const tn::HotPathInfo& path : tn::hot_paths()) ...
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tn {

/// When ops outside of compiled functions are compiled.
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

/// The policy of the process. TENON_COMPILE, TENON_AUTO_COMPILE and TENON_HOTPATH_THRESHOLD set its
/// initial value.
HotPathPolicy hot_path_policy();
/// Returns the former one.
HotPathPolicy set_hot_path_policy(const HotPathPolicy& policy);
/// Whether sequences of ops that were run `threshold` times are compiled. Returns what held before.
HotPathPolicy set_auto_compile(bool enabled, int64_t threshold = 10);

enum class HotPathStatus : uint8_t {
  cold,
  queued,
  compiling,
  trial,    // compiled, being measured
  kept,     // compiled and faster
  dropped,  // compiled and not faster
  failed,   // the interpreter goes on
  capped,   // not compiled: one of too many
};
std::string_view name_of(HotPathStatus status);

/// A sequence of ops that was evaluated together.
struct HotPathInfo {
  uint64_t hash = 0;
  std::string sequence;  // "matmul -> relu -> sum"
  int64_t count = 0;     // how often it was run
  HotPathStatus status = HotPathStatus::cold;
  double interpreted_ms = 0, compiled_ms = 0, compile_ms = 0;  // 0: not measured
  std::string reason;                                          // of a failure, a cap, a drop
  std::string region;  // the signal that says when it is compiled: see signal.h; "": the process

  /// How many times faster compiled code is, as measured; 0: not known.
  double speedup() const {
    return interpreted_ms > 0 && compiled_ms > 0 ? interpreted_ms / compiled_ms : 0;
  }
};
/// The first 12 hexadecimal digits of the hash: they stand for a sequence in logs.
std::string short_hash(uint64_t hash);
/// "Sequence hash: ...", "Execution count: ...", "Status: ...", a line each.
std::string to_text(const HotPathInfo& path);

/// Those that are known, the most frequent first. A sequence is known while its plan is kept.
std::vector<HotPathInfo> hot_paths();

}  // namespace tn
