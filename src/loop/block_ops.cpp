#include "loop/interpreter_ops.h"

namespace tn::loop {

const BlockOps& (*wider_block_ops)(CpuLevel level) = nullptr;

const BlockOps& block_ops(CpuLevel level) {
  if (level > CpuLevel::v2 && wider_block_ops) return wider_block_ops(level);
  static const BlockOps ops = [] {
    BlockOps made;
    v2::fill_arithmetic(made), v2::fill_casts(made), v2::fill_math(made), v2::fill_runs(made);
    v2::fill_moves(made);
    return made;
  }();
  return ops;
}

// At load: a fork while another thread makes it would leave it half-made in the child.
[[maybe_unused]] static const BlockOps& ops_at_load = block_ops(best_cpu_level());

}  // namespace tn::loop
