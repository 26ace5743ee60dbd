#pragma once
// LoopNest: the loops of a kernel that reads values where they lie, by strides.
#include "ir/graph.h"
#include "ir/view.h"
#include "loop/builder.h"

namespace tn {

/// The axes of a domain, parallel ones first, neighbours merged where every access allows it.
class LoopNest {
 public:
  /// Axes of `domain` in `reduced` are folded, the others run in parallel. None is empty.
  LoopNest(const Shape& domain, const Axes& reduced);

  /// `v` is read at `at`, broadcast to the domain from the right.
  void add(Val v, const Strided& at);
  bool reads(Val v) const { return find(v) != nullptr; }

  /// Merges axes and adds the loops to `b`. Then the positions are known of what is read, and of
  /// results: row-major over the parallel axes.
  void build(loop::Builder& b);
  PolyId position(loop::Builder& b, Val v) const { return position(b, *find(v)); }
  PolyId result(loop::Builder& b) const { return position(b, result_); }
  loop::AxisSet reduced() const { return reduced_; }

 private:
  struct Loop {
    int64_t extent = 1;
    bool folded = false;
    int axis = 0;  // of the domain, until loops are merged
  };
  struct Access {
    Val v = kNoVal;
    int64_t offset = 0;
    SmallList<int64_t> strides = {};  // by loop
  };
  const Access* find(Val v) const;
  void remove(int loop);
  PolyId position(loop::Builder& b, const Access& access) const;

  Shape domain_;
  SmallList<Loop> loops_;
  SmallList<PolyId> axes_;  // by loop, once it is added
  std::vector<Access> accesses_;
  Access result_;
  loop::AxisSet reduced_ = 0;
};

}  // namespace tn
