// Joining tensors and taking them apart.
#include <cstring>

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/known_values.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "runtime/threads.h"
#include "tenon/ops.h"

namespace tn::ops {
namespace {

struct AxisAttrs {
  Axis axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct SplitAttrs {
  Maybe<int64_t> sections;
  Axis axis;
  Maybe<Offsets> indices;
  static constexpr void fields(auto& a, auto&& f) {
    f("sections", a.sections), f("axis", a.axis), f("indices", a.indices);
  }
};

struct ChunkAttrs {
  int64_t chunks = 1;
  Axis axis;
  static constexpr void fields(auto& a, auto&& f) {
    f("chunks", a.chunks, required), f("axis", a.axis);
  }
};

struct SplitSizesAttrs {
  Maybe<int64_t> split_size_or_sections;
  Maybe<Offsets> sizes;
  Axis dim;
  static constexpr void fields(auto& a, auto&& f) {
    f("split_size_or_sections", a.split_size_or_sections), f("sizes", a.sizes), f("dim", a.dim);
  }
};

struct RepeatAttrs {
  Maybe<Axis> axis;
  static constexpr void fields(auto& a, auto&& f) { f("axis", a.axis); }
};

struct TileAttrs {
  Offsets repetitions;
  static constexpr void fields(auto& a, auto&& f) { f("repetitions", a.repetitions, required); }
};

struct RollAttrs {
  Offsets shift;
  Maybe<Axes> axis;
  static constexpr void fields(auto& a, auto&& f) {
    f("shift", a.shift, required), f("axis", a.axis);
  }
};

void prepare_concat(ConcatAttrs& a, Tensors& in) {
  if (in.empty()) fail("concat: no tensors to join");
  promote_all(in, "concat", any_type);
  if (!a.axis) {
    for (Tensor& t : in) t = tn::reshape(t, {Dim(-1)});
    a.axis = Axis(0);
  }
  a.axis = Axis(normal_axis(*a.axis, in[0].rank(), "concat"));
  // A recorded op has a limited number of operands: more are joined group by group first.
  constexpr size_t kMost = 1 << 15;
  if (in.size() <= kMost) return;
  Tensors groups;
  for (size_t i = 0; i < in.size(); i += kMost) {
    auto first = in.begin() + static_cast<std::ptrdiff_t>(i);
    auto count = static_cast<std::ptrdiff_t>(std::min(kMost, in.size() - i));
    groups.push_back(tn::concat(Tensors(first, first + count), *a.axis));
  }
  in = std::move(groups);
}

Type infer_concat(const ConcatAttrs& a, Types in) {
  Type out = *in[0];
  int axis = a.axis->i;
  for (size_t i = 1; i < in.size(); ++i) {
    const Type& x = *in[i];
    if (x.dtype != out.dtype)
      fail(Fault::type, "concat: operands have different element types: {} and {}", *in[0], x);
    if (x.rank() != out.rank()) fail("concat: ranks differ: {} and {}", *in[0], x);
    for (int k = 0; k < x.rank(); ++k)
      if (k != axis && !decide_equal(x.shape[k], out.shape[k]))
        fail("concat: extents of axis {} differ: {} ({}) and {} ({})", k, out.shape[k], *in[0],
             x.shape[k], x);
    out.shape[axis] += x.shape[axis];
  }
  return out;
}

/// An element comes from the last operand that begins at or before it.
void lower_concat(const ConcatAttrs& a, loop::Lowering& l) {
  loop::Coords to = l.loops(l.out[0]->shape), from = to;
  auto axis = static_cast<size_t>(a.axis->i);
  loop::Element joined;
  Dim begin = 0;
  for (size_t i = 0; i < l.in.size(); ++i) {
    Dim extent = l.in[i]->shape[a.axis->i];
    from[axis] = l.sub(to[axis], l.number(begin));
    loop::Element part = l.load(static_cast<int>(i), from, l.inside({{from[axis], extent}}));
    S is_before = l.b.index(to[axis]) < l.b.index(l.number(begin));
    joined = i == 0 ? part : loop::select(is_before, joined, part);
    begin += extent;
  }
  l.store(0, to, joined);
}

/// Each operand gets its part.
Tensors vjp_concat(const ConcatAttrs& a, const Primal& p, const Tensors& cts) {
  Tensors back;
  Dim begin = 0;
  for (const Tensor& x : p.in) {
    Dim end = begin + x.shape()[a.axis->i];
    back.push_back(slice_axis(cts[0], a.axis->i, begin, end));
    begin = end;
  }
  return back;
}

Tensors join_stacked(const AxisAttrs& a, const Tensors& in) {
  if (in.empty()) fail("stack: no tensors to join");
  Tensors parts = in;
  promote_all(parts, "stack", any_type);
  int axis = normal_axis(a.axis, parts[0].rank() + 1, "stack");
  Shape wanted = parts[0].shape(), shape = wanted;
  shape.insert(axis, 1);
  for (Tensor& t : parts) {
    if (!decide_equal(t.shape(), wanted))
      fail("stack: shapes differ: {} and {}", *type_of(in[0]), *type_of(t));
    t = tn::reshape(t, shape);
  }
  return {tn::concat(parts, Axis(axis))};
}

/// The pieces of `x` between neighbouring `cuts`.
Tensors cut(const Tensor& x, int axis, const std::vector<Dim>& cuts) {
  Tensors parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    parts.push_back(slice_axis(x, axis, cuts[i], decide_max(cuts[i], cuts[i + 1])));
  return parts;
}

/// As Python reads the end of a slice.
Dim cut_place(Offset at, Dim n) {
  if (!decide_at_least(at, 0)) at = at + n;
  return decide_at_least(at, 0) ? decide_min(at.size(), n) : 0;
}

/// Sections of equal size, or with `uneven` the first ones longer by one.
Tensors split_axis(std::string_view op, const SplitAttrs& a, const Tensor& x, bool uneven) {
  int axis = normal_axis(a.axis, x.rank(), op);
  if (a.sections.set == a.indices.set)
    fail("{}: give either sections or indices ({})", op, *type_of(x));
  Dim n = x.shape()[axis];
  std::vector<Dim> cuts = {0};
  if (a.sections) {
    int64_t count = *a.sections;
    if (count < 1) fail("{}: {} sections of {}", op, count, *type_of(x));
    check_results(op, count, *type_of(x));
    if (!uneven && !decide_divides(count, n))
      fail(Hint{"array_split allows sections of different sizes"},
           "{}: axis {} does not divide into {} equal sections: {} ({})", op, axis, count, n,
           *type_of(x));
    // The first `rest` sections are longer by one.
    Dim size = floor_div(n, count), rest = uneven ? mod(n, count) : 0;
    for (int64_t i = 1; i <= count; ++i) cuts.push_back(size * i + tn::min(rest, i));
  } else {
    for (Offset at : *a.indices) cuts.push_back(cut_place(at, n));
    cuts.push_back(n);
  }
  return cut(x, axis, cuts);
}

/// Pieces of `size` elements; the last one has what is left.
Tensors cut_by_size(const Tensor& x, int axis, Dim size) {
  Dim n = x.shape()[axis];
  std::vector<Dim> cuts = {0};
  while (!decide_at_least(cuts.back(), n)) cuts.push_back(decide_min(cuts.back() + size, n));
  return cuts.size() == 1 ? Tensors{x} : cut(x, axis, cuts);
}

Tensors cut_in_chunks(const ChunkAttrs& a, const Tensors& in) {
  int axis = normal_axis(a.axis, in[0].rank(), "chunk");
  Dim n = in[0].shape()[axis];
  if (a.chunks < 1) fail("chunk: chunks must be at least 1: {} ({})", a.chunks, *type_of(in[0]));
  if (decide_at_least(a.chunks, n)) return cut_by_size(in[0], axis, 1);
  return cut_by_size(in[0], axis, floor_div(n + (a.chunks - 1), a.chunks));
}

Tensors cut_in_sizes(const SplitSizesAttrs& a, const Tensors& in) {
  const Type& x = *type_of(in[0]);
  int axis = normal_axis(a.dim, x.rank(), "split");
  if (a.split_size_or_sections.set == a.sizes.set)
    fail("split: give either the size of all sections or a list of sizes ({})", x);
  if (a.split_size_or_sections) {
    int64_t size = *a.split_size_or_sections;
    if (size < 1) fail("split: the size of a section must be at least 1: {} ({})", size, x);
    return cut_by_size(in[0], axis, size);
  }
  std::vector<Dim> cuts = {0};
  for (Offset size : *a.sizes) {
    if (!decide_at_least(size, 0)) fail("split: a section has a negative size: {} ({})", size, x);
    cuts.push_back(cuts.back() + size.size());
  }
  if (!decide_equal(cuts.back(), x.shape[axis]))
    fail("split: the sizes sum to {}, not to {}, the extent of axis {}: {}", cuts.back(),
         x.shape[axis], axis, x);
  return cut(in[0], axis, cuts);
}

Tensors take_apart(const AxisAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  int axis = normal_axis(a.axis, x.rank(), "unstack");
  Shape shape = without_axes(x.shape(), Axes(axis));
  Tensors parts;
  check_results("unstack", x.shape()[axis].value(), *type_of(x));
  for (int64_t i = 0; i < x.shape()[axis].value(); ++i)
    parts.push_back(tn::reshape(slice_axis(x, axis, i, i + 1), shape));
  return parts;
}

/// The extent n becomes [n, count], then one axis again.
Tensor repeat_alike(const Tensor& x, int axis, int64_t count) {
  Shape apart = x.shape(), repeated = x.shape();
  apart.insert(axis + 1, 1);
  repeated.insert(axis + 1, count);
  Tensor wide = tn::broadcast_to(tn::reshape(x, apart), repeated);
  return tn::reshape(wide, with_extent(x.shape(), axis, x.shape()[axis] * Dim(count)));
}

Tensors repeat_elements(const RepeatAttrs& a, const Tensors& in) {
  Tensor x = a.axis ? in[0] : tn::reshape(in[0], {Dim(-1)});
  int axis = a.axis ? normal_axis(*a.axis, x.rank(), "repeat") : 0;
  check_kind("repeat", integers, in[1].dtype());
  Tensor repeats = cast_to(in[1], DType::i64);
  bool alike = repeats.size() == 1 && repeats.rank() <= 1;
  if (!alike && (repeats.rank() != 1 || !decide_equal(repeats.shape()[0], x.shape()[axis])))
    fail("repeat: repeats must be one number or one for each element of axis {}: {} ({})", axis,
         *type_of(in[1]), *type_of(x));
  Tensor known = values_now("repeat", repeats);
  auto* counts = known.data<int64_t>();
  Dim total = 0;
  for (int64_t i = 0; i < repeats.size(); ++i) {
    if (counts[i] < 0)
      fail("repeat: a negative number of repeats: {} ({})", counts[i], *type_of(x));
    total += Dim(counts[i]);
  }
  if (alike) return {repeat_alike(x, axis, counts[0])};
  // Result j is a copy of the first element whose copies end beyond j.
  Tensor ends = tn::cumulative_sum(repeats);
  Tensor places = tn::searchsorted(ends, tn::iota({total}), nullptr, "right");
  return {tn::gather(x, {places}, Axes(axis))};
}

/// Each extent n becomes [count, n], then one axis again.
Tensors repeat_whole(const TileAttrs& a, const Tensors& in) {
  int rank = std::max(in[0].rank(), a.repetitions.size());
  Shape shape = with_leading_ones(in[0].shape(), rank), apart, repeated, joined;
  for (int k = 0; k < rank; ++k) {
    int given = k - (rank - a.repetitions.size());
    Offset repetitions = given < 0 ? 1 : a.repetitions[given];
    if (!decide_at_least(repetitions, 0))
      fail("tile: a negative number of repetitions: {} ({})", repetitions, *type_of(in[0]));
    Dim count = repetitions.size();
    if (!count.is(1)) apart.push_back(1), repeated.push_back(count);
    apart.push_back(shape[k]), repeated.push_back(shape[k]);
    joined.push_back(shape[k] * count);
  }
  return {tn::reshape(tn::broadcast_to(tn::reshape(in[0], apart), repeated), joined)};
}

/// Shifts by a multiple of the extent do nothing.
Tensor roll_axis(const Tensor& x, int axis, Offset shift) {
  Dim n = x.shape()[axis];
  if (n.is(0)) return x;
  if (shift.is_const() && shift.raw == Offset::kLeast)
    fail("roll: the shift is below {}", Offset::kLeast);
  bool back = !decide_at_least(shift, 0);
  Dim places = (back ? Offset(0) - shift : shift).size();
  if (decide_at_least(places, n)) places = mod(places, n);
  if (decide_equal(places, 0)) return x;
  Dim first = back ? n - places : places;  // elements that come round to the front
  return tn::concat({slice_axis(x, axis, n - first, n), slice_axis(x, axis, 0, n - first)},
                    Axis(axis));
}

Tensors roll_axes(const RollAttrs& a, const Tensors& in) {
  Tensor x = in[0];
  if (!a.axis) {
    Offset shift = 0;
    for (Offset s : a.shift) shift = shift + s;
    return {tn::reshape(roll_axis(tn::reshape(x, {Dim(-1)}), 0, shift), x.shape())};
  }
  int shifts = a.shift.size(), axes = a.axis->size();
  if (shifts != axes && shifts != 1 && axes != 1)
    fail("roll: {} shifts for {} axes ({})", shifts, axes, *type_of(x));
  for (int i = 0; i < std::max(shifts, axes); ++i) {
    int axis = normal_axis((*a.axis)[axes == 1 ? 0 : i], x.rank(), "roll");
    x = roll_axis(x, axis, a.shift[shifts == 1 ? 0 : i]);
  }
  return {x};
}

}  // namespace

constexpr auto concat_def = Op<ConcatAttrs>{
    .doc =
        "Joins tensors along an existing axis; with `axis` None they are flattened first. The "
        "other "
        "extents must be equal; element types are promoted.",
    .aliases = {"concatenate", "cat"},
    .args = {"*arrays"},
    .prepare = rule<prepare_concat>,
    .infer = rule<infer_concat>,
    .lower = rule<lower_concat>,
    .linear = Linear::jointly,
    .vjp = rule<vjp_concat>,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3], f32[4,3]"},
                {"f32[2,3], f32[2,1], f32[2,2]", "axis=-1"},
                {"f32[3]"},
                {"f32[0,3], f32[2,3]", "axis=0"}},
};
TN_OP(concat);

