#include "ir/view.h"

namespace tn {

/// Strides of an empty tensor may pass 64 bits; nothing is ever read with them.
static int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

Strided Strided::row_major(const Shape& shape) {
  Strided s{0, shape, {}};
  s.strides = {};
  int64_t stride = 1;
  for (int i = 0; i < shape.rank(); ++i) s.strides.push_back(0);
  for (int i = shape.rank() - 1; i >= 0; --i) {
    s.strides[i] = stride;
    stride = times(stride, shape[i].value());
  }
  return s;
}

bool Strided::is_contiguous() const {
  int64_t expected = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    int64_t extent = shape[i].value();
    if (extent == 0) return true;
    if (extent != 1 && strides[i] != expected) return false;
    expected = times(expected, extent);
  }
  return true;
}

/// Axes of the operand and of the result are matched in groups of equal product; within a group the
/// operand's axes must lie in memory as one run of equal steps.
static std::optional<Strided> reshape(const Strided& from, const Shape& shape) {
  Strided out{from.offset, shape, {}};
  for (int i = 0; i < shape.rank(); ++i) out.strides.push_back(0);
  if (from.shape.elements().is(0)) return out;
  int i = 0, j = 0;
  while (i < from.shape.rank() || j < shape.rank()) {
    int i0 = i, j0 = j;
    int64_t left = i < from.shape.rank() ? from.shape[i++].value() : 1;
    int64_t right = j < shape.rank() ? shape[j++].value() : 1;
    while (left != right || (i < from.shape.rank() && from.shape[i].is(1)) ||
           (j < shape.rank() && shape[j].is(1))) {
      if (left <= right && i < from.shape.rank() && (left < right || from.shape[i].is(1)))
        left *= from.shape[i++].value();
      else
        right *= shape[j++].value();
    }
    int64_t stride = 0, run = 1;  // the innermost step, and the elements seen so far
    for (int k = i - 1; k >= i0; --k) {
      int64_t extent = from.shape[k].value();
      if (extent == 1) continue;
      if (run == 1)
        stride = from.strides[k];
      else if (from.strides[k] != stride * run)
        return {};
      run *= extent;
    }
    for (int k = j - 1; k >= j0; --k) {
      out.strides[k] = stride;
      stride *= shape[k].value();
    }
  }
  return out;
}

static Strided broadcast(const Strided& from, const Shape& shape) {
  Strided out{from.offset, shape, {}};
  int shift = shape.rank() - from.shape.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    bool repeats = i < shift || (from.shape[i - shift].is(1) && !shape[i].is(1));
    out.strides.push_back(repeats ? 0 : from.strides[i - shift]);
  }
  return out;
}

std::optional<Strided> apply(const View& view, const Strided& from) {
  Strided out = from;
  out.shape = view.shape;
  switch (view.kind) {
    case View::Kind::reshape:
      return reshape(from, view.shape);
    case View::Kind::broadcast:
      return broadcast(from, view.shape);
    case View::Kind::permute:
      for (int i = 0; i < view.perm.size(); ++i) out.strides[i] = from.strides[view.perm[i].i];
      return out;
    case View::Kind::slice:
      for (int i = 0; i < view.start.size(); ++i) {
        out.offset += view.start[i].value() * from.strides[i];
        out.strides[i] = from.strides[i] * view.step[i];
      }
      return out;
    case View::Kind::reverse:
      for (Axis a : view.axes) {
        int64_t extent = from.shape[a.i].value();
        if (extent == 0) continue;
        out.offset += from.strides[a.i] * (extent - 1);
        out.strides[a.i] = -from.strides[a.i];
      }
      return out;
    case View::Kind::window: {
      int axes = view.step.size(), front = from.shape.rank() - axes;
      for (int i = 0; i < axes; ++i) {
        out.strides[front + i] = from.strides[front + i] * view.step[i];
        out.strides.push_back(from.strides[front + i] * view.dilation[i]);
      }
      return out;
    }
  }
  return {};
}

}  // namespace tn
