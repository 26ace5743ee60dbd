// Chooses the kernels of this machine's CPU level.
#include "workers/rank_fold.h"

#include "runtime/cpu_level.h"
#include "workers/rank_fold_kernels.h"

namespace tn::workers {

void fold(Fold kind, Element type, std::span<const void* const> in, void* out, int64_t count) {
  at_level(v2::fold_level, v3::fold_level, v4::fold_level).fold(kind, type, in, out, count);
}

}  // namespace tn::workers
