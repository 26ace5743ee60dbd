#include <algorithm>

#include "base/error.h"
#include "ir/interned.h"
#include "ir/trace.h"
#include "ops/call.h"
#include "tenon/flat.h"
#include "transforms/tape.h"
#include "transforms/variants.h"

namespace tn::flat {

// The function is run once, on copies of the arguments and with values known, and what it recorded
// becomes a graph: a call of it keeps its operands only, and its derivative runs the graph again.
Function checkpoint(Function f, int segments) {
  if (segments < 1) fail("checkpoint: segments must be 1 or more: {}", segments);
  return [f = std::move(f), segments](const Tensors& args) -> Tensors {
    check_given(args, "checkpoint", "argument");
    bool traced =
        std::any_of(args.begin(), args.end(), [](const Tensor& t) { return t.node()->traced; });
    if (!taping && !traced) return f(args);
    uint64_t start = next_sequence();
    Trace trace("checkpoint", Trace::Values::known);
    Tensors copies;
    for (const Tensor& t : args) copies.push_back(taped_copy(t));
    Tensors out = f(copies);
    trace.end();
    check_given(out, "checkpoint", "result");
    if (out.empty()) return out;
    RecordScope interning;
    Captured body = capture(tape_since(start, copies, out), copies, out);
    Tensors in = args;
    in.insert(in.end(), body.leaves.begin(), body.leaves.end());
    GraphRef graph = without_effects(intern(std::move(body.graph)));  // they have happened
    if (segments > 1) return replay(in_segments(*graph, segments), in);
    return ops::emit_call(ops::CallKind::remat, graph, in);
  };
}

}  // namespace tn::flat
