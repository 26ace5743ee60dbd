#pragma once
// Regions: which part of a program a node was recorded in. Nodes store no region: they are numbered
// in order on each thread, so a region is a few intervals of numbers. Programs without regions pay
// nothing.
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "ir/node.h"

namespace tn {

class Region;
using RegionRef = std::shared_ptr<const Region>;

/// One passage through a part of the program.
class Region {
 public:
  virtual ~Region() = default;
  /// The region of its derivatives; null: they are where they are recorded.
  virtual RegionRef of_derivatives() const = 0;
};

/// Whether this process ever entered one.
extern std::atomic<bool> regions_are_used;

/// That of this thread, or null.
const RegionRef& current_region();
/// What is recorded on this thread from here on is in `region`. Returns the former one.
RegionRef exchange_region(RegionRef region);
/// In which each was recorded, or null. Only the latest few thousand passages are known.
std::vector<RegionRef> regions_of(std::span<Node* const> nodes);

/// Threads number nodes in blocks of this size. Once there are regions, this is called with the
/// first number of a block when it is taken, on the thread that takes it.
inline constexpr uint64_t kSequenceBlock = 1024;
extern std::atomic<void (*)(uint64_t first)> sequence_block_taken;

/// Follows a walk from users to operands: what is recorded is in the regions of the derivatives of
/// the nodes met. Back to where it was when destroyed.
class RegionsOfDerivatives {
 public:
  RegionsOfDerivatives() : outer_(current_region()) {}
  ~RegionsOfDerivatives();
  RegionsOfDerivatives(const RegionsOfDerivatives&) = delete;
  void meet(Node& node) {
    if (regions_are_used.load(std::memory_order_relaxed)) move_to(node);
  }

 private:
  void move_to(Node& node);
  const RegionRef outer_;
  std::vector<std::pair<RegionRef, RegionRef>> known_;  // a region and that of its derivatives
};

}  // namespace tn