constexpr auto stack_def = Composite<AxisAttrs>{
    .doc = "Joins tensors of one shape along a new axis at `axis`.",
    .args = {"*arrays"},
    .body = rule<join_stacked>,
    .samples = {{"f32[2,3], f32[2,3]"},
                {"f32[2,3], f32[2,3], f32[2,3]", "axis=-1"},
                {"f32[], f32[]"}},
};
TN_OP(stack);

constexpr auto unstack_def = Composite<AxisAttrs>{
    .doc = "The slices along `axis`, without it.",
    .aliases = {"unbind"},
    .args = {"x"},
    .results = {"*"},
    .body = rule<take_apart>,
    .samples = {{"f32[2,3]"}, {"f32[2,3]", "axis=-1"}},
};
TN_OP(unstack);

constexpr auto split_def = Composite<SplitAttrs>{
    .doc =
        "Pieces along `axis`: `sections` of equal size, or cut before each of `indices`. An axis "
        "that "
        "does not divide into equal sections is an error.",
    .args = {"x"},
    .results = {"*"},
    .body = [](const SplitAttrs& a,
               const Tensors& in) { return split_axis("split", a, in[0], false); },
    .samples = {{"f32[6,2]", "sections=3"}, {"f32[2,5]", "indices=[1,3], axis=-1"}},
};
TN_OP(split);

