#include "compiler/access.h"

#include <algorithm>

namespace tn {

LoopNest::LoopNest(const Shape& domain, const Axes& reduced) : domain_(domain) {
  for (bool folded : {false, true})
    for (int i = 0; i < domain.rank(); ++i)
      if (reduced.has(i) == folded) {
        loops_.push_back({domain[i].value(), folded});
        axis_of_.push_back(i);
      }
  // Where one loop is empty its companions do not run either: their extents must not overflow
  // strides.
  for (bool folded : {false, true}) {
    auto empty = [&](const Loop& l) { return l.folded == folded && l.extent == 0; };
    if (std::none_of(loops_.begin(), loops_.end(), empty)) continue;
    for (Loop& l : loops_)
      if (l.folded == folded && l.extent != 0) l.extent = 1;
  }
}

int LoopNest::add(const Strided& access) {
  int shift = domain_.rank() - access.shape.rank();
  std::vector<int64_t> strides;
  for (int axis : axis_of_) {
    int i = axis - shift;
    bool repeats = i < 0 || (access.shape[i] == Dim(1) && domain_[axis] != Dim(1));
    strides.push_back(repeats ? 0 : access.strides[i]);
  }
  offsets_.push_back(access.offset);
  strides_.push_back(std::move(strides));
  return static_cast<int>(offsets_.size()) - 1;
}

int LoopNest::add_result() {
  std::vector<int64_t> strides(loops_.size());
  int64_t stride = 1;
  for (size_t i = loops_.size(); i-- > 0;) {
    if (loops_[i].folded) continue;
    strides[i] = stride;
    stride *= loops_[i].extent;
  }
  offsets_.push_back(0);
  strides_.push_back(std::move(strides));
  return static_cast<int>(offsets_.size()) - 1;
}

void LoopNest::build(loop::Builder& b) {
  auto remove = [&](size_t i) {
    loops_.erase(loops_.begin() + static_cast<ptrdiff_t>(i));
    for (auto& s : strides_) s.erase(s.begin() + static_cast<ptrdiff_t>(i));
  };
  auto kind_count = [&](bool folded) {
    int n = 0;
    for (const Loop& l : loops_) n += l.folded == folded;
    return n;
  };
  // One folded loop stays even when its extent is 1: there must be something to fold.
  for (size_t i = loops_.size(); i-- > 0;)
    if (loops_[i].extent == 1 && (!loops_[i].folded || kind_count(true) > 1)) remove(i);
  for (size_t i = loops_.size(); i-- > 1;) {
    bool merges = loops_[i - 1].folded == loops_[i].folded;
    for (const auto& s : strides_) merges &= s[i - 1] == s[i] * loops_[i].extent;
    if (!merges) continue;
    loops_[i].extent *= loops_[i - 1].extent;
    remove(i - 1);
  }
  for (const Loop& l : loops_) {
    int axis = b.add_axis(l.extent, l.folded ? loop::AxisKind::red : loop::AxisKind::par);
    axes_.push_back(b.axis(axis));
    if (l.folded) reduced_ |= 1u << axis;
  }
}

PolyId LoopNest::index(loop::Builder& b, int access, int64_t scale, int64_t plus) const {
  size_t n = static_cast<size_t>(access);
  PolyId position = b.polys().constant(offsets_[n] * scale + plus);
  for (size_t i = 0; i < axes_.size(); ++i)
    position = b.polys().add(position, b.polys().scale(axes_[i], strides_[n][i] * scale));
  return position;
}

}  // namespace tn
