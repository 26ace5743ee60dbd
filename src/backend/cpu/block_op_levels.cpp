#include "backend/cpu/block_op_levels.h"

namespace tn::cpu {

// Null: there are none.
const loop::BlockOps& (*wider_block_ops)(CpuLevel level) = nullptr;

const loop::BlockOps& block_ops(CpuLevel level) {
  if (level > CpuLevel::v2 && wider_block_ops) return wider_block_ops(level);
  return loop::baseline_block_ops();
}

// At load: a fork while another thread makes it would leave it half-made in the child.
[[maybe_unused]] static const loop::BlockOps& ops_at_load = block_ops(best_cpu_level());

}  // namespace tn::cpu
