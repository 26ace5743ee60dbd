#include <algorithm>

#include "base/error.h"
#include "ir/node.h"
#include "tenon/loops.h"
#include "transforms/derivative.h"

namespace tn {
namespace {

Tensors each(const Tensors& list, const Callback<Tensor(const Tensor&)>& f) {
  Tensors made;
  for (const Tensor& x : list) made.push_back(f(x));
  return made;
}

Tensors sliced(const Tensors& list, const Index& which) {
  return each(list, [&](const Tensor& x) { return index(x, {which}); });
}

/// even[0], odd[0], even[1] ...
Tensor interleaved(const Tensor& even, const Tensor& odd) {
  int64_t count = odd.dim(0);
  Shape shape = odd.shape();
  shape[0] = Dim(2 * count);
  Tensor joined = reshape(stack({index(even, {slice(none, count)}), odd}, 1), shape);
  return even.dim(0) > count ? concat({joined, index(even, {slice(count, none)})}) : joined;
}

/// Combined pairs give the results at odd positions; one more step gives those at even ones.
Tensors running(const flat::Combine& combine, const Tensors& xs) {
  int64_t length = xs[0].dim(0);
  if (length < 2) return xs;
  Tensors pairs = combine(sliced(xs, slice(none, length - 1, 2)), sliced(xs, slice(1, none, 2)));
  Tensors odd = running(combine, pairs), even = sliced(xs, slice(none, 1)), made;
  if (length > 2) {
    Tensors later =
        combine(sliced(odd, slice(none, (length - 1) / 2)), sliced(xs, slice(2, none, 2)));
    for (size_t i = 0; i < xs.size(); ++i) even[i] = concat({even[i], later[i]});
  }
  for (size_t i = 0; i < xs.size(); ++i) made.push_back(interleaved(even[i], odd[i]));
  return made;
}

void check_combined(const Tensors& made, const Tensors& before) {
  if (made.size() != before.size()) fail("associative_scan: the function changes the structure");
  for (size_t i = 0; i < made.size(); ++i)
    if (!identical(made[i].shape(), before[i].shape()))
      fail("associative_scan: the function changes the shape: {} to {}", *type_of(before[i]),
           *type_of(made[i]));
}

}  // namespace

Tensors flat::associative_scan(const Combine& combine, Tensors elems, bool reverse, int axis) {
  if (elems.empty()) fail("associative_scan: there are no tensors");
  elems = each(elems, [&](const Tensor& x) { return moveaxis(x, axis, 0); });
  for (const Tensor& x : elems)
    if (x.dim(0) != elems[0].dim(0))
      fail("associative_scan: lengths differ: {} and {}", elems[0].dim(0), x.dim(0));
  auto flipped = [](const Tensor& x) { return flip(x, 0); };
  auto checked = [&](const Tensors& earlier, const Tensors& later) {
    Tensors made = combine(earlier, later);
    check_combined(made, earlier);
    return made;
  };
  Tensors made = running(checked, reverse ? each(elems, flipped) : elems);
  if (reverse) made = each(made, flipped);
  return each(made, [&](const Tensor& x) { return moveaxis(x, 0, axis); });
}

void typed::check_index(const Tensor& index) {
  Kind kind = kind_of(index.dtype());
  if (index.rank() != 0 || (kind != Kind::integer && kind != Kind::natural))
    fail(Fault::type, "switch_: the index is one integer, not {}", *type_of(index));
}

}  // namespace tn
