#pragma once
// Accesses of a kernel under construction: strided reads and writes over one domain, and the loops
// they leave.
#include "ir/view.h"
#include "loop/builder.h"

namespace tn {

/// The loops of a kernel: the domain's axes, parallel ones first, neighbours merged where every
/// access allows it.
class LoopNest {
 public:
  /// Axes of `domain` in `reduced` are folded, the others run in parallel.
  LoopNest(const Shape& domain, const Axes& reduced);

  /// Adds an access, broadcast to the domain from the right. Returns its number.
  int add(const Strided& access);
  /// A write of the result: row-major over the parallel axes.
  int add_result();

  /// Merges axes and adds the loops to `b`. Afterwards `index` gives the position of an access.
  void build(loop::Builder& b);
  PolyId index(loop::Builder& b, int access, int64_t element_scale = 1, int64_t plus = 0) const;
  loop::AxisSet reduced() const { return reduced_; }

 private:
  struct Loop {
    int64_t extent;
    bool folded;
  };
  std::vector<Loop> loops_;
  std::vector<int> axis_of_;  // loop → axis of the domain
  Shape domain_;
  std::vector<int64_t> offsets_;
  std::vector<std::vector<int64_t>> strides_;  // by access, by loop
  std::vector<PolyId> axes_;
  loop::AxisSet reduced_ = 0;
};

}  // namespace tn
