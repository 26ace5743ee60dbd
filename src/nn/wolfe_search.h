#pragma once
// Line search with the strong Wolfe conditions (Nocedal and Wright, chapter 3).
#include "tenon/callback.h"
#include "tenon/tensor.h"

namespace tn::optim {

/// A step length, with the loss and the gradient there.
struct LinePoint {
  double length = 0, loss = 0;
  Tensor gradient;
  double slope = 0;
};

struct LineFound {
  LinePoint point;
  int evaluations = 0;
};

/// A point that meets the conditions, found from `start` with `length` as the first one that is
/// tried. `scale` is the largest element of the direction, and lengths that change elements by less
/// than `tolerance` are equal.
LineFound strong_wolfe(const Callback<LinePoint(double length)>& evaluate, const LinePoint& start,
                       double length, double scale, double tolerance);

}  // namespace tn::optim
