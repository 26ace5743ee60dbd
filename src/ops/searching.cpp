// Searching for values: positions in sorted data, and ops whose result sizes depend on values.
#include <algorithm>

#include "base/error.h"
#include "ir/interned.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"
#include "ops/shapes.h"
#include "plan/host_search.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

void prepare_searchsorted(SearchAttrs& a, Tensors& in) {
  if (in[0].rank() != a.batch_dims + 1)
    fail("searchsorted: x1 needs one axis after {} batch axes: {}", a.batch_dims, *type_of(in[0]));
  if (in.size() > 2 && in[2].defined()) {
    check_kind("searchsorted", integers, in[2].dtype());
    if (in[2].rank() != 1 || !decide_equal(in[2].shape()[0], in[0].shape()[0]))
      fail("searchsorted: sorter does not fit x1: {} and {}", *type_of(in[2]), *type_of(in[0]));
    in[0] = tn::take(in[0], in[2], Axis(0));  // the sorter has one axis, so x1 has
  }
  in.resize(2);
  promote_all(in, "searchsorted", every_type);
}

TypeList infer_searchsorted(const SearchAttrs& a, Types in) {
  if (in.size() != 2 || in[0]->dtype != in[1]->dtype || in[0]->rank() != a.batch_dims + 1)
    fail(Fault::type, "searchsorted: x1 needs one axis and the element type of x2: {} and {}",
         *in[0], *in[in.size() - 1]);
  check_kind("searchsorted", every_type, in[0]->dtype);
  for (int k = 0; k < a.batch_dims; ++k)
    if (in[1]->rank() <= k || !decide_equal(in[0]->shape[k], in[1]->shape[k]))
      fail("searchsorted: batch axis {} differs: {} and {}", k, *in[0], *in[1]);
  return Type{DType::i64, in[1]->shape};
}

/// An element in the order of sorts: real parts, then imaginary ones, NaN behind all.
class SortKey {
 public:
  SortKey(loop::Lowering& l, int operand, const loop::Coords& at, loop::MaskId mask = loop::kNone)
      : x_(l.load(operand, at, mask)) {
    DType type = x_.re.type();
    x_.re = l.b.cast(x_.re, type == DType::b1 ? DType::u8 : info(type).compute);
  }
  /// Whether `other` does not come before it.
  S is_first(SortKey& other) {
    const loop::Element& y = other.x_;
    S first = x_.re <= y.re;
    if (x_.is_complex()) first = ((x_.re < y.re) | ((x_.re == y.re) & (x_.im <= y.im))) & !is_nan();
    return is_float(x_.re.type()) ? first | other.is_nan() : first;
  }

 private:
  S is_nan() {
    if (nan_.builder) return nan_;
    nan_ = sc::is_nan(x_.re);
    if (x_.is_complex()) nan_ = nan_ | sc::is_nan(x_.im);
    return nan_;
  }

  loop::Element x_;
  S nan_ = {};
};

/// Halves what is left of x1 until nothing is. All searches take the same steps.
void lower_searchsorted(const SearchAttrs& a, loop::Lowering& l) {
  constexpr int64_t kMost = int64_t{1} << 48;
  loop::Coords to = l.loops(l.out[0]->shape), from(to.begin(), to.begin() + a.batch_dims);
  from.push_back({});
  Dim n = l.in[0]->shape[static_cast<int>(a.batch_dims)];
  SortKey wanted(l, 1, to);
  S last = l.b.constant(Scalar(int64_t{-1}), DType::i64);  // that is known to lie before
  for (int64_t part = 1; part <= std::min(bounds(n).hi, kMost); part *= 2) {
    // n / part elements are left, of a symbol perhaps none. This is the larger half.
    Dim half = floor_div(n + Dim(part), 2 * part);
    S next = last + l.b.index(l.number(half));
    from.back() = l.b.value_index(next, n);
    PolyId any = l.number(half - 1);
    SortKey probe(l, 0, from, n.is_const() ? loop::kNone : l.b.mask({&any, 1}));
    last = a.side == SearchSide::left ? sc::select(wanted.is_first(probe), last, next)
                                      : sc::select(probe.is_first(wanted), next, last);
  }
  l.store(0, to, {last + 1.0, {}});
}

