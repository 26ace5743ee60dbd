#include "ir/named_calls.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "ir/opdef.h"

namespace tn {

std::string_view user_name(const OpDef& op) {
  constexpr std::string_view kTorch = "torch.";
  for (std::string_view alias : op.rules->aliases)
    if (alias.starts_with(kTorch)) return alias.substr(kTorch.size());
  return op.name;
}

namespace {

struct Interval {
  uint64_t first, last;
  std::string_view name;
};

/// The latest calls of a thread, in order; half of them are forgotten when there are too many.
constexpr size_t kMost = 8192;
thread_local std::unique_ptr<std::vector<Interval>> calls;
thread_local bool is_expanding = false;

}  // namespace

NamedCall::NamedCall(std::string_view name) {
  if (is_expanding) return;
  is_expanding = began_ = true;
  if (!calls) calls = std::make_unique<std::vector<Interval>>();
  if (calls->size() == kMost) calls->erase(calls->begin(), calls->begin() + kMost / 2);
  calls->push_back({next_sequence(), 0, name});
}

void NamedCall::end() {
  is_expanding = false;
  Interval& call = calls->back();
  call.last = next_sequence();
  if (call.last == call.first + 1) calls->pop_back();  // it recorded nothing
}

CallName call_of(const Node& node) {
  if (!calls) return {};
  auto after = std::ranges::upper_bound(*calls, node.sequence, {}, &Interval::first);
  if (after == calls->begin()) return {};
  const Interval& call = *std::prev(after);
  return node.sequence < call.last ? CallName{call.first, call.name} : CallName{};
}

}  // namespace tn
