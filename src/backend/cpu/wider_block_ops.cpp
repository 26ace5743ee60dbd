#include "backend/cpu/block_op_levels.h"

namespace tn::cpu {

extern const loop::BlockOps& (*wider_block_ops)(CpuLevel level);

static const loop::BlockOps& ops_above_v2(CpuLevel level) {
  auto make = [](auto... fill) {
    loop::BlockOps ops;
    (fill(ops), ...);
    return ops;
  };
  if (level == CpuLevel::v4) {
    static const loop::BlockOps ops =
        make(v4::fill_arithmetic, v4::fill_casts, v4::fill_math, v4::fill_runs, v4::fill_moves);
    return ops;
  }
  static const loop::BlockOps ops =
      make(v3::fill_arithmetic, v3::fill_casts, v3::fill_math, v3::fill_runs, v3::fill_moves);
  return ops;
}

void use_wider_block_ops() {
  wider_block_ops = ops_above_v2;
  loop::block_ops = []() -> const loop::BlockOps& { return block_ops(cpu_level()); };
}

}  // namespace tn::cpu
