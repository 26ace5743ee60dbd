#pragma once
// Views as substitutions: from the index of a result to cases (mask, buffer, index) of a load.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/poly.h"

namespace tn::loop {

/// A conjunction: every polynomial is >= 0.
using Mask = std::vector<PolyId>;
using Indices = std::vector<PolyId>;

/// Where the mask holds, the value is buffer[index]. At most one case of a load holds at a point.
struct Case {
  Mask mask;
  int32_t buffer;
  PolyId index;
};
using Cases = std::vector<Case>;

/// Beyond these caps a load is not composed but its operand materialised.
inline constexpr size_t kMaxCases = 8;
inline constexpr uint32_t kMaxIndexSize = 256;

/// A buffer seen through views. `shape` is the shape of the result.
struct Access {
  enum class Kind : uint8_t {
    buffer,     // the row-major buffer number `buffer`
    permute,    // result axis k is operand axis perm[k]
    broadcast,  // right-aligned; an operand axis of extent 1 is repeated
    slice,      // operand index = lo + step*i on `axis`
    reverse,    // operand index = n - 1 - i on `axis`
    reshape,    // the same row-major order
    window,     // operand index = step*i + dilation*k on `axis`; k is a new last axis
    pad,        // nothing for i < lo and i >= lo + n on `axis`
    dilate,     // nothing unless step divides i on `axis`
    concat,     // the operands one after the other on `axis`
  };
  Kind kind = Kind::buffer;
  Indices shape;
  std::vector<Access> operands;
  int32_t buffer = 0;
  std::vector<int> perm;
  int axis = 0;
  PolyId lo = 0;
  int64_t step = 1, dilation = 1;
};

Access read(int32_t buffer, Indices shape);
Access permute(Access from, std::vector<int> perm);
Access broadcast(Access from, Indices shape);
Access slice(Access from, int axis, PolyId start, PolyId length, int64_t step = 1);
Access reverse(Access from, int axis);
Access reshape(Access from, Indices shape);
Access window(PolyTable& t, Access from, int axis, int64_t size, int64_t stride, int64_t dilation);
Access pad(Access from, int axis, PolyId lo, PolyId padded);
Access dilate(PolyTable& t, Access from, int axis, int64_t factor);
Access concat(PolyTable& t, std::vector<Access> pieces, int axis);
/// The last `shift` elements of the axis come first.
Access roll(PolyTable& t, Access from, int axis, int64_t shift);

/// What is read at `index` of the result. Cases that never hold are left out; no case at all means
/// that the value is nothing (0) everywhere. Masks may hold Let atoms until `finish`.
/// No result means that a cap was hit.
std::optional<Cases> compose(PolyTable& t, const Access& access, const Indices& index);

/// The digits of `flat` in a row-major box, and back.
Indices coordinates(PolyTable& t, PolyId flat, std::span<const PolyId> shape);
PolyId flatten(PolyTable& t, std::span<const PolyId> index, std::span<const PolyId> shape);

/// Simplifies the mask; false when the case never holds.
bool simplify_mask(PolyTable& t, Mask& mask);
/// Expands Let atoms, simplifies, and puts constants for axes that the mask fixes.
void finish(PolyTable& t, Cases& cases);

/// The number of div and mod atoms in the text of p.
int count_divisions(const PolyTable& t, PolyId p);

/// `48*S*p0 + ((p1 + 2)%4) - 1`, with axis k named names[k]; `parse_index` is the inverse.
std::string index_text(const PolyTable& t, PolyId p, std::span<const std::string> names);
PolyId parse_index(PolyTable& t, std::string_view text, std::span<const std::string> names,
                   std::span<const PolyId> extents, std::span<const Dim> symbols = {});
/// `x[p0 + 1] if -p1>=0 & p0 - 2>=0 , y[p1]`.
std::string cases_text(const PolyTable& t, const Cases& cases, std::span<const std::string> names,
                       std::span<const std::string> buffers);
/// Parses `x[B,6] . reshape(6*B) . slice(ax0, 1:+4 step 2)`, `concat(a[4]; b[2]; axis=0)` and so
/// on. New buffer names are appended to `buffers`.
Access parse_access(PolyTable& t, std::string_view text, std::span<const Dim> symbols,
                    std::vector<std::string>& buffers);

}  // namespace tn::loop
