#pragma once
// The order in which parts of a graph run, where devices work beside each other.
//
// The order is that of a run in which every device begins a part as soon as it can. Times are
// guesses that every process makes alike: a part takes as long as it has ops, or no time if it only
// goes on with what its device has made, such as sums of gradients. Of the parts that can begin, a
// device takes the one with the most transfers behind it. So the backward pass of a microbatch
// comes before the forward pass of the next one.
//
// A device that works ahead of others keeps what its later parts read. Between a part and that
// later part lie k transfers there and back; k/2 + 1 such parts under way keep the device busy, and
// more are not begun while another device can go on. With one forward and one backward pass for
// each microbatch this is the schedule called 1F1B.
#include <vector>

#include "tenon/device.h"

namespace tn {

struct OrderedPart {
  Device device;
  int stage = 0;           // transfers behind it
  int waits = 0;           // values of other devices that it, and what it reads, waits for
  int time = 0;            // that it takes
  std::vector<int> after;  // the parts that it reads
};

struct PartOrder {
  std::vector<int> order;       // the parts
  std::vector<int> begin, end;  // by part: the time
};

/// `after` has no cycles.
PartOrder order_parts(const std::vector<OrderedPart>& parts);

}  // namespace tn
