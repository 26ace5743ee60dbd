// Links of general ops, by op. What is not linked is not divided: the op gets it whole.
#include <algorithm>

#include "ops/contract.h"
#include "ops/conv_attrs.h"
#include "ops/cumulative.h"
#include "ops/fourier.h"
#include "ops/indexing.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/slice_attrs.h"
#include "sharding/links.h"

namespace tn::sharding {

namespace {

using Loops = std::vector<Loop>;
using loop::Monoid;

/// Dimension `dim` of the first operand and of every other slot that has the same extent there.
Loop aligned(const OpView& op, int dim) {
  Loop loop;
  for (int slot = 0; slot < static_cast<int>(op.types.size()); ++slot)
    if (dim < op.rank(slot) && identical(op.shape(slot)[dim], op.shape(0)[dim]))
      loop.places.push_back({slot, dim});
  return loop;
}

/// Whether every slot has the dimension in full.
bool is_in_all(const OpView& op, int dim) {
  return aligned(op, dim).places.size() == op.types.size();
}

/// Elementwise on one shape.
Loops link_all(const OpView& op) {
  Loops loops;
  for (int d = 0; d < op.rank(0); ++d)
    if (is_in_all(op, d)) loops.push_back(aligned(op, d));
  return loops;
}

/// Every line along one axis is computed on its own.
Loops link_lines(const OpView& op, Axis along) {
  Loops loops;
  int axis = along.i < 0 ? along.i + op.rank(0) : along.i;
  for (int d = 0; d < op.rank(0); ++d)
    if (d != axis && is_in_all(op, d)) loops.push_back(aligned(op, d));
  return loops;
}

Loops link_argreduce(const OpView& op) {
  int axis = op.as<ops::ArgreduceAttrs>().axis.i;
  Loops loops;
  for (int d = 0; d < op.rank(0); ++d)
    if (d != axis) loops.push_back({{{0, d}, {1, d - (d > axis)}}});
  return loops;
}

/// Every matrix is computed on its own.
Loops link_matrices(const OpView& op) {
  Loops loops;
  for (int d = 0; d + 2 < op.rank(0); ++d)
    if (is_in_all(op, d)) loops.push_back(aligned(op, d));
  return loops;
}

Monoid sum_of(DType type) { return type == DType::b1 ? Monoid::or_ : Monoid::add; }

Loops link_dot(const OpView& op) {
  const auto& a = op.as<ops::DotAttrs>();
  Loops loops;
  int to = 0;
  for (int i = 0; i < a.lhs_batch.size(); ++i)
    loops.push_back({{{0, a.lhs_batch[i].i}, {1, a.rhs_batch[i].i}, {2, to++}}});
  for (Axis k : ops::free_axes(op.rank(0), a.lhs_batch, a.lhs_contract))
    loops.push_back({{{0, k.i}, {2, to++}}});
  for (Axis k : ops::free_axes(op.rank(1), a.rhs_batch, a.rhs_contract))
    loops.push_back({{{1, k.i}, {2, to++}}});
  for (int i = 0; i < a.lhs_contract.size(); ++i)
    loops.push_back(
        {{{0, a.lhs_contract[i].i}, {1, a.rhs_contract[i].i}}, sum_of(op.types[0]->dtype)});
  return loops;
}

/// Images, channels out, and channels in, which are summed. Space and groups stay whole.
Loops link_conv(const OpView& op) {
  const auto& a = op.as<ops::ConvAttrs>();
  int channel = a.channel_axis(op.rank(0));
  Loops loops{{{{0, 0}, {2, 0}}}};
  if (a.groups != 1) return loops;
  loops.push_back({{{1, 0}, {2, channel}}});
  loops.push_back({{{0, channel}, {1, channel}}, Monoid::add});
  return loops;
}

Loops link_conv_weights(const OpView& op) {
  const auto& a = op.as<ops::ConvWeightsAttrs>();
  int channel = a.conv().channel_axis(op.rank(0));
  Loops loops{{{{0, 0}, {1, 0}}, Monoid::add}};
  if (a.groups != 1) return loops;
  loops.push_back({{{1, channel}, {2, 0}}});
  loops.push_back({{{0, channel}, {2, channel}}});
  return loops;
}

/// Where the dimensions of an indexed tensor and of its indices are in what is read or written.
struct Indexed {
  int points = 0;              // the rank to which the indices broadcast
  std::vector<int> of_points;  // by dimension of the points
  std::vector<int> of_x;       // by dimension of x; -1: indexed
  Indexed(const OpView& op, const Axes& axes, int64_t batch_dims, int first_index) {
    int batch = static_cast<int>(batch_dims), to = 0;
    for (int slot = first_index; slot < op.ins; ++slot) points = std::max(points, op.rank(slot));
    of_points.resize(static_cast<size_t>(points));
    for (int k = 0; k < op.rank(0); ++k) {
      if (k == axes[0].i)
        for (int i = batch; i < points; ++i) of_points[static_cast<size_t>(i)] = to++;
      if (k < batch) of_points[static_cast<size_t>(k)] = to;
      of_x.push_back(axes.has(k) ? -1 : to++);
    }
  }
  /// The places of a dimension of the points in the index operands that do not repeat there.
  void add_indices(const OpView& op, int point, int first_index, Dim extent, Loop& loop) const {
    for (int slot = first_index; slot < op.ins; ++slot) {
      int dim = point - (points - op.rank(slot));
      if (dim >= 0 && identical(op.shape(slot)[dim], extent)) loop.places.push_back({slot, dim});
    }
  }
};

/// Of a tensor that is divided where it is indexed, one worker has each element: others add zeros.
Loops link_gather(const OpView& op) {
  const auto& a = op.as<ops::GatherAttrs>();
  Indexed at(op, a.axes, a.batch_dims, 1);
  int result = op.ins;
  Loops loops;
  for (int k = 0; k < op.rank(0); ++k) {
    int to = at.of_x[static_cast<size_t>(k)];
    if (to < 0) {
      if (!is_complex(op.types[0]->dtype)) loops.push_back({{{0, k}}, Monoid::or_, true});
      continue;
    }
    Loop loop{{{0, k}, {result, to}}};
    if (k < a.batch_dims) at.add_indices(op, k, 1, op.shape(0)[k], loop);
    loops.push_back(loop);
  }
  for (int i = static_cast<int>(a.batch_dims); i < at.points; ++i) {
    int to = at.of_points[static_cast<size_t>(i)];
    Loop loop{{{result, to}}};
    at.add_indices(op, i, 1, op.shape(result)[to], loop);
    loops.push_back(loop);
  }
  return loops;
}

/// Updates that are added to zeros may be added in parts. Of a tensor that is divided where it is
/// indexed, a worker writes its block.
Loops link_scatter(const OpView& op) {
  const auto& a = op.as<ops::ScatterAttrs>();
  Indexed at(op, a.axes, a.batch_dims, 2);
  int result = op.ins;
  Loops loops;
  for (int k = 0; k < op.rank(0); ++k) {
    int to = at.of_x[static_cast<size_t>(k)];
    if (to < 0) {
      loops.push_back({{{0, k}, {result, k}}, {}, true});
      continue;
    }
    Loop loop{{{0, k}, {1, to}, {result, k}}};
    if (k < a.batch_dims) at.add_indices(op, k, 2, op.shape(0)[k], loop);
    loops.push_back(loop);
  }
  bool adds = a.mode == ops::ScatterMode::add && op.adds_to_zeros;
  for (int i = static_cast<int>(a.batch_dims); adds && i < at.points; ++i) {
    int to = at.of_points[static_cast<size_t>(i)];
    Loop loop{{{1, to}}, sum_of(op.types[0]->dtype)};
    at.add_indices(op, i, 2, op.shape(1)[to], loop);
    loops.push_back(loop);
  }
  return loops;
}

/// Blocks that are read or written: dimensions that are taken whole.
Loops link_block(const OpView& op, int block) {
  Loops loops;
  for (int d = 0; d < op.rank(0); ++d) {
    if (!identical(op.shape(block)[d], op.shape(0)[d])) continue;
    Loop loop{{{0, d}, {op.ins, d}}};
    if (block != op.ins) loop.places.push_back({block, d});
    loops.push_back(loop);
  }
  return loops;
}

/// Dimensions that are written whole, or one of k equal parts of them: a digit of radix r in the
/// part has radix k·r in the whole.
Loops link_slice_update(const OpView& op) {
  const auto& a = op.as<ops::SliceAttrs>();
  Loops loops = link_block(op, 1);
  for (int i = 0; i < a.axis->size(); ++i) {
    int d = (*a.axis)[i].i;
    Dim whole = op.shape(0)[d], part = op.shape(1)[d];
    bool known = whole.is_const() && part.is_const() && a.start[i].is_const();
    if (!known || part.raw == 0 || identical(whole, part) || (*a.step)[i] != 1) continue;
    if (whole.raw % part.raw || a.start[i].raw % part.raw) continue;
    loops.push_back({{{0, d}, {1, d, whole.raw / part.raw}, {2, d}}});
  }
  return loops;
}

/// Dimensions that are joined: of k equal parts, a digit of radix r in one has radix k·r in all.
Loops link_concat(const OpView& op) {
  int axis = op.as<ops::ConcatAttrs>().axis->i;
  Loops loops = link_lines(op, Axis(axis));
  Dim part = op.shape(0)[axis];
  Loop joined;
  for (int k = 0; k < op.ins; ++k) {
    if (!part.is_const() || part.raw == 0 || !identical(op.shape(k)[axis], part)) return loops;
    joined.places.push_back({k, axis, op.ins});
  }
  joined.places.push_back({op.ins, axis});
  loops.push_back(joined);
  return loops;
}

/// Padding by whole copies of the extent makes the operand one of k equal parts.
Loops link_pad(const OpView& op) {
  const auto& a = op.as<ops::PadWithAttrs>();
  Loops loops;
  for (int d = 0; d < op.rank(0); ++d) {
    Offset before = a.pad_width[2 * d], after = a.pad_width[2 * d + 1];
    Dim extent = op.shape(0)[d];
    if (before == Offset(0) && after == Offset(0)) {
      loops.push_back({{{0, d}, {2, d}}});
      continue;
    }
    bool known = before.is_const() && after.is_const() && extent.is_const() && extent.raw > 0;
    if (a.mode != ops::PadMode::constant || !known) continue;
    if (before.raw % extent.raw || after.raw % extent.raw) continue;
    int64_t parts = (before.raw + after.raw) / extent.raw + 1;
    loops.push_back({{{0, d, parts}, {2, d}}});
  }
  return loops;
}

/// Elements of x2 are looked up one by one; a batch of x1 goes with that of x2.
Loops link_searchsorted(const OpView& op) {
  Loops loops;
  int result = op.ins;
  for (int d = 0; d < op.rank(1); ++d) {
    Loop loop{{{1, d}, {result, d}}};
    if (d < op.as<ops::SearchAttrs>().batch_dims) {
      loop.places.push_back({0, d});
      if (op.ins > 2) loop.places.push_back({2, d});
    }
    loops.push_back(loop);
  }
  return loops;
}

/// Coordinates along one axis. That axis is cut from the whole (partition.cpp).
Loops link_iota(const OpView& op) {
  Loops loops;
  for (int d = 0; d < op.rank(0); ++d)
    if (d != op.as<ops::IotaAttrs>().axis.i) loops.push_back({{{0, d}}});
  return loops;
}

/// Random numbers: a batch of keys. Numbers of one key know their position.
Loops link_keys(const OpView& op) {
  Loops loops;
  for (int d = 0; d + 1 < op.rank(0); ++d) loops.push_back({{{0, d}, {op.ins, d}}});
  return loops;
}

Loops link_fold_in(const OpView& op) {
  Loops loops;
  for (int d = 0; d < op.rank(1); ++d)
    if (is_in_all(op, d)) loops.push_back(aligned(op, d));
  return loops;
}

Loops link_window_fold(const OpView& op) {
  int windows = op.rank(0) - op.rank(1);
  Loops loops;
  for (int d = 0; d < op.rank(1) - windows; ++d) loops.push_back({{{0, d}, {1, d}}});
  return loops;
}

struct LinkRule {
  const OpDef* op;
  Loops (*link)(const OpView& op);
};

constexpr LinkRule kRules[] = {
    {&ops::dot, link_dot},
    {&ops::conv, link_conv},
    {&ops::conv_weights, link_conv_weights},
    {&ops::gather, link_gather},
    {&ops::scatter, link_scatter},
    {&ops::dynamic_slice, [](const OpView& op) { return link_block(op, op.ins); }},
    {&ops::dynamic_update_slice, [](const OpView& op) { return link_block(op, 1); }},
    {&ops::slice_update, link_slice_update},
    {&ops::concat, link_concat},
    {&ops::pad_with, link_pad},
    {&ops::cumulative,
     [](const OpView& op) { return link_lines(op, op.as<ops::CumulativeAttrs>().axis); }},
    {&ops::sort, [](const OpView& op) { return link_lines(op, op.as<ops::SortAttrs>().axis); }},
    {&ops::argsort, [](const OpView& op) { return link_lines(op, op.as<ops::SortAttrs>().axis); }},
    {&ops::top_k, [](const OpView& op) { return link_lines(op, op.as<ops::TopKAttrs>().axis); }},
    {&ops::fft_axis,
     [](const OpView& op) { return link_lines(op, op.as<ops::FftAxisAttrs>().axis); }},
    {&ops::argreduce, link_argreduce},
    {&ops::searchsorted, link_searchsorted},
    {&ops::window_fold, link_window_fold},
    {&ops::make_complex, link_all},
    {&ops::bitcast, link_all},
    {&ops::iota, link_iota},
    {&ops::random_bits, link_keys},
    {&ops::random_split, link_keys},
    {&ops::random_fold_in, link_fold_in},
    {&ops::qr, link_matrices},
    {&ops::svd, link_matrices},
    {&ops::svdvals, link_matrices},
    {&ops::eigh, link_matrices},
    {&ops::eigvalsh, link_matrices},
    {&ops::eig, link_matrices},
    {&ops::eigvals, link_matrices},
    {&ops::cholesky, link_matrices},
    {&ops::lu_factor, link_matrices},
    {&ops::triangular_solve, link_matrices},
};

}  // namespace

std::vector<Loop> loops_of_general(const OpView& op) {
  auto rule = std::ranges::find(kRules, &op.op, &LinkRule::op);
  return rule == std::end(kRules) ? Loops() : rule->link(op);
}

}  // namespace tn::sharding
