#include "reference_access.h"

#include <algorithm>

namespace tn::loop {
namespace {

/// The cases of an access, in which no symbols are left.
Cases bind_cases(PolyTable& t, Cases cases, std::span<const Binding> bindings) {
  for (Case& c : cases) {
    c.index = t.bind(c.index, bindings);
    for (PolyId& p : c.mask) p = t.bind(p, bindings);
  }
  return cases;
}

bool holds(const PolyTable& t, const Case& c, std::span<const int64_t> point) {
  return std::ranges::all_of(c.mask, [&](PolyId p) { return t.evaluate(p, {point, {}, {}}) >= 0; });
}

// The index of the result that the point of the loops stands for.
std::vector<int64_t> result_index(const std::vector<int64_t>& flat,
                                  const std::vector<int64_t>& shape,
                                  const std::vector<std::vector<size_t>>& roots) {
  std::vector<int64_t> index(shape.size());
  for (size_t r = 0; r < roots.size(); ++r) {
    int64_t rest = flat[r];
    for (size_t k = roots[r].size(); k-- > 0;) {
      size_t axis = roots[r][k];
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    REQUIRE(rest == 0);
  }
  return index;
}

}  // namespace

int64_t check_against_reference(PolyTable& t, const Refinement& refined,
                                const std::vector<Access>& accesses,
                                const std::vector<std::vector<size_t>>& roots,
                                std::span<const Binding> bindings) {
  auto number = [&](PolyId p) { return t.constant_of(t.bind(p, bindings)); };
  std::vector<ReferenceAccess> references;
  for (const Access& access : accesses) references.emplace_back(t, access, bindings);
  std::vector<int64_t> extents, weights;
  int64_t points = 1, wanted = 1;
  for (const LoopAxis& axis : refined.axes) {
    extents.push_back(number(axis.extent));
    weights.push_back(number(axis.weight));
    points *= extents.back();
  }
  for (int64_t d : references[0].shape()) wanted *= d;
  REQUIRE(points == wanted);
  std::vector<Cases> bound;
  for (const Cases& cases : refined.accesses) bound.push_back(bind_cases(t, cases, bindings));
  std::vector<int64_t> point(extents.size());
  int64_t wrong = 0, compared = 0;
  for (int64_t n = 0; n < points; ++n) {
    std::vector<int64_t> flat(roots.size(), 0);
    int64_t rest = n;
    for (size_t k = extents.size(); k-- > 0; rest /= extents[k]) {
      point[k] = rest % extents[k];
      flat[refined.axes[k].root] += point[k] * weights[k];
    }
    std::vector<int64_t> index = result_index(flat, references[0].shape(), roots);
    for (size_t a = 0; a < accesses.size(); ++a, ++compared) {
      std::optional<Element> found;
      int hits = 0;
      for (const Case& c : bound[a]) {
        if (!holds(t, c, point)) continue;
        ++hits;
        found = Element{c.buffer, t.evaluate(c.index, {point, {}, {}})};
      }
      if (hits > 1 || found != references[a].at(index)) ++wrong;
    }
  }
  CHECK(wrong == 0);
  return compared;
}

}  // namespace tn::loop
