#pragma once
// Which outputs of a kernel may lie where an input does.
#include "loop/kernel.h"

namespace tn::loop {

/// The loads and stores of a kernel, prepared for queries about many pairs of buffers.
class Sharing {
 public:
  explicit Sharing(const Kernel& kernel);
  /// Whether buffer `output` may share the memory of buffer `input`, which is at least as large: no
  /// store overwrites an element that another point, or a later sweep over the points, loads.
  bool allows(int input, int output) const;

 private:
  static constexpr int kSeveral = -2;
  struct Access {
    int count = 0;
    PolyId index{};
    bool plain = true;       // stored once and for all, or always loaded from the same place
    int copies_to = kNone;   // loads: the buffer that one is stored to as it is, or kSeveral
    ValueId copied = kNone;  // the value stored there
    AxisSet axes = 0;
    int sweep = 0;  // stores: how many sweeps end before
  };
  const Kernel& kernel_;
  std::vector<Access> loads_, stores_;  // by buffer
  int last_reduction_ = 0;              // the sweep it belongs to
  AxisSet par_ = 0;                     // the parallel axes of more than one point
};

inline bool may_share(const Kernel& kernel, int input, int output) {
  return Sharing(kernel).allows(input, output);
}

}  // namespace tn::loop
