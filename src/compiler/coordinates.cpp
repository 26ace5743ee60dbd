#include "compiler/coordinates.h"

#include "base/error.h"
#include "loop/index.h"

namespace tn {

PolyId position(PolyTable& t, const Shape& shape, const Coords& at) {
  PolyId flat = t.constant(0);
  for (int k = 0; k < shape.rank(); ++k)
    flat = t.add(t.mul(flat, t.from_dim(shape[k])), at[static_cast<size_t>(k)]);
  return flat;
}

Coords point(PolyTable& t, const Shape& shape, PolyId position) {
  std::vector<PolyId> extents;
  for (Dim d : shape) extents.push_back(t.from_dim(d));
  return loop::coordinates(t, position, extents);
}

Coords broadcast_point(PolyTable& t, const Shape& from, const Coords& at, const Shape& to) {
  Coords out;
  size_t shift = at.size() - static_cast<size_t>(from.rank());
  for (int k = 0; k < from.rank(); ++k) {
    size_t axis = shift + static_cast<size_t>(k);
    bool repeats = from[k].is(1) && !to[static_cast<int>(axis)].is(1);
    out.push_back(repeats ? t.constant(0) : at[axis]);
  }
  return out;
}

static Coords window_point(PolyTable& t, const View& view, const Coords& at) {
  size_t axes = static_cast<size_t>(view.step.size());
  Coords out(at.begin(), at.end() - static_cast<ptrdiff_t>(axes));
  size_t front = out.size() - axes;
  for (size_t k = 0; k < axes; ++k) {
    int i = static_cast<int>(k);
    out[front + k] =
        t.add(t.scale(out[front + k], view.step[i]), t.scale(at[out.size() + k], view.dilation[i]));
  }
  return out;
}

Coords through_view(PolyTable& t, const View& view, const Shape& from, const Coords& at) {
  Coords out = at;
  switch (view.kind) {
    case View::Kind::reshape:
      return point(t, from, position(t, view.shape, at));
    case View::Kind::broadcast:
      return broadcast_point(t, from, at, view.shape);
    case View::Kind::permute:
      for (int k = 0; k < view.perm.size(); ++k)
        out[static_cast<size_t>(view.perm[k].i)] = at[static_cast<size_t>(k)];
      return out;
    case View::Kind::slice:
      for (int k = 0; k < view.start.size(); ++k) {
        PolyId& x = out[static_cast<size_t>(k)];
        Offset start = view.start[k];
        PolyId first = start.is_const() ? t.constant(start.raw) : t.from_dim(start.size());
        x = t.add(t.scale(x, view.step[k]), first);
      }
      return out;
    case View::Kind::reverse:
      for (Axis a : view.axes) {
        PolyId& x = out[static_cast<size_t>(a.i)];
        x = t.sub(t.add_constant(t.from_dim(from[a.i]), -1), x);
      }
      return out;
    case View::Kind::window:
      return window_point(t, view, at);
  }
  throw_internal("a view of unknown kind");
}

Coords reduced_point(PolyTable& t, const Shape& from, const Axes& reduced, bool keepdims,
                     const Coords& at, PolyId among) {
  Shape folded;
  for (int k = 0; k < from.rank(); ++k)
    if (reduced.has(k)) folded.push_back(from[k]);
  Coords inner = point(t, folded, among), out;
  size_t next_inner = 0, next_outer = 0;
  for (int k = 0; k < from.rank(); ++k) {
    bool is_folded = reduced.has(k);
    out.push_back(is_folded ? inner[next_inner++] : at[next_outer]);
    if (!is_folded || keepdims) ++next_outer;
  }
  return out;
}

}  // namespace tn
