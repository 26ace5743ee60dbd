#include "loop/interpreter_ops.h"

namespace tn::loop {

const BlockOps& block_ops_of_wide_levels(CpuLevel level) {
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
  static const BlockOps ops =
      make(v3::fill_arithmetic, v3::fill_casts, v3::fill_math, v3::fill_runs, v3::fill_moves);
  return ops;
}

}  // namespace tn::loop
