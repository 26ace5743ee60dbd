#pragma once
// Chains of views over buffers: what the compiler reads through them, and what plain arithmetic
// reads.
#include <optional>
#include <string>
#include <vector>

#include "compiler/coordinates.h"
#include "ir/view.h"
#include "loop/refine.h"

namespace tn {

/// A view of an operand, or the operand at `lo` of one axis with nothing around it.
struct Link {
  Shape from;
  View view;  // its `shape` is that of the result
  int padded = -1;
  Dim lo = 0;
};

struct Chain {
  int buffer = 0;
  Shape shape;  // of the result
  std::vector<Link> links;

  Chain& reshape(const Shape& to);
  Chain& broadcast(const Shape& to);
  Chain& permute(const std::vector<int>& perm);
  Chain& slice(int axis, Dim start, Dim length, int64_t step = 1);
  Chain& reverse(int axis);
  /// Over the last axes, one size each.
  Chain& window(const std::vector<int64_t>& sizes, int64_t stride, int64_t dilation);
  Chain& pad(int axis, Dim lo, Dim padded);

 private:
  Chain& add(View view);
};

/// What is read for one tensor: at each point at most one of the chains has something.
using Chains = std::vector<Chain>;
Chains concat(const std::vector<Chains>& pieces, int axis);
/// The last `shift` elements of the axis come first.
Chains roll(const Chains& from, int axis, int64_t shift);

/// Parses `x[B,6] . reshape(6*B) . slice(ax0, 1:+4 step 2)`, `concat(a[4]; b[2]; axis=0)` and so
/// on. New buffer names are appended to `buffers`.
Chains parse_chains(std::string_view text, std::span<const Dim> symbols,
                    std::vector<std::string>& buffers);

/// Loops over the points of a result: each root runs over some of its axes, row-major.
using Roots = std::vector<std::vector<int>>;
Roots one_root(const Shape& shape);

struct Refined {
  PolyTable table;
  std::vector<Chain> chains;
  Roots roots;
  loop::Refinement refinement;  // its accesses are those of the chains
};
/// All chains have one shape.
void refine_chains(std::vector<Chain> chains, Roots roots, Refined& out);

/// Visits every point of the refined loops; returns how many were compared.
int64_t check_against_arithmetic(Refined& refined, std::span<const Binding> bindings);

}  // namespace tn
