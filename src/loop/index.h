#pragma once
// What is read or written at a point of a kernel: an index and a mask, and their simplification.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/poly.h"

namespace tn::loop {

/// A conjunction: every polynomial is >= 0.
using Mask = std::vector<PolyId>;

/// An element of some buffer, where the mask holds.
struct Access {
  Mask mask;
  PolyId index;
  bool never = false;  // the mask holds nowhere
};

/// The digits of `flat` in a row-major box.
std::vector<PolyId> coordinates(PolyTable& t, PolyId flat, std::span<const PolyId> shape);

/// Simplifies the mask.
void simplify_mask(PolyTable& t, Access& access);
/// Simplifies, removes divisions from the mask, and puts constants for axes that the mask fixes.
void finish(PolyTable& t, Access& access);

/// The number of div and mod atoms in the text of p.
int count_divisions(const PolyTable& t, PolyId p);

/// `48*S*p0 + ((p1 + 2)%4) - 1`, with axis k named names[k]; `parse_index` is the inverse.
std::string index_text(const PolyTable& t, PolyId p, std::span<const std::string> names);
PolyId parse_index(PolyTable& t, std::string_view text, std::span<const std::string> names,
                   std::span<const PolyId> extents, std::span<const Dim> symbols = {});

}  // namespace tn::loop
