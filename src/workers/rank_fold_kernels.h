#pragma once
// The kernels behind workers/rank_fold.h, compiled once per CPU level.
#include "workers/rank_fold.h"

namespace tn::workers {

struct FoldLevel {
  void (*fold)(Fold kind, Element type, std::span<const void* const> in, std::span<void* const> out,
               int64_t count, bool streams);
};

}  // namespace tn::workers

namespace tn::v2 {
extern const workers::FoldLevel fold_level;
}
namespace tn::v3 {
extern const workers::FoldLevel fold_level;
}
namespace tn::v4 {
extern const workers::FoldLevel fold_level;
}
