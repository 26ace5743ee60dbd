#pragma once
// Symbols by name: what names of sizes mean in texts that are read on this thread.
#include <string_view>
#include <vector>

#include "ir/dim.h"

namespace tn {

/// In force from construction to destruction; inner ones hide outer ones. Undeclared
/// names are symbols of the default bounds.
class NamedSymbols {
 public:
  explicit NamedSymbols(std::vector<Dim> symbols);
  ~NamedSymbols();
  NamedSymbols(const NamedSymbols&) = delete;

  /// The symbol of this name; nothing when none is declared.
  static const Dim* find(std::string_view name);

 private:
  std::vector<Dim> symbols_;
  std::vector<std::string> names_;
  NamedSymbols* const outer_;
};

}  // namespace tn
