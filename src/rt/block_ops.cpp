// The interpreter of the runtime: at the level that every machine has, since it serves kernels that
// have no code. Its bits are those of the other levels.
#include "loop/interpreter_ops.h"

namespace tn::loop {

const BlockOps& block_ops(CpuLevel) {
  static const BlockOps ops = [] {
    BlockOps made;
    v2::fill_arithmetic(made), v2::fill_casts(made), v2::fill_math(made), v2::fill_runs(made);
    v2::fill_moves(made);
    return made;
  }();
  return ops;
}

}  // namespace tn::loop
