#pragma once
// Common refinement: cuts flat loop axes where the indices of a kernel need it, and nowhere else.
//
// A kernel starts with one flat axis per root. What views leave of it are digits, (p div a) mod b.
// Cutting the axis at a and a*b makes every digit a loop axis of its own, and the indices linear:
//   x[6*(p mod 4) + (p div 4)], p:24   =   x[p0 + 6*p1], p0:6 p1:4
#include <span>
#include <vector>

#include "loop/index.h"

namespace tn::loop {

/// A loop axis of a refined kernel: the digit of `root` with this weight.
struct LoopAxis {
  uint32_t root;
  PolyId extent;
  PolyId weight;
};

struct Refinement {
  std::vector<LoopAxis> axes;  // outer to inner, root by root; axis k has slot k in polynomials
  std::vector<Access> accesses;
  /// Div and mod atoms left: cuts that divide no extent, or that exclude each other.
  int residual = 0;
  /// The caps on axes and sizes of expressions were kept. If not, do not use this form.
  bool within_caps = true;
};

/// Caps; beyond them a kernel stays as it is.
inline constexpr int kMaxRounds = 16;
inline constexpr size_t kMaxLoopAxes = 16, kMaxDigits = 10, kMaxTerms = 24;
inline constexpr int kMaxDegree = 6;
inline constexpr uint32_t kMaxIndexSize = 256;

/// A fresh flat axis, for accesses that are refined later.
PolyId root_axis(PolyTable& t, PolyId extent);

/// `roots` are the axes made by `root_axis`, `accesses` what is read or written at their points.
Refinement refine(PolyTable& t, std::span<const PolyId> roots, std::vector<Access> accesses);

/// Joins neighbours (i outer, j inner) where everywhere coef(i) = coef(j)*extent(j).
void coalesce(PolyTable& t, Refinement& refinement);

}  // namespace tn::loop
