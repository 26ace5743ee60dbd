#pragma once
// How a language writes ops: functions that give text, in tables keyed by op.
#include "base/error.h"
#include "ir/opdef.h"

namespace tn::source {

/// A function (const Attrs&, Call&), or (Call&) alone, without its types.
template <class Call>
struct Spelling {
  std::string (*write)(const void* attrs, Call& call);
  const AttrKind* reads = nullptr;  // null: no attributes
};
template <class Call>
using SpelledOp = std::pair<const OpDef*, Spelling<Call>>;

template <auto kWrite, class A, class Call>
constexpr Spelling<Call> spelling_by(std::string (*)(const A&, Call&)) {
  return {[](const void* a, Call& call) { return kWrite(*static_cast<const A*>(a), call); },
          &attr_kind<A>};
}
template <auto kWrite, class Call>
constexpr Spelling<Call> spelling_by(std::string (*)(Call&)) {
  return {[](const void*, Call& call) { return kWrite(call); }};
}
/// As a table has it: `{&ops::dot, by<c_of_dot>}`.
template <auto kWrite>
inline constexpr auto by = spelling_by<kWrite>(kWrite);

/// Null for an op that is not in the table.
template <class Call>
const Spelling<Call>* find_spelling(std::span<const SpelledOp<Call>> table, const OpDef& op) {
  for (const auto& [spelled, spelling] : table) {
    if (spelled != &op) continue;
    if (!spelling.reads || spelling.reads == op.attrs) return &spelling;
    throw_internal(format("source: {} has other attributes than its spelling reads", op.name));
  }
  return nullptr;
}

}  // namespace tn::source
