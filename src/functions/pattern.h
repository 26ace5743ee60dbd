#pragma once
// Patterns: the types of a function's tensor arguments, with symbols for sizes that vary.
#include "ir/sizes.h"
#include "ir/type.h"

namespace tn {

struct Pattern {
  std::vector<TypeRef> types;
  std::vector<Dim> symbols;  // each once, in the order they appear

  /// Whether tensors of these types are served; then `sizes` has the values of the symbols. The
  /// last types may be left out where they are known to be right and without symbols.
  bool matches(std::span<const TypeRef> actual, std::vector<Binding>& sizes) const;
};

/// Without symbols.
Pattern exact_pattern(std::span<const TypeRef> actual);
/// With a symbol for every size; those that are 0 stay.
Pattern shapeless_pattern(std::span<const TypeRef> actual);
/// One that serves what `known` does and `actual` too: sizes that differ become symbols, the same
/// one where both sides are the same. Nothing when element types, devices or ranks differ.
std::optional<Pattern> generalised(const Pattern& known, std::span<const TypeRef> actual);
/// After guards said what some symbols are.
Pattern substituted(const Pattern& pattern, std::span<const Replacement> replacements);

}  // namespace tn
