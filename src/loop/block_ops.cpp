#include "loop/interpreter_ops.h"

namespace tn::loop {

const BlockOps& block_ops(CpuLevel level) {
  auto make = [](auto... fill) {
    BlockOps ops;
    (fill(ops), ...);
    return ops;
  };
  if (level == CpuLevel::v4) {
    static const BlockOps ops =
        make(v4::fill_arithmetic, v4::fill_casts, v4::fill_math, v4::fill_runs, v4::fill_moves);
    return ops;
  }
  if (level == CpuLevel::v3) {
    static const BlockOps ops =
        make(v3::fill_arithmetic, v3::fill_casts, v3::fill_math, v3::fill_runs, v3::fill_moves);
    return ops;
  }
  static const BlockOps ops =
      make(v2::fill_arithmetic, v2::fill_casts, v2::fill_math, v2::fill_runs, v2::fill_moves);
  return ops;
}

// At load: a fork while another thread makes it would leave it half-made in the child.
[[maybe_unused]] static const BlockOps& ops_at_load = block_ops(best_cpu_level());

}  // namespace tn::loop
