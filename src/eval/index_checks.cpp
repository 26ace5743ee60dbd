#include "eval/index_checks.h"

#include <cstdlib>

#include "base/error.h"
#include "eval/op_by_op.h"
#include "ir/named_calls.h"
#include "ir/place.h"
#include "tenon/debug.h"

namespace tn {

static bool checked_at_start() {
  const char* text = std::getenv("TENON_DEBUG_INDICES");
  std::string_view wanted = text ? text : "";
  return !wanted.empty() && wanted != "0";
}

std::atomic<bool> compiled_indices_are_checked = checked_at_start();

bool debug_indices(bool checked) { return compiled_indices_are_checked.exchange(checked); }

namespace {

/// Where negative indices count from the end, a selection adds the extent to them: one that is
/// still negative was less by that.
int64_t index_as_given(const OpByOp& ops, const GraphOp& op, const ops::OutOfBounds& error) {
  std::span<const Val> in = ops.graph().in(op);
  if (error.index >= 0 || op.op->family == Family::composite || in.size() < error.from_last)
    return error.index;
  const GraphOp* made_by = ops.maker(in[in.size() - error.from_last]);
  while (made_by && made_by->op->view) made_by = ops.maker(ops.graph().in(*made_by)[0]);
  bool wrapped = made_by && made_by->op->operands == Operands::select;
  return wrapped ? error.index - error.extent : error.index;
}

/// The place of another call for errors.
class PlaceOf {
 public:
  explicit PlaceOf(Loc loc) : before_(current_loc) {
    if (loc) current_loc = loc;
  }
  ~PlaceOf() { current_loc = before_; }
  PlaceOf(const PlaceOf&) = delete;

 private:
  Loc before_;
};

}  // namespace

void fail_out_of_bounds(const CheckedRun& run, const ops::OutOfBounds& error,
                        const CallNames& names) {
  OpByOp ops(run);
  IndexChecks checked;
  for (size_t n = 0; n < ops.graph().ops.size(); ++n) {
    const GraphOp& op = ops.graph().ops[n];
    try {
      ops.compute(n);
    } catch (const ops::OutOfBounds& found) {
      PlaceOf called(op.loc);
      auto named = names.find(op.loc.bits);
      std::string_view name = named == names.end() ? op.op->name : named->second;
      try {
        fail(Fault::index, "{}: {} {}", name, index_as_given(ops, op, found), found.fact);
      } catch (const UserError& with_place) {
        throw RecordedError(with_place.fault(), with_place.what());
      }
    }
    ops.release_operands(n);
  }
  throw error;
}

}  // namespace tn
