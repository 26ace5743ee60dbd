// Rows combined by the segment they belong to.
#include <limits>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/index_bounds.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct SegmentReductionAttrs {
  int64_t num_segments = 0;
  static constexpr void fields(auto& a, auto&& f) { f("num_segments", a.num_segments, required); }
};

Tensors combine(std::string_view op, const SegmentReductionAttrs& a, const Tensors& in,
                KindSet accepted, const Scalar& none, std::string_view mode) {
  const Type &x = *type_of(in[0]), &ids = *type_of(in[1]);
  check_kind(op, accepted, x.dtype);
  if (ids.rank() != 1 || x.rank() < 1 || !decide_equal(ids.shape[0], x.shape[0]))
    fail("{}: one segment for each row is needed: {} and {}", op, ids, x);
  if (a.num_segments < 0) fail("{}: a negative number of segments: {}", op, a.num_segments);
  Tensor start = filled(none, x.dtype, with_extent(x.shape, 0, a.num_segments));
  check_bounds(op, in[1], *type_of(start), 0, Negative::is_outside);
  return {tn::scatter(start, in[0], {in[1]}, Axes(0), mode)};
}

}  // namespace

constexpr auto segment_max_def = Composite<SegmentReductionAttrs>{
    .doc =
        "Row s is the maximum of the rows of `x` whose segment in `segment_ids` is s; the least "
        "value of the type, -inf for floats, when there is none. A segment out of bounds (also a "
        "negative one) is an error, which compiled code checks under `debug_indices` only; "
        "otherwise it drops the row.",
    .args = {"x", "segment_ids"},
    .body = [](const SegmentReductionAttrs& a, const Tensors& in) -> Tensors {
      return combine("segment_max", a, in, reals, least_of(in[0].dtype()), "max");
    },
    .samples = {{"f32[5], i64[5]", "num_segments=1", 0, 0.9},
                {"f32[8,2], i64[8]", "num_segments=2", 0, 1.9}},
};
TN_OP(segment_max);

constexpr auto segment_min_def = Composite<SegmentReductionAttrs>{
    .doc =
        "Row s is the minimum of the rows of `x` whose segment in `segment_ids` is s; the largest "
        "value of the type, inf for floats, when there is none. A segment out of bounds (also a "
        "negative one) is an error, which compiled code checks under `debug_indices` only; "
        "otherwise it drops the row.",
    .args = {"x", "segment_ids"},
    .body = [](const SegmentReductionAttrs& a, const Tensors& in) -> Tensors {
      return combine("segment_min", a, in, reals, largest_of(in[0].dtype()), "min");
    },
    .samples = {{"f32[5], i64[5]", "num_segments=1", 0, 0.9},
                {"f32[8,2], i64[8]", "num_segments=2", 0, 1.9}},
};
TN_OP(segment_min);

constexpr auto segment_prod_def = Composite<SegmentReductionAttrs>{
    .doc =
        "Row s is the product of the rows of `x` whose segment in `segment_ids` is s; 1 when "
        "there is none. A segment out of bounds (also a negative one) is an error, which compiled "
        "code checks under `debug_indices` only; otherwise it drops the row.",
    .args = {"x", "segment_ids"},
    .body = [](const SegmentReductionAttrs& a, const Tensors& in) -> Tensors {
      return combine("segment_prod", a, in, numeric, 1, "mul");
    },
    .samples = {{"f32[5], i64[5]", "num_segments=4", 0, 3},
                {"f32[5,2], i64[5]", "num_segments=4", 0, 3}},
};
TN_OP(segment_prod);

}  // namespace tn::ops