constexpr auto array_split_def = Composite<SplitAttrs>{
    .doc =
        "Pieces along `axis`: `sections` of nearly equal size, the first ones longer by one where "
        "the "
        "axis does not divide, or cut before each of `indices`.",
    .args = {"x"},
    .results = {"*"},
    .body = [](const SplitAttrs& a,
               const Tensors& in) { return split_axis("array_split", a, in[0], true); },
    .samples = {{"f32[7,2]", "sections=3"}, {"f32[2,5]", "indices=[1,3], axis=-1"}},
};
TN_OP(array_split);

constexpr auto chunk_def = Composite<ChunkAttrs>{
    .doc =
        "At most `chunks` pieces along `axis`, all of the same size but the last, which may be "
        "smaller: 5 elements make pieces of 2, 2 and 1.",
    .args = {"x"},
    .results = {"*"},
    .body = rule<cut_in_chunks>,
    .samples = {{"f32[5,2]", "chunks=3"}, {"f32[2,6]", "chunks=4, axis=-1"}},
};
TN_OP(chunk);

/// PyTorch's `split`, which takes the size of the sections and not their number.
constexpr auto split_sizes_def = Composite<SplitSizesAttrs>{
    .doc = "Sections of `split_size_or_sections` elements along `dim`, or of `sizes`.",
    .aliases = {"torch.split"},
    .args = {"x"},
    .results = {"*"},
    .surface = false,
    .body = rule<cut_in_sizes>,
};
TN_OP(split_sizes);

