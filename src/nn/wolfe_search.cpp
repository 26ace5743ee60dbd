#include "nn/wolfe_search.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tn::optim {
namespace {

// The constants of the two conditions: sufficient decrease, and curvature.
constexpr double kSufficient = 1e-4, kCurvature = 0.9;
constexpr int kMostRounds = 25;

struct Bounds {
  double low, high;
};

/// The minimum of the cubic through two points with their slopes, within bounds.
double cubic(const LinePoint& a, const LinePoint& b, std::optional<Bounds> within = {}) {
  const LinePoint &first = a.length <= b.length ? a : b, &second = &first == &a ? b : a;
  Bounds bounds = within.value_or(Bounds{first.length, second.length});
  double apart = second.length - first.length, centre = (bounds.low + bounds.high) / 2;
  if (apart == 0) return centre;
  double middle = first.slope + second.slope - 3 * (second.loss - first.loss) / apart;
  double square = middle * middle - first.slope * second.slope;
  if (!(square >= 0)) return centre;
  double root = std::sqrt(square), width = second.slope - first.slope + 2 * root;
  if (width == 0) return centre;
  double place = second.length - apart * ((second.slope + root - middle) / width);
  return std::min(std::max(place, bounds.low), bounds.high);
}

class Search {
 public:
  Search(const Callback<LinePoint(double)>& evaluate, const LinePoint& start)
      : evaluate_(evaluate), start_(start) {}
  int evaluations = 0;

  /// A bracket of a point that meets the conditions, or such a point.
  std::vector<LinePoint> bracketed(double length) {
    LinePoint before = start_, point = at(length);
    for (; rounds_ < kMostRounds; ++rounds_) {
      bool higher = rounds_ > 1 && point.loss >= before.loss;
      if (!decreases(point) || higher) return {before, point};
      if (is_flat(point)) return {point};
      if (point.slope >= 0) return {before, point};
      double near = point.length + 0.01 * (point.length - before.length);
      LinePoint next = at(cubic(before, point, Bounds{near, point.length * 10}));
      before = point, point = next;
    }
    return {start_, point};
  }

  /// Shrinks the bracket until a point meets the conditions.
  LinePoint refined(LinePoint low, LinePoint high, double scale, double tolerance) {
    if (high.loss < low.loss) std::swap(low, high);
    bool stuck = false;
    while (rounds_ < kMostRounds) {
      if (std::abs(high.length - low.length) * scale < tolerance) break;
      LinePoint point = at(between(low, high, stuck));
      ++rounds_;
      if (!decreases(point) || point.loss >= low.loss) {
        high = point;
        if (high.loss < low.loss) std::swap(low, high);
        continue;
      }
      if (is_flat(point)) return point;
      if (point.slope * (high.length - low.length) >= 0) high = low;
      low = point;
    }
    return low;
  }

 private:
  LinePoint at(double length) {
    ++evaluations;
    return evaluate_(length);
  }
  bool decreases(const LinePoint& point) const {
    return point.loss <= start_.loss + kSufficient * point.length * start_.slope;
  }
  bool is_flat(const LinePoint& point) const {
    return std::abs(point.slope) <= -kCurvature * start_.slope;
  }
  /// The next length to try; `stuck`: it is near an end for the first time.
  double between(const LinePoint& low, const LinePoint& high, bool& stuck) const {
    double first = std::min(low.length, high.length), last = std::max(low.length, high.length);
    double length = cubic(low, high), margin = 0.1 * (last - first);
    bool was_stuck = std::exchange(stuck, false);
    if (std::min(last - length, length - first) >= margin) return length;
    if (!was_stuck && first < length && length < last) {
      stuck = true;
      return length;
    }
    return std::abs(length - last) < std::abs(length - first) ? last - margin : first + margin;
  }

  const Callback<LinePoint(double)>& evaluate_;
  const LinePoint& start_;
  int rounds_ = 0;
};

}  // namespace

LineFound strong_wolfe(const Callback<LinePoint(double length)>& evaluate, const LinePoint& start,
                       double length, double scale, double tolerance) {
  Search search(evaluate, start);
  std::vector<LinePoint> found = search.bracketed(length);
  if (found.size() > 1) found[0] = search.refined(found[0], found[1], scale, tolerance);
  return {found[0], search.evaluations};
}

}  // namespace tn::optim
