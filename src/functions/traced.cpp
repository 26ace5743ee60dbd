#include "functions/traced.h"

#include <algorithm>

#include "ir/interned.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "transforms/tape.h"

namespace tn {

bool is_watched(const Tensor& t) { return t.node()->traced || running_tape(t.node()->taped); }

/// A leaf is there as a variable's new value, not as a function of it.
static bool is_kept(const Tensor& t) { return (watch_bits(*t.node()) & (kKept | kLeaf)) == kKept; }

Traced trace(const Function& f, std::span<const TypeRef> types, std::span<const Binding> sizes) {
  LastingScope lasting;  // the graph is kept
  for (TypeRef type : types) make_lasting(type);
  // Its own, so that what a trace around asked before is asked here too: that one may be another
  // next time.
  SizeHints* around = SizeHints::current();
  std::vector<Binding> values = around ? around->values : std::vector<Binding>();
  values.insert(values.end(), sizes.begin(), sizes.end());
  SizeHints own(std::move(values));
  uint64_t start = next_sequence();
  Trace trace("compile", Trace::Values::unknown);
  Tensors params;
  for (TypeRef type : types) params.push_back(make_param(type));
  Tensors out = f(params);
  bool swept = !trace.leaves.empty();
  trace.end();
  check_given(out, "compile", "result");
  Traced made;
  made.results = out.size();
  for (const Tensor& t : out) made.leads.push_back(is_kept(t));
  made.differentiable = !swept && std::ranges::any_of(out, is_kept);
  out.insert(out.end(), trace.effects.begin(), trace.effects.end());
  Captured captured = capture(tape_since(start, params, out), params, out, Numbers::are_constants);
  made.graph = std::move(captured.graph);
  made.leaves = std::move(captured.leaves);
  made.kept = std::move(trace.kept);
  made.bound = std::ranges::any_of(made.leaves, is_watched);
  made.guards = std::move(own.guards);
  return made;
}

}  // namespace tn