/// Only an x1 for each example needs more than another shape of x2.
Tensors batch_searchsorted(const SearchAttrs& a, const BatchCall& call) {
  if (!call.batched[0] && a.batch_dims == 0) return emit_all(searchsorted, call.in, &a);
  SearchAttrs attrs{a.side, a.batch_dims + 1};
  return {emit(searchsorted, {with_batch(call, 0), with_batch(call, 1)}, attrs)};
}

Nonzero find_nonzero(std::string_view op, const Tensor& x) {
  check_kind(op, every_type, x.dtype());
  Tensor known =
      values_now(op, x, Hint{"where(mask, x, 0) keeps the shape that x[mask] would lose"});
  const void* values = known.data();
  std::vector<int64_t> shape;
  for (Dim d : x.shape()) shape.push_back(d.value());
  return tn::nonzero(element_of(x.dtype()), values, shape);
}

Tensors nonzero_body(const NoAttrs&, const Tensors& in) {
  if (in[0].rank() == 0) fail("nonzero: a scalar has no positions: {}", *type_of(in[0]));
  Nonzero found = find_nonzero("nonzero", in[0]);
  Tensors out;
  for (BufferRef& axis : found.axes)
    out.push_back(operand(std::move(axis), DType::i64, {found.count}));
  return out;
}

Tensors argwhere_body(const NoAttrs&, const Tensors& in) {
  Nonzero found = find_nonzero("argwhere", in[0].rank() ? in[0] : tn::reshape(in[0], {1}));
  int rank = in[0].rank();
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < found.count; ++i)
    for (int k = 0; k < rank; ++k)
      rows.push_back(found.axes[static_cast<size_t>(k)].data<int64_t>()[i]);
  return {from_elements(rows.data(), rows.size(), DType::i64, {found.count, rank})};
}

}  // namespace

constexpr auto searchsorted_def = Op<SearchAttrs>{
    .doc =
        "Where each element of `x2` belongs in the ascending `x1`, as int64: before equal "
        "elements, or "
        "after them when `side` is \"right\". With `sorter`, the order is that of `x1[sorter]`. "
        "NaN is larger than every number. The first `batch_dims` axes of `x1` and `x2` are one: "
        "each example is searched on its own.",
    .args = {"x1", "x2", "?sorter"},
    .prepare = rule<prepare_searchsorted>,
    .infer = rule<infer_searchsorted>,
    .lower = rule<lower_searchsorted>,
    .gradient = Gradient::zero,
    .batch_rule = rule<batch_searchsorted>,
    .samples = {{"f32[1], f32[2,3]"},
                {"f32[1], f32[4]", "side=right"},
                {"f32[1], f32[]"},
                {"f32[2,1], f32[2,3]", "batch_dims=1"}},
};
TN_OP(searchsorted);

constexpr auto nonzero_def = Composite<>{
    .doc =
        "The positions of the elements that are not 0, in row-major order: one int64 tensor per "
        "axis. "
        "NaN is not 0. The size depends on the values, so they are computed now.",
    .args = {"x"},
    .results = {"*"},
    .body = rule<nonzero_body>,
    .samples = {{"f32[7]", "", 0, 2}, {"f32[2,3,4]", "", 0, 2}},
};
TN_OP(nonzero);

constexpr auto argwhere_def = Composite<>{
    .doc =
        "The positions of the elements that are not 0, in row-major order: one row per element, "
        "one "
        "column per axis, as int64. The size depends on the values, so they are computed now.",
    .args = {"x"},
    .body = rule<argwhere_body>,
    .samples = {{"f32[7]", "", 0, 2}, {"f32[2,3]", "", 0, 2}},
};
TN_OP(argwhere);

}  // namespace tn::ops
