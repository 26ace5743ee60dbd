#include "loop/interpreter_ops.h"

namespace tn::loop {

const BlockOps& baseline_block_ops() {
  static const BlockOps ops = [] {
    BlockOps made;
    v2::fill_arithmetic(made), v2::fill_casts(made), v2::fill_math(made), v2::fill_runs(made);
    v2::fill_moves(made);
    return made;
  }();
  return ops;
}

const BlockOps& (*block_ops)() = baseline_block_ops;

// At load: a fork while another thread makes it would leave it half-made in the child.
[[maybe_unused]] static const BlockOps& ops_at_load = baseline_block_ops();

}  // namespace tn::loop
