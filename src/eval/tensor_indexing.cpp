// x[...] and its functional update, as NumPy defines them, in terms of slice, reshape, gather and
// scatter.
#include <algorithm>

#include "base/error.h"
#include "ir/emit.h"
#include "ir/named_calls.h"
#include "ir/number.h"
#include "ir/sizes.h"
#include "ir/trace.h"
#include "ops/indexing.h"
#include "ops/shapes.h"
#include "ops/slice_attrs.h"
#include "tenon/ops.h"

namespace tn {

Index::Index(AllOp* op, Place place) : kind(Kind::slice), place(place) {
  if (op != &tn::all) fail(Fault::type, "index: tn::all is the only function that can be an index");
}

Index Index::slice(Maybe<Offset> start, Maybe<Offset> stop, Maybe<int64_t> step, Place place) {
  Index i(0, place);
  i.kind = Kind::slice;
  i.start = start, i.stop = stop, i.step = step;
  return i;
}

Selection::Selection(Tensor& variable, std::initializer_list<Index> indices)
    : variable_(&variable), source_(variable), indices_(indices) {}
Selection::Selection(const Selection&) = default;
Selection::Selection(Selection&&) noexcept = default;
Selection::~Selection() = default;

const Tensor& Selection::value() const {
  if (!value_.defined()) value_ = index(source_, indices_);
  return value_;
}

Tensor& Selection::assign(const Operand& v) {
  return *variable_ = index_update(*variable_, indices_, v);
}

Tensor& Selection::operator+=(const Operand& v) && {
  return assign(add(Operand(*this, v.place), v));
}
Tensor& Selection::operator-=(const Operand& v) && {
  return assign(subtract(Operand(*this, v.place), v));
}
Tensor& Selection::operator*=(const Operand& v) && {
  return assign(multiply(Operand(*this, v.place), v));
}
Tensor& Selection::operator/=(const Operand& v) && {
  return assign(divide(Operand(*this, v.place), v));
}
Tensor& Selection::operator%=(const Operand& v) && {
  return assign(remainder(Operand(*this, v.place), v));
}

Selection Tensor::operator[](const Index& index) & { return {*this, {index}}; }
Selection Tensor::operator[](std::initializer_list<Index> indices) & { return {*this, indices}; }
Tensor Tensor::operator[](const Index& index) const& { return tn::index(*this, {index}); }
Tensor Tensor::operator[](std::initializer_list<Index> indices) const& {
  return tn::index(*this, indices);
}

Tensor RowIterator::operator*() const { return index(x_, {at_}); }
RowIterator Tensor::begin() const {
  if (rank() == 0) fail("iteration: a tensor without axes has no rows: {}", *type_of(*this));
  return {*this, 0};
}
RowIterator Tensor::end() const { return {*this, dim(0)}; }

void fail_uneven_rows(size_t first, size_t other, std::source_location at) {
  LocScope scope(at);
  fail("array: rows differ in length: {} and {}", first, other);
}

namespace {

/// An index worked out for one tensor: first a slice of some axes, then a reshape that drops axes
/// taken by integers and adds new ones, then a gather by tensors.
struct Indexing {
  Offsets start, stop;  // per axis
  Ints step;
  bool slices = false;  // some axis is not taken whole
  Shape kept;           // after the reshape
  Axes gathered;        // axes of `kept` that tensors index
  Tensors indices;
  bool apart = false;  // the index tensors are separated: their axes come first
};

bool is_mask(const Index& i) {
  return i.kind == Index::Kind::tensor && i.tensor.dtype() == DType::b1;
}

/// The axes of x that an index uses up.
int consumes(const Index& i) {
  if (i.kind == Index::Kind::all_others || i.kind == Index::Kind::new_axis) return 0;
  return is_mask(i) ? i.tensor.rank() : 1;
}

/// Ellipsis followed by the whole slices it stands for, masks replaced by the positions of their
/// true elements. The ellipsis itself stays: it separates index tensors even when it stands for no
/// axis, as in NumPy.
std::vector<Index> spell_out(const Type& x, const std::vector<Index>& given) {
  int used = 0, dots = 0;
  for (const Index& i : given) used += consumes(i), dots += i.kind == Index::Kind::all_others;
  if (used > x.rank())
    fail(Fault::index, "index: too many indices: {} for a tensor of rank {} ({})", used, x.rank(),
         x);
  if (dots > 1) fail(Fault::index, "index: an index has at most one ellipsis (...)");
  std::vector<Index> out;
  int axis = 0;
  auto fill = [&] {
    for (int n = x.rank() - used; n > 0; --n, ++axis) out.push_back(Index::slice());
  };
  for (const Index& i : given) {
    if (i.kind == Index::Kind::all_others) {
      out.push_back(i);
      fill();
    } else if (is_mask(i)) {
      for (int k = 0; k < i.tensor.rank(); ++k)
        if (!decide_equal(i.tensor.shape()[k], x.shape[axis + k]))
          fail(Fault::index, "index: mask {} does not fit axis {} of {}", *type_of(i.tensor),
               axis + k, x);
      for (Tensor& positions : tn::nonzero(i.tensor)) out.emplace_back(std::move(positions));
      axis += i.tensor.rank();
    } else {
      out.push_back(i);
      axis += consumes(i);
    }
  }
  if (dots == 0) fill();
  return out;
}

/// The bounds of a Python slice, for `slice`, whose conventions are the same.
void add_slice(Indexing& out, const Index& i, Dim extent) {
  int64_t step = i.step.value_or(1);
  if (step == 0) fail("index: a slice step must not be 0");
  Offset size = extent;
  bool whole = !i.start.set && !i.stop.set && step == 1;
  out.start.push_back(i.start.value_or(step > 0 ? Offset(0) : size - 1));
  out.stop.push_back(i.stop.value_or(step > 0 ? size : Offset(-1) - size));
  out.step.push_back(step);
  out.slices |= !whole;
}

Dim checked(Offset at, Dim extent, int axis, const Type& x) {
  Offset place = decide_at_least(at, 0) ? at : at + extent;
  if (!decide_at_least(place, 0) || decide_at_least(place, extent))
    fail(Fault::index, "index: {} is out of bounds for axis {} of extent {} ({})", at, axis, extent,
         x);
  return place.size();
}

void check_index_tensor(const Tensor& indices) {
  if (is_given_number(indices)) fail_unknown_value();  // a number of Python's is always checked
  check_kind("index", integers, indices.dtype());
}

Dim sliced_extent(const Indexing& s, int axis, Dim extent) {
  ops::SliceBounds b =
      ops::canonical_bounds({s.start[axis], s.stop[axis], s.step[axis]}, extent, "index");
  ops::SliceAttrs one{{b.start}, {b.stop}, Ints(b.step), {}};
  return ops::slice_extent(one, 0);
}

Indexing work_out(const Type& x, const std::vector<Index>& given) {
  std::vector<Index> list = spell_out(x, given);
  bool by_tensor = false;
  for (const Index& i : list) by_tensor |= i.kind == Index::Kind::tensor;
  Indexing out;
  int axis = 0, last = -1;
  for (size_t n = 0; n < list.size(); ++n) {
    const Index& i = list[n];
    if (i.kind == Index::Kind::all_others) continue;
    if (i.kind == Index::Kind::new_axis) {
      out.kept.push_back(1);
      continue;
    }
    Dim extent = x.shape[axis];
    if (i.kind == Index::Kind::slice) {
      add_slice(out, i, extent);
      out.kept.push_back(out.slices ? sliced_extent(out, axis, extent) : extent);
    } else if (i.kind == Index::Kind::integer && !by_tensor) {
      Dim at = checked(i.at, extent, axis, x);
      out.start.push_back(at), out.stop.push_back(at + 1), out.step.push_back(1);
      out.slices = true;
    } else {  // beside an index tensor, an integer is one too
      bool by_tensor_here = i.kind == Index::Kind::tensor;
      if (by_tensor_here) check_index_tensor(i.tensor);
      Tensor at =
          by_tensor_here ? i.tensor : ops::value_of(checked(i.at, extent, axis, x), DType::i64);
      add_slice(out, Index::slice(), extent);
      out.apart |= last >= 0 && last != static_cast<int>(n) - 1;
      last = static_cast<int>(n);
      out.gathered.push_back(out.kept.rank());
      out.indices.push_back(ops::wrap_negative("index", at, x, axis));
      out.kept.push_back(extent);
    }
    ++axis;
  }
  return out;
}

/// The axes of the broadcast index tensors, moved to the front or back to their place.
Tensor move_index_axes(const Tensor& x, const Indexing& ix, bool to_front) {
  int count = 0;
  for (const Tensor& t : ix.indices) count = std::max(count, t.rank());
  int first = ix.gathered[0].i;
  Axes here, front;
  for (int k = 0; k < count; ++k) here.push_back(first + k), front.push_back(k);
  return to_front ? moveaxis(x, here, front) : moveaxis(x, front, here);
}

Tensor combine(Update how, const Tensor& x, const Tensor& value) {
  switch (how) {
    case Update::set:
      return value;
    case Update::add:
      return tn::add(x, value);
    case Update::multiply:
      return tn::multiply(x, value);
    case Update::maximum:
      return tn::maximum(x, value);
    case Update::minimum:
      return tn::minimum(x, value);
  }
  return value;
}

std::string_view scatter_mode(Update how) {
  constexpr std::string_view names[] = {"set", "add", "mul", "max", "min"};
  return names[static_cast<int>(how)];
}

/// `value` as the update of the region `x`: its type, and no axis more than there is room for.
Tensor as_update(const Operand& value, const Tensor& x) {
  Tensor v = value.tensor ? *value.tensor
                          : make_scalar(value.scalar, default_dtype(value.scalar.kind), true);
  Tensors both = {x, v};
  DType common = promote_all(both, "index_update", any_type);
  if (common != x.dtype() && kind_of(x.dtype()) < kind_of(common) &&
      !(is_integer(common) && is_integer(x.dtype())))
    fail(Fault::type,
         "index: cannot assign a value of type {} to a tensor of type {}; convert it with astype",
         common, x.dtype());
  return cast_to(v, x.dtype());
}

/// NumPy lets an update have leading axes of extent 1 beyond those of the region.
Tensor fit(const Tensor& value, const Shape& region) {
  Tensor v = value;
  while (v.rank() > region.rank() && v.shape()[0].is(1)) v = squeeze(v, Axes(0));
  bool fits = v.rank() <= region.rank();
  for (int i = 1; fits && i <= v.rank(); ++i)
    fits = v.shape()[v.rank() - i].is(1) ||
           decide_equal(v.shape()[v.rank() - i], region[region.rank() - i]);
  if (!fits)
    fail("index: a value {} does not fit the {} elements it is assigned to", *type_of(value),
         region);
  return broadcast_to(v, region);
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Index>& indices) {
  LocScope scope(indices.empty() ? Loc() : Loc::of(indices[0].place));
  NamedCall named("index");
  DeviceScope there(x.device());
  Indexing ix = work_out(*type_of(x), indices);
  Tensor y = ix.slices ? slice(x, ix.start, ix.stop, ix.step) : x;
  if (!identical(y.shape(), ix.kept)) y = reshape(y, ix.kept);
  if (ix.indices.empty()) return y;
  y = gather(y, ix.indices, ix.gathered);
  return ix.apart ? move_index_axes(y, ix, true) : y;
}

Tensor index_update(const Tensor& x, const std::vector<Index>& indices, const Operand& value,
                    Update how) {
  LocScope scope(value.place);
  NamedCall named("index");
  DeviceScope there(x.device());
  bool single_mask =
      indices.size() == 1 && is_mask(indices[0]) && indices[0].tensor.rank() == x.rank();
  Tensor given = as_update(value, x);
  if (single_mask && given.rank() == 0) {
    if (!decide_equal(indices[0].tensor.shape(), x.shape()))
      fail(Fault::index, "index: mask {} does not fit {}", *type_of(indices[0].tensor),
           *type_of(x));
    return where(indices[0].tensor, combine(how, x, given), x);
  }
  Indexing ix = work_out(*type_of(x), indices);
  Tensor region = ix.slices ? slice(x, ix.start, ix.stop, ix.step) : x;
  Shape sliced = region.shape();
  Tensor kept = identical(sliced, ix.kept) ? region : reshape(region, ix.kept);
  if (ix.indices.empty()) {
    kept = combine(how, kept, fit(given, ix.kept));
  } else {
    Tensor target = gather(kept, ix.indices, ix.gathered);
    Tensor update =
        fit(given, ix.apart ? move_index_axes(target, ix, true).shape() : target.shape());
    if (ix.apart) update = move_index_axes(update, ix, false);
    kept = scatter(kept, update, ix.indices, ix.gathered, scatter_mode(how));
  }
  Tensor back = identical(kept.shape(), sliced) ? kept : reshape(kept, sliced);
  return ix.slices ? slice_update(x, back, ix.start, ix.stop, ix.step) : back;
}

}  // namespace tn
