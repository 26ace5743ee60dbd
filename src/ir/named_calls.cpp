#include "ir/named_calls.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "ir/opdef.h"

namespace tn {

std::atomic<bool> calls_are_named = false;

namespace {

struct Interval {
  uint64_t first, last;
  const OpDef* op;
};

/// The latest calls of a thread, in order; half of them are forgotten when there are too many.
constexpr size_t kMost = 8192;
thread_local std::unique_ptr<std::vector<Interval>> calls;
thread_local const OpDef* outermost = nullptr;

}  // namespace

void NamedCall::begin(const OpDef& op) {
  if (outermost) return;
  outermost = &op, began_ = true;
  if (!calls) calls = std::make_unique<std::vector<Interval>>();
  if (calls->size() == kMost) calls->erase(calls->begin(), calls->begin() + kMost / 2);
  calls->push_back({next_sequence(), 0, &op});
}

void NamedCall::end() {
  outermost = nullptr;
  Interval& call = calls->back();
  call.last = next_sequence();
  if (call.last <= call.first + 2) calls->pop_back();  // one op: it has the name itself
}

CallName call_of(const Node& node) {
  if (!calls) return {};
  auto after = std::ranges::upper_bound(*calls, node.sequence, {}, &Interval::first);
  if (after == calls->begin()) return {};
  const Interval& call = *std::prev(after);
  return node.sequence < call.last ? CallName{call.first, call.op->name} : CallName{};
}

}  // namespace tn
