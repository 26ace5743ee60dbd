#pragma once
// Size hints: while a function is traced with symbolic sizes, the values that the symbols have in
// the call it is traced for.
//
// A condition on sizes that does not have the same answer for all values of the symbols is decided
// by the hints. The answer is kept as a guard: the trace serves calls for which it holds.
#include <string>
#include <vector>

#include "ir/dim.h"
#include "ir/place.h"
#include "tenon/shape.h"

namespace tn {

/// An assumption about sizes, and where it was made.
struct SizeGuard {
  enum class Kind : uint8_t { equal, at_least };  // a == b, a >= b
  Kind kind;
  Dim a, b;
  bool holds;  // false: the opposite was found
  Loc loc;
};

/// "s0 == 4", "s0 < 3".
std::string to_text(const SizeGuard& guard);
bool holds(const SizeGuard& guard, std::span<const Binding> sizes);

/// In force on this thread from construction to destruction; they nest.
class SizeHints {
 public:
  explicit SizeHints(std::vector<Binding> values);
  ~SizeHints();
  SizeHints(const SizeHints&) = delete;

  const std::vector<Binding> values;
  std::vector<SizeGuard> guards;

  static SizeHints* current();

 private:
  SizeHints* const outer_;
};

/// Whether a == b, and whether a >= b. Without hints, what is not known is false.
bool decide_equal(Dim a, Dim b);
bool decide_equal(const Shape& a, const Shape& b);
bool decide_at_least(Dim a, Dim b);
bool decide_at_least(Offset a, Offset b);
/// Whether `k` divides a.
bool decide_divides(Dim k, Dim a);
/// The smaller and the larger, decided.
Dim decide_min(Dim a, Dim b);
Dim decide_max(Dim a, Dim b);
/// Asks what was asked before, for the trace under way to note.
void ask_again(std::span<const SizeGuard> guards);

/// Guards that say what a symbol is, as replacements; the others stay. Each is put into the ones
/// after it.
struct Solved {
  std::vector<Replacement> replacements;
  std::vector<SizeGuard> rest;
};
Solved solve(std::span<const SizeGuard> guards);

}  // namespace tn
