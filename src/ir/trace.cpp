#include "ir/trace.h"

#include "base/error.h"
#include "ir/emit.h"

namespace tn {

namespace ops {
extern const OpDef after;
}

static thread_local Trace* innermost = nullptr;

Trace* Trace::current() { return innermost; }

Trace::Trace(std::string_view name, Values known) : by(name), values(known), outer(innermost) {
  innermost = this;
  taping += values == Values::known;
}

void Trace::end() {
  if (ended_) return;
  ended_ = true;
  innermost = outer;
  taping -= values == Values::known;
}

Trace::~Trace() { end(); }

Tensors Trace::tied(Tensors results) const {
  if (effects.empty() || results.empty()) return results;
  Tensors in = {results[0]};
  in.insert(in.end(), effects.begin(), effects.end());
  results[0] = emit_all(ops::after, in, nullptr)[0];
  return results;
}

void fail_unknown_value() {
  const Trace* trace = innermost;
  while (trace && trace->values == Trace::Values::known) trace = trace->outer;
  if (!trace)
    fail(Hint{"return it from the function as a result instead"},
         "a tensor left the traced function it was made in: it stands for a value that was never "
         "known");
  fail(Hint{"use where, cond or while_loop for decisions, and tn.print to look at values"},
       "{}: a value was asked for inside the traced function, where it is not known yet",
       trace->by);
}

}  // namespace tn
