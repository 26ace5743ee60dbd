// Tensors as sets: distinct values and membership.
#include "base/error.h"
#include "ir/interned.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"
#include "runtime/search.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

Unique find_unique(std::string_view op, const Tensor& x) {
  check_kind(op, every_type, x.dtype());
  const void* values = values_now(op, x);
  return tn::unique(element_of(x.dtype()), values, x.size());
}

Tensor positions(BufferRef& list, const Shape& shape) {
  RecordScope scope;
  return make_data(std::move(list), 0, intern(DType::i64, shape));
}

/// The distinct values as elements of `x`, so that derivatives reach them.
Tensor values_at(const Tensor& x, const Tensor& first) {
  return tn::take(tn::reshape(x, {Dim(-1)}), first, Axis(0));
}

struct IsinAttrs {
  bool invert = false;
  static constexpr void fields(auto& a, auto&& f) { f("invert", a.invert); }
};

/// Compares with the one element of the sorted list that may be equal.
Tensor is_member(const Tensor& x, const Tensor& list) {
  Tensor sorted = tn::sort(list);
  Tensor at = tn::minimum(tn::searchsorted(sorted, x), list.shape()[0] - 1);
  return tn::equal(tn::take(sorted, at, Axis(0)), x);
}

Tensors isin_body(const IsinAttrs& a, const Tensors& in) {
  Tensors both = in;
  promote_all(both, "isin", every_type);
  Tensor list = tn::reshape(both[1], {Dim(-1)});
  if (list.shape()[0] == Dim(0))
    return {tn::broadcast_to(Tensor::from_scalar(Scalar(a.invert)), both[0].shape())};
  Tensor found = is_member(both[0], list);
  return {a.invert ? tn::logical_not(found) : found};
}

}  // namespace

constinit const OpDef unique_all = Composite<>{
    .name = "unique_all",
    .doc =
        "The distinct elements in ascending order, the row-major position of the first of each, "
        "for each "
        "element the number of its value (in the shape of `x`), and how often each value occurs. "
        "NaN "
        "differs from NaN. Sizes depend on the values, so they are computed now.",
    .args = {"x"},
    .results = {"values", "indices", "inverse_indices", "counts"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Unique u = find_unique("unique_all", in[0]);
      Tensor first = positions(u.first, {u.count});
      return {values_at(in[0], first), first, positions(u.inverse, in[0].shape()),
              positions(u.counts, {u.count})};
    },
    .samples = {{"f32[7]"}, {"f32[2,3]"}, {"f32[]"}},
};

constinit const OpDef unique_counts = Composite<>{
    .name = "unique_counts",
    .doc =
        "The distinct elements in ascending order and how often each occurs. NaN differs from NaN. "
        "Sizes "
        "depend on the values, so they are computed now.",
    .args = {"x"},
    .results = {"values", "counts"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Unique u = find_unique("unique_counts", in[0]);
      Tensor values = values_at(in[0], positions(u.first, {u.count}));
      return {values, positions(u.counts, {u.count})};
    },
    .samples = {{"f32[7]"}, {"f32[2,3]"}},
};

constinit const OpDef unique_inverse = Composite<>{
    .name = "unique_inverse",
    .doc =
        "The distinct elements in ascending order and, in the shape of `x`, for each element the "
        "number "
        "of its value: `take(values, inverse_indices)` is `x`. NaN differs from NaN. Sizes depend "
        "on the "
        "values, so they are computed now.",
    .args = {"x"},
    .results = {"values", "inverse_indices"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Unique u = find_unique("unique_inverse", in[0]);
      Tensor values = values_at(in[0], positions(u.first, {u.count}));
      return {values, positions(u.inverse, in[0].shape())};
    },
    .samples = {{"f32[7]"}, {"f32[2,3]"}},
};

constinit const OpDef unique_values = Composite<>{
    .name = "unique_values",
    .doc =
        "The distinct elements in ascending order. NaN differs from NaN. The size depends on the "
        "values, "
        "so they are computed now.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors {
      Unique u = find_unique("unique_values", in[0]);
      return {values_at(in[0], positions(u.first, {u.count}))};
    },
    .samples = {{"f32[7]"}, {"f32[2,3]"}},
};

constinit const OpDef isin = Composite<IsinAttrs>{
    .name = "isin",
    .doc =
        "Whether each element of `x1` is among those of `x2`, or is not when `invert` is set. NaN "
        "is in "
        "no set.",
    .args = {"x1", "x2"},
    .body = rule<isin_body>,
    .samples = {{"f32[2,3], f32[4]"}, {"f32[5], f32[2,2]", "invert=true"}, {"f32[], f32[3]"}},
};

}  // namespace tn::ops
