#pragma once
// Unification of shapes: propagates constraints on the shapes of connections, in any order and
// direction, to a fixed point.
#include <optional>
#include <string_view>
#include <vector>

#include "base/indexed.h"
#include "ir/dim.h"
#include "tenon/shape.h"

namespace tn::model {

/// A size that may be known, and axes that may be: by number in a `Unifier`.
using SizeId = int;
using AxesId = int;

/// Sizes at the front, axes of which nothing is known yet, if any, and sizes at the back.
struct Sizes {
  std::vector<SizeId> front = {};
  AxesId rest = -1;  // -1: none, all sizes are at the front
  std::vector<SizeId> back = {};
};

class Unifier {
 public:
  SizeId any_size();
  SizeId size(Dim value);
  AxesId any_axes();
  Sizes anything() { return {.front = {}, .rest = any_axes(), .back = {}}; }
  Sizes of(const Shape& shape);

  /// Unifies both. False: they conflict, and parts of both may have been unified. Constraints that
  /// depend on an unknown rank wait until it is known.
  bool unify(SizeId a, SizeId b);
  bool unify(const Sizes& a, const Sizes& b);
  bool is_waiting() const { return !waiting_.empty(); }

  bool is_same(SizeId a, SizeId b) const { return root(a) == root(b); }
  std::optional<Dim> value(SizeId id) const { return values_[root(id)]; }
  /// With what is known of the rest by now.
  Sizes resolved(const Sizes& sizes) const;
  /// Nothing where a size or the number of axes is not known.
  std::optional<Shape> shape(const Sizes& sizes) const;
  /// "[32, _, ..., 10]"
  std::string text(const Sizes& sizes) const;

 private:
  SizeId root(SizeId id) const;
  bool unify_once(const Sizes& a, const Sizes& b);
  bool bind(AxesId rest, const Sizes& to);

  mutable Indexed<SizeId> joined_;  // to another one of the same size; to itself
  Indexed<std::optional<Dim>> values_;
  mutable Indexed<std::optional<Sizes>> axes_;    // what they turned out to be
  std::vector<std::pair<Sizes, Sizes>> waiting_;  // "2 ..." and "... 3": of one axis, or of more
  bool has_bound_ = false;                        // axes, since those were looked at
};

}  // namespace tn::model
