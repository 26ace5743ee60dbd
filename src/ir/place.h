#pragma once
// Where the user made a call: cheap to capture, resolved to file and line only for messages.
#include <bit>
#include <cstdint>
#include <source_location>
#include <string>

namespace tn {

/// A place in C++ (the source_location itself) or in a host language (an id the host resolves), in
/// 48 bits. The other 16 are a mark, which tells ops apart that were recorded at one place.
struct Loc {
  static constexpr int kPlaceBits = 48, kIdBits = 24;
  static constexpr uint64_t kMarks = 0xffff;  // how many there are, besides none

  uint64_t bits = 0;
  static Loc of(const std::source_location& at) { return {std::bit_cast<uint64_t>(at)}; }
  static Loc host(uint32_t id) { return {uint64_t{id} << 1 | 1}; }
  bool is_host() const { return bits & 1; }
  uint32_t host_id() const {
    return static_cast<uint32_t>(bits >> 1 & ((uint64_t{1} << kIdBits) - 1));
  }
  explicit operator bool() const { return place() != 0; }

  uint64_t place() const { return bits & ((uint64_t{1} << kPlaceBits) - 1); }
  /// 0: none.
  uint64_t mark() const { return bits >> kPlaceBits; }
  /// With the mark of a number. Numbers that differ by a multiple of kMarks share one.
  Loc marked(uint64_t number) const { return {place() | (number % kMarks + 1) << kPlaceBits}; }
};
static_assert(sizeof(std::source_location) == 8, "a place fits a word");

struct Place {
  std::string file, function;
  int line = 0;
};

/// Set by a host language's binding: resolves the ids it made.
extern Place (*resolve_host_place)(uint32_t id);

Place resolve(Loc loc);
/// "train.py:31, in loss", or "" when unknown.
std::string to_text(Loc loc);

std::string place_of_current_call();
/// Whether the call being served was made in C++. A process without a host language has no others.
bool is_current_call_cpp();

/// The place of the call being served on this thread: the outermost one, so that what an op does
/// inside is the user's.
inline thread_local Loc current_loc;

class LocScope {
 public:
  explicit LocScope(const std::source_location& at) : outer_(current_loc) {
    if (!outer_) current_loc = Loc::of(at);
  }
  explicit LocScope(Loc loc) : outer_(current_loc) {
    if (!outer_) current_loc = loc;
  }
  ~LocScope() { current_loc = outer_; }
  LocScope(const LocScope&) = delete;

 private:
  Loc outer_;
};

}  // namespace tn