constexpr auto repeat_def = Composite<RepeatAttrs>{
    .doc =
        "Repeats each element `repeats` times along `axis`; of the flattened tensor when it is "
        "left out. `repeats` is one integer, or one for each element of the axis. The size depends "
        "on its values, so they are computed now.",
    .aliases = {"repeat_interleave"},
    .args = {"x", "repeats"},
    .body = rule<repeat_elements>,
    .samples = {{"f32[2,3], i64[]", "", 0, 3},
                {"f32[2,3], i64[1]", "axis=-2", 0, 3},
                {"f32[3], i32[3]", "", 0, 3},
                {"f32[2,3], i64[3]", "axis=1", 0, 3}},
};
TN_OP(repeat);

constexpr auto tile_def = Composite<TileAttrs>{
    .doc =
        "Repeats the whole tensor `repetitions[k]` times along axis k; missing axes and "
        "repetitions "
        "count from the end.",
    .args = {"x"},
    .body = rule<repeat_whole>,
    .samples = {{"f32[2,3]", "repetitions=[2]"},
                {"f32[3]", "repetitions=[2,1,2]"},
                {"f32[]", "repetitions=[3]"}},
};
TN_OP(tile);

constexpr auto roll_def = Composite<RollAttrs>{
    .doc =
        "Shifts elements along `axis` by `shift` places; those that leave at the end come back at "
        "the "
        "start. Without `axis` the tensor is rolled as if flattened.",
    .args = {"x"},
    .body = rule<roll_axes>,
    .samples = {{"f32[2,3]", "shift=[2]"},
                {"f32[4,3]", "shift=[1,-1], axis=[0,1]"},
                {"f32[4]", "shift=[-9], axis=[-1]"}},
};
TN_OP(roll);

}  // namespace tn::ops
