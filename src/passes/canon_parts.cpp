// Sums of tensors that are 0 outside a part: what derivatives of `split` are made of.
//
//     update(0, a, part 1) + update(0, b, part 2) = concat(a + 0, 0 + b)
//     concat(a, 0) + update(0, c, part 2) = concat(a + 0, 0 + c)
//
// The zeros stay in the sums: -0 + 0 is 0. Where pieces overlap, or an end of one lies within
// another that is not a number, nothing is done.
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "passes/canon.h"

namespace tn {

namespace {

/// A tensor as pieces along an axis, in order. A repeated number has any extent.
struct Pieces {
  struct Piece {
    int64_t extent;
    Val value;  // of that extent, or the number alone
    bool is_number;
  };
  int axis = -1;
  std::vector<Piece> list;
};

/// Of a constant axis; -1 for others.
int64_t extent(Canon& canon, Val v, int axis) {
  Dim d = canon.shape(v)[axis];
  return d.is_const() ? d.value() : -1;
}

Pieces joined(Canon& canon, const GraphOp& concat) {
  const void* attrs = concat.attr_data();
  Pieces pieces{static_cast<const ops::ConcatAttrs*>(attrs)->axis->i, {}};
  for (Val v : canon.in(concat)) {
    Val number = canon.number(v) ? canon.repeated_scalar(v) : kNoVal;
    bool is_number = number != kNoVal;
    if (extent(canon, v, pieces.axis) < 0) return {};
    pieces.list.push_back({extent(canon, v, pieces.axis), is_number ? number : v, is_number});
  }
  return pieces;
}

/// The one axis that a slice does not take whole; -1 when there are others, or steps.
int cut_axis(const View& slice, const Shape& from) {
  int axis = -1;
  for (int k = 0; k < from.rank(); ++k) {
    if (slice.step[k] != 1) return -1;
    if (identical(slice.shape[k], from[k])) continue;
    if (axis >= 0) return -1;
    axis = k;
  }
  return axis;
}

/// A piece of one axis, written into a number.
Pieces written(Canon& canon, const GraphOp& update) {
  Val base = canon.in(update)[0], value = canon.in(update)[1];
  View view = ops::slice.view(update.attr_data(), *canon.type(base));
  int axis = cut_axis(view, canon.shape(base));
  if (axis < 0 || !canon.number(base) || !identical(canon.shape(value), view.shape)) return {};
  if (extent(canon, base, axis) < 0 || !view.start[axis].is_const()) return {};
  int64_t begin = view.start[axis].raw, end = begin + extent(canon, value, axis);
  int64_t whole = extent(canon, base, axis);
  Val number = canon.repeated_scalar(base);
  Pieces pieces{axis, {}};
  if (begin > 0) pieces.list.push_back({begin, number, true});
  if (begin < end) pieces.list.push_back({end - begin, value, false});
  if (end < whole) pieces.list.push_back({whole - end, number, true});
  return pieces;
}

Pieces pieces_of(Canon& canon, Val v) {
  GraphOp made = canon.maker(v);
  if (made.op == &ops::concat) return joined(canon, made);
  if (made.op == &ops::slice_update) return written(canon, made);
  return {};
}

/// Pairs of pieces of one extent, if numbers can be cut so; each pair has a number.
std::vector<std::pair<Pieces::Piece, Pieces::Piece>> paired(Pieces a, Pieces b) {
  std::vector<std::pair<Pieces::Piece, Pieces::Piece>> pairs;
  for (size_t i = 0, k = 0; i < a.list.size() && k < b.list.size();) {
    Pieces::Piece &x = a.list[i], &y = b.list[k];
    int64_t size = std::min(x.extent, y.extent);
    bool fits = (x.is_number || x.extent == size) && (y.is_number || y.extent == size);
    if (!fits || !(x.is_number || y.is_number)) return {};
    pairs.emplace_back(x, y);
    pairs.back().first.extent = pairs.back().second.extent = size;
    i += (x.extent -= size) == 0, k += (y.extent -= size) == 0;
  }
  return pairs;
}

}  // namespace

Val join_parts(Canon& canon, const Candidate& op) {
  if (op.op != &ops::add || canon.type(op.in[0]) != canon.type(op.in[1])) return kNoVal;
  Pieces a = pieces_of(canon, op.in[0]), b = pieces_of(canon, op.in[1]);
  if (a.axis < 0 || a.axis != b.axis) return kNoVal;
  std::vector<Val> parts;
  for (auto& [x, y] : paired(a, b)) {
    Shape shape = ops::with_extent(op.type->shape, a.axis, x.extent);
    Val sum = canon.add(ops::add, nullptr, {x.value, y.value});
    parts.push_back(canon.repeat(sum, shape));
  }
  if (parts.empty()) return kNoVal;
  return canon.add(ops::concat, ops::ConcatAttrs{Axis(a.axis)}, parts);
}

}  // namespace tn
