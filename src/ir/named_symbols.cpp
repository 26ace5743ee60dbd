#include "ir/named_symbols.h"

namespace tn {

static thread_local NamedSymbols* innermost_symbols = nullptr;

NamedSymbols::NamedSymbols(std::vector<Dim> symbols)
    : symbols_(std::move(symbols)), outer_(innermost_symbols) {
  for (Dim symbol : symbols_) names_.push_back(symbol_name(symbol));
  innermost_symbols = this;
}

NamedSymbols::~NamedSymbols() { innermost_symbols = outer_; }

const Dim* NamedSymbols::find(std::string_view name) {
  for (const NamedSymbols* scope = innermost_symbols; scope; scope = scope->outer_)
    for (size_t i = 0; i < scope->names_.size(); ++i)
      if (scope->names_[i] == name) return &scope->symbols_[i];
  return nullptr;
}

}  // namespace tn
