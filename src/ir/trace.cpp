#include "ir/trace.h"

#include "base/error.h"
#include "ir/emit.h"
#include "ir/watch.h"

namespace tn {

namespace ops {
extern const OpDef after;
}

static thread_local Trace* innermost = nullptr;

namespace {

/// Traces with known values by number: the number itself while the function runs, afterwards the
/// number of the trace around it. Places are used again, so an old one may be forgotten.
constexpr uint32_t kTapes = 4096;
std::atomic<uint64_t> tapes[kTapes];

void note_tape(uint32_t tape, uint32_t stands_for) {
  tapes[tape % kTapes].store(uint64_t{tape} << 32 | stands_for, std::memory_order_release);
}

}  // namespace

uint32_t running_tape(uint32_t tape) {
  while (tape) {
    uint64_t known = tapes[tape % kTapes].load(std::memory_order_acquire);
    if (known >> 32 != tape) return 0;
    if (static_cast<uint32_t>(known) == tape) return tape;
    tape = static_cast<uint32_t>(known);
  }
  return 0;
}

Trace* Trace::current() { return innermost; }

uint32_t Trace::tape_of_argument(uint32_t operand) {
  Trace* trace = innermost;
  while (trace && trace->values != Values::known) trace = trace->outer;
  invariant(trace != nullptr, "an argument is taped outside of any derivative");
  trace->tape_around_ = std::max(trace->tape_around_, operand);
  return trace->tape_;
}

void Trace::hold_by(const Tensor& param) {
  anchor = anchor.defined() ? tied({param}, {anchor})[0] : param;
}

Trace* Trace::tracing() {
  Trace* trace = innermost;
  while (trace && trace->values == Values::known) trace = trace->outer;
  return trace;
}

const Trace* Trace::compiling() {
  const Trace* trace = innermost;
  while (trace && trace->by != "compile") trace = trace->outer;
  return trace;
}

void Trace::perform(const Tensor& done) {
  if (Trace* trace = tracing())
    trace->effects.push_back(done);
  else
    done.eval();
}

Trace::Trace(std::string_view name, Values known) : by(name), values(known), outer(innermost) {
  if (outer) anchor = outer->anchor;
  innermost = this;
  raise_sequence();
  start = next_sequence();
  if (values != Values::known) return;
  static std::atomic<uint32_t> last{0};
  while (!(tape_ = last.fetch_add(1, std::memory_order_relaxed) + 1)) {
  }
  note_tape(tape_, tape_);
  ++taping;
}

void Trace::end() {
  if (ended_) return;
  ended_ = true;
  innermost = outer;
  // A gradient that is never computed would hold the leaf that holds it.
  for (const Tensor& leaf : leaves) exchange_gradient(*leaf.node(), {});
  if (values != Values::known) return;
  note_tape(tape_, tape_around_);
  --taping;
}

Trace::~Trace() { end(); }

Tensors tied(Tensors results, const Tensors& effects) {
  if (effects.empty() || results.empty()) return results;
  Tensors in = {results[0]};
  in.insert(in.end(), effects.begin(), effects.end());
  results[0] = emit_all(ops::after, in, nullptr)[0];
  return results;
}

void fail_unknown_value(Loc made) {
  ++unknown_values_asked;
  const Trace* trace = Trace::tracing();
  std::string where = to_text(made);
  if (!trace)
    fail(
        Hint{"return it from the function of vmap, scan or compile, or, of compile alone, name its "
             "container: compile(f, outputs=state)",
             "return it from the function of vmap, scan or compile, or, of compile alone, name its "
             "container: tn::compile(f, std::tie(state))"},
        "a tensor of a traced function was used after the trace ended{}{}: it has no value",
        where.empty() ? "" : ", at ", where);
  if (!place_of_current_call().empty()) where.clear();  // it says more
  fail(Hint{"use where, cond or while_loop for decisions, tn.print to print values, or return the "
            "tensor and read it outside",
            "use where, cond or while_loop for decisions, tn::print to print values, or return the "
            "tensor and read it outside"},
       "{}: cannot evaluate a tensor while tracing{}{}", trace->by,
       where.empty() ? "" : ": it was made at ", where);
}

}  // namespace tn
