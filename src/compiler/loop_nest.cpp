#include "compiler/loop_nest.h"

#include <algorithm>

namespace tn {

LoopNest::LoopNest(const Shape& domain, const Axes& reduced) : domain_(domain) {
  for (bool folded : {false, true})
    for (int i = 0; i < domain.rank(); ++i)
      if (reduced.has(i) == folded) loops_.push_back({domain[i].value(), folded, i});
  result_.strides = SmallList<int64_t>::filled(loops_.size(), 0);
  int64_t stride = 1;
  for (int i = loops_.size(); i-- > 0;) {
    if (loops_[i].folded) continue;
    result_.strides[i] = stride;
    stride *= loops_[i].extent;
  }
}

const LoopNest::Access* LoopNest::find(Val v) const {
  auto found = std::ranges::find(accesses_, v, &Access::v);
  return found == accesses_.end() ? nullptr : &*found;
}

void LoopNest::add(Val v, const Strided& at) {
  int shift = domain_.rank() - at.shape.rank();
  Access& access = accesses_.emplace_back(Access{v, at.offset});
  for (const Loop& loop : loops_) {
    int i = loop.axis - shift;
    bool repeats = i < 0 || (at.shape[i].is(1) && !domain_[loop.axis].is(1));
    access.strides.push_back(repeats ? 0 : at.strides[i]);
  }
}

void LoopNest::remove(int loop) {
  loops_.erase(loop);
  result_.strides.erase(loop);
  for (Access& a : accesses_) a.strides.erase(loop);
}

void LoopNest::build(loop::Builder& b) {
  auto folded = std::ranges::count_if(loops_, &Loop::folded);
  // One folded loop stays even when its extent is 1: there must be something to fold.
  for (int i = loops_.size(); i-- > 0;)
    if (loops_[i].extent == 1 && (!loops_[i].folded || folded-- > 1)) remove(i);
  for (int i = loops_.size(); i-- > 1;) {
    auto merges = [&](const Access& a) {
      return a.strides[i - 1] == a.strides[i] * loops_[i].extent;
    };
    if (loops_[i - 1].folded != loops_[i].folded || !merges(result_) ||
        !std::ranges::all_of(accesses_, merges))
      continue;
    loops_[i].extent *= loops_[i - 1].extent;
    remove(i - 1);
  }
  for (const Loop& l : loops_) {
    int axis = b.add_axis(l.extent, l.folded ? loop::AxisKind::red : loop::AxisKind::par);
    axes_.push_back(b.axis(axis));
    if (l.folded) reduced_ |= 1u << axis;
  }
}

PolyId LoopNest::position(loop::Builder& b, const Access& access) const {
  PolyId position = b.polys().constant(access.offset);
  for (int i = 0; i < loops_.size(); ++i)
    position = b.polys().add(position, b.polys().scale(axes_[i], access.strides[i]));
  return position;
}

}  // namespace tn
