#pragma once
// Sizes as functions of the values of symbols: small postfix programs, which files can hold.
#include <cstdint>
#include <span>
#include <vector>

namespace tn {

struct SizeStep {
  enum class Kind : uint8_t { constant, symbol, add, mul, div, mod, min, max };
  Kind kind = Kind::constant;
  int64_t number = 0;  // constant: itself; symbol: its place among the values
  friend bool operator==(const SizeStep&, const SizeStep&) = default;
};

struct SizeProgram {
  std::vector<SizeStep> steps;

  SizeProgram() = default;
  explicit SizeProgram(int64_t constant) : steps{{SizeStep::Kind::constant, constant}} {}

  /// The value where symbol k has value symbols[k].
  int64_t at(std::span<const int64_t> symbols) const;
  /// Whether `at` can run it over this many symbols; what comes from a file is asked first.
  bool is_sound(size_t symbols) const;
  friend bool operator==(const SizeProgram&, const SizeProgram&) = default;
};

}  // namespace tn
