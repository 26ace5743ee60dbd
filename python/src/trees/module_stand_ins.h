#pragma once
// Modules that stand for others: transformed functions get copies of those among their arguments.
#include "trees/trees.h"

namespace tn::python {

/// While it lives, the function that this thread calls has copies in place of `originals`: weak
/// references.
class StandIns {
 public:
  explicit StandIns(const Leaves& originals);
  ~StandIns();
  StandIns(const StandIns&) = delete;

  /// The original that is copied next, or None: it does not exist any more.
  nb::object next() { return (*next_++)(); }
  void add(nb::object original, nb::object copy);

 private:
  const nb::object* next_;
  size_t outer_;
};

}  // namespace tn::python
