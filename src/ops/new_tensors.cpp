// Tensors from nothing: constants, ranges, diagonals, grids.
#include <cmath>

#include "base/error.h"
#include "ir/element.h"
#include "ir/number.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {

static void lower_iota(const IotaAttrs& a, loop::Lowering& l) {
  loop::Coords at = l.loops(a.shape);
  S number = l.b.index(at[static_cast<size_t>(a.axis.i)]);
  DType real = real_of(a.dtype), wide = info(real).compute;
  S value = sc::cast(sc::cast(number, wide), real);
  loop::Element element{value, {}};
  if (is_complex(a.dtype)) element.im = loop::constant_like(value, 0);
  l.store(0, at, element);
}

constexpr auto iota_def = Op<IotaAttrs>{
    .doc = "The coordinate of every element along `axis`: 0, 1, 2 and so on.",
    .args = {},
    .prepare =
        [](IotaAttrs& a, Tensors&) {
          if (a.dtype == DType::b1) fail(Fault::type, "iota: coordinates are numbers: {}", a.dtype);
          check_sizes("iota", a.shape);
          a.axis = normal_axis(a.axis, a.shape.rank(), "iota");
        },
    .infer = [](const IotaAttrs& a, Types) { return Type{a.dtype, a.shape}; },
    .lower = rule<lower_iota>,
    .gradient = Gradient::zero,
    .samples = {{"", "shape=[4]"}, {"", "shape=[2,3], axis=-1, dtype=f32"}, {"", "shape=[0,2]"}},
};
TN_OP(iota);

constexpr auto size_value_def = Op<SizeAttrs>{
    .doc = "A size as an int64 of rank 0; it may be symbolic.",
    .args = {},
    .surface = false,
    .infer = [](const SizeAttrs&, Types) { return Type{DType::i64, {}}; },
    .lower = [](const SizeAttrs& a,
                loop::Lowering& l) { l.store(0, {}, {l.b.index(l.number(a.size)), {}}); },
    .gradient = Gradient::zero,
    .samples = {{"", "size=4"}},
};
TN_OP(size_value);

static Dim checked(std::string_view op, Dim size) {
  if (size.is_negative()) fail("{}: a size is negative: {}", op, size);
  return size;
}

static Shape checked(std::string_view op, const Shape& shape) {
  check_sizes(op, shape);
  return shape;
}

struct FullAttrs {
  Shape shape;
  Scalar fill_value;
  Maybe<DType> dtype;
  static constexpr void fields(auto& a, auto&& f) {
    f("shape", a.shape, required), f("fill_value", a.fill_value, required), f("dtype", a.dtype);
  }
};

static Tensor constant(std::string_view op, const Shape& shape, const Scalar& value, DType type) {
  if (value.kind == Kind::complex && !is_complex(type))
    fail(Fault::type, "{}: a complex number does not convert to {}", op, type);
  check_fits(op, value, type);
  return filled(value, type, checked(op, shape));
}

constexpr auto full_def = Composite<FullAttrs>{
    .doc =
        "`fill_value` everywhere. The element type follows from the number: bool, int64, float32 "
        "or "
        "complex64.",
    .args = {},
    .body = [](const FullAttrs& a, const Tensors&) -> Tensors {
      DType type = a.dtype.value_or(default_dtype(a.fill_value.kind));
      return {constant("full", a.shape, a.fill_value, type)};
    },
    .samples = {{"", "shape=[2,3], fill_value=1.5"}, {"", "shape=[], fill_value=2, dtype=f64"}},
};
TN_OP(full);

struct ShapeTypeAttrs {
  Shape shape;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) {
    f("shape", a.shape, required), f("dtype", a.dtype);
  }
};

constexpr auto zeros_def = Composite<ShapeTypeAttrs>{
    .doc = "Zero everywhere.",
    .args = {},
    .body = [](const ShapeTypeAttrs& a, const Tensors&) -> Tensors {
      return {constant("zeros", a.shape, 0, a.dtype)};
    },
    .samples = {{"", "shape=[2,3]"}, {"", "shape=[0], dtype=i32"}, {"", "shape=[], dtype=c64"}},
};
TN_OP(zeros);

constexpr auto ones_def = Composite<ShapeTypeAttrs>{
    .doc = "One everywhere.",
    .args = {},
    .body = [](const ShapeTypeAttrs& a, const Tensors&) -> Tensors {
      return {constant("ones", a.shape, 1, a.dtype)};
    },
    .samples = {{"", "shape=[2,3]"}, {"", "shape=[0], dtype=i32"}, {"", "shape=[], dtype=bool"}},
};
TN_OP(ones);

constexpr auto empty_def = Composite<ShapeTypeAttrs>{
    .doc = "A tensor whose values do not matter; they are zero.",
    .args = {},
    .body = [](const ShapeTypeAttrs& a, const Tensors&) -> Tensors {
      return {constant("empty", a.shape, 0, a.dtype)};
    },
    .samples = {{"", "shape=[2,3]"}, {"", "shape=[0], dtype=i32"}},
};
TN_OP(empty);

struct LikeAttrs {
  Maybe<DType> dtype;
  static constexpr void fields(auto& a, auto&& f) { f("dtype", a.dtype); }
};

static Tensor like(std::string_view op, const LikeAttrs& a, const Tensor& x, const Scalar& value) {
  return constant(op, x.shape(), value, a.dtype.value_or(x.dtype()));
}

constexpr auto zeros_like_def = Composite<LikeAttrs>{
    .doc = "Zero everywhere, with the shape of `x` and its element type unless `dtype` is given.",
    .args = {"x"},
    .body = [](const LikeAttrs& a, const Tensors& in) -> Tensors {
      return {like("zeros_like", a, in[0], 0)};
    },
    .samples = {{"f32[2,3]"}, {"f32[]", "dtype=i32"}},
};
TN_OP(zeros_like);

constexpr auto ones_like_def = Composite<LikeAttrs>{
    .doc = "One everywhere, with the shape of `x` and its element type unless `dtype` is given.",
    .args = {"x"},
    .body = [](const LikeAttrs& a, const Tensors& in) -> Tensors {
      return {like("ones_like", a, in[0], 1)};
    },
    .samples = {{"f32[2,3]"}, {"f32[]", "dtype=i32"}},
};
TN_OP(ones_like);

constexpr auto empty_like_def = Composite<LikeAttrs>{
    .doc = "A tensor like `x` whose values do not matter; they are zero.",
    .args = {"x"},
    .body = [](const LikeAttrs& a, const Tensors& in) -> Tensors {
      return {like("empty_like", a, in[0], 0)};
    },
    .samples = {{"f32[2,3]"}, {"f32[]", "dtype=i32"}},
};
TN_OP(empty_like);

constexpr auto full_like_def = Composite<LikeAttrs>{
    .doc =
        "`fill_value`, a number or a tensor that broadcasts, with the shape of `x` and its element "
        "type unless `dtype` is given.",
    .args = {"x", "fill_value"},
    .body = [](const LikeAttrs& a, const Tensors& in) -> Tensors {
      DType type = a.dtype.value_or(in[0].dtype());
      if (is_scalar(*in[1].node())) check_fits("full_like", in[1], type);
      Tensor value = cast_to(in[1], type);
      return {tn::broadcast_to(value, in[0].shape())};
    },
    .samples = {{"f32[2,3], f32[]"}, {"f32[2,3], f32[3]", "dtype=f64"}},
};
TN_OP(full_like);

static constexpr Scalar constant_one() {
  Scalar one;
  one.integer = 1, one.real = 1;
  return one;
}

struct ArangeAttrs {
  Scalar start;
  Maybe<Scalar> stop;
  Scalar step = constant_one();
  Maybe<DType> dtype;
  static constexpr void fields(auto& a, auto&& f) {
    f("start", a.start, required), f("stop", a.stop), f("step", a.step), f("dtype", a.dtype);
  }
};

/// A whole number that is no size; some are beyond int64.
static __int128 whole_value(const Scalar& s) {
  if (s.kind == Kind::natural) return static_cast<uint64_t>(s.integer);
  return s.integer;
}

/// Of whole numbers of which some are sizes.
static Dim symbolic_count(const Scalar& start, const Scalar& stop, int64_t step) {
  if (step == 0) fail("arange: the step is 0");
  Offset first = start.offset(), end = stop.offset();
  Offset span = step > 0 ? end - first : first - end;
  return decide_at_least(span, 1) ? ceil_div(span.size(), std::abs(step)) : 0;
}

static Dim arange_count(const Scalar& start, const Scalar& stop, const Scalar& step) {
  bool symbolic = start.is_symbolic() || stop.is_symbolic();
  if (symbolic && start.is_integral() && stop.is_integral() && step.is_integral())
    return symbolic_count(start, stop, step.integer);
  if (start.is_integral() && stop.is_integral() && step.is_integral()) {
    if (step.integer == 0) fail("arange: the step is 0");
    __int128 span = whole_value(stop) - whole_value(start), by = whole_value(step);
    __int128 count = (span + by + (by > 0 ? -1 : 1)) / by;
    if (span == 0 || (span > 0) != (by > 0)) return 0;
    if (count > INT64_MAX)
      fail("arange: too many elements: from {} to {}", to_text(start, 17), to_text(stop, 17));
    return static_cast<int64_t>(count);
  }
  if (step.real == 0) fail("arange: the step is 0");
  double count = std::ceil((stop.real - start.real) / step.real);
  if (!(count < 0x1p62))
    fail("arange: not a finite range: from {} to {} by {}", start.real, stop.real, step.real);
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

// start + i·step, both of the type they are computed in.
static Tensor ramp(Dim count, const Tensor& start, const Tensor& step, DType type) {
  Tensor i = tn::iota(Shape{count}, 0, start.dtype());
  return tn::astype(tn::add(tn::multiply(i, step), start), type);
}

/// The elements lie between the first and the last one.
static void check_ends(const Scalar& start, int64_t count, const Scalar& step, DType type) {
  if (count == 0) return;
  check_fits("arange", start, type);
  __int128 last = whole_value(start) + (count - 1) * whole_value(step);  // between start and stop
  bool is_natural = last > INT64_MAX;
  check_fits("arange",
             is_natural ? Scalar(static_cast<uint64_t>(last)) : Scalar(static_cast<int64_t>(last)),
             type);
}

/// A size beside a fraction, or a number beyond int64, is a number like any other: it is fixed.
static Scalar fixed(const Scalar& s) { return s.is_symbolic() ? Scalar(s.offset().value()) : s; }

static Tensor arange_body(const ArangeAttrs& a) {
  Scalar start = a.stop ? a.start : Scalar(0), stop = a.stop ? *a.stop : a.start;
  Scalar step = fixed(a.step);
  bool whole = true, beyond = false;
  for (const Scalar& s : {start, stop, step}) {
    if (s.kind == Kind::complex) fail(Fault::type, "arange: complex numbers have no order");
    whole = whole && s.is_integral(), beyond = beyond || s.kind == Kind::natural;
  }
  if (!whole || beyond) start = fixed(start), stop = fixed(stop);
  DType type = a.dtype.value_or(whole ? DType::i64 : DType::f32);
  check_kind("arange", numeric, type);
  // Whole numbers in their own arithmetic, others in f64, rounded once.
  DType work =
      start.is_integral() && step.is_integral() && is_integer(type) ? DType::i64 : DType::f64;
  Dim count = arange_count(start, stop, step);
  if (whole && is_integer(type) && count.is_const() && !start.is_symbolic())
    check_ends(start, count.value(), step, type);
  return ramp(count, make_scalar(start, work, false), make_scalar(step, work, false), type);
}

constexpr auto arange_def = Composite<ArangeAttrs>{
    .doc =
        "`start`, `start + step` and so on, up to but without `stop`; with one number, from 0 to "
        "it. "
        "int64 when all numbers are integers, else float32.",
    .args = {},
    .body = [](const ArangeAttrs& a, const Tensors&) -> Tensors { return {arange_body(a)}; },
    .samples = {{"", "start=5"},
                {"", "start=1, stop=10, step=3"},
                {"", "start=1.0, stop=0.0, step=-0.25"},
                {"", "start=3, stop=3, dtype=f64"}},
};
TN_OP(arange);

struct LinspaceAttrs {
  Scalar start, stop;
  Dim num = 50;
  Maybe<DType> dtype;
  bool endpoint = true;
  static constexpr void fields(auto& a, auto&& f) {
    f("start", a.start, required), f("stop", a.stop, required), f("num", a.num);
    f("dtype", a.dtype), f("endpoint", a.endpoint);
  }
};

/// The distance between `parts` + 1 numbers from `start` to `stop`.
static Tensor part_of(double span, Dim parts) {
  bool known = parts.is_const();
  Tensor whole =
      make_scalar(known ? span / static_cast<double>(parts.raw) : span, DType::f64, false);
  return known ? whole : whole / value_of(parts, DType::f64);
}

static Tensor linspace_real(double start, double stop, const LinspaceAttrs& a, DType type) {
  bool any = decide_at_least(a.num, 1), several = any && decide_at_least(a.num, 2);
  Tensor step = make_scalar(0.0, DType::f64, false);
  if (a.endpoint ? several : any) step = part_of(stop - start, a.endpoint ? a.num - 1 : a.num);
  Tensor line = ramp(a.num, make_scalar(start, DType::f64, false), step, DType::f64);
  if (a.endpoint && several) {  // the last one is `stop` itself, not a sum of steps
    Tensor is_last = tn::equal(tn::iota(Shape{a.num}), a.num - 1);
    line = tn::where(is_last, stop, line);
  }
  return tn::astype(is_integer(type) ? tn::floor(line) : line, type);
}

static Tensor linspace_body(LinspaceAttrs a) {
  a.start = fixed(a.start), a.stop = fixed(a.stop);
  checked("linspace", a.num);
  bool complex = a.start.kind == Kind::complex || a.stop.kind == Kind::complex;
  DType type = a.dtype.value_or(complex ? DType::c64 : DType::f32);
  check_kind("linspace", numeric, type);
  if (complex && !is_complex(type))
    fail(Fault::type, "linspace: complex ends need a complex type: {}", type);
  if (!is_complex(type)) return linspace_real(a.start.real, a.stop.real, a, type);
  Tensor re = linspace_real(a.start.real, a.stop.real, a, real_of(type));
  Tensor im = linspace_real(a.start.imag, a.stop.imag, a, real_of(type));
  return tn::make_complex(re, im);
}

constexpr auto linspace_def = Composite<LinspaceAttrs>{
    .doc =
        "`num` numbers at equal distances from `start` to `stop`, which is the last one if "
        "`endpoint`. "
        "Integer types round down.",
    .args = {},
    .body = [](const LinspaceAttrs& a, const Tensors&) -> Tensors { return {linspace_body(a)}; },
    .samples = {{"", "start=0.0, stop=1.0, num=5"},
                {"", "start=2, stop=8, num=4, dtype=i32, endpoint=false"},
                {"", "start=1.0, stop=2.0, num=1"},
                {"", "start=1.0, stop=2.0, num=0"}},
};
TN_OP(linspace);

struct EyeAttrs {
  Dim n_rows = 0;
  Maybe<Dim> n_cols;
  int64_t k = 0;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) {
    f("n_rows", a.n_rows, required), f("n_cols", a.n_cols), f("k", a.k), f("dtype", a.dtype);
  }
};

// column - row compared with k, over the last two axes.
using Compare = Tensor(const Operand&, const Operand&);

static Tensor compare_diagonal(Compare compare, Dim rows, Dim columns, int64_t k) {
  Shape shape{rows, columns};
  return compare(tn::subtract(tn::iota(shape, 1), tn::iota(shape, 0)), k);
}

static Tensor band(std::string_view op, Compare compare, const EyeAttrs& a) {
  Dim rows = checked(op, a.n_rows), columns = checked(op, a.n_cols.value_or(a.n_rows));
  return tn::astype(compare_diagonal(compare, rows, columns, a.k), a.dtype);
}

constexpr auto eye_def = Composite<EyeAttrs>{
    .doc = "One on the diagonal `k` (0 is the main one, positive ones lie above), zero elsewhere.",
    .args = {},
    .body = [](const EyeAttrs& a, const Tensors&) -> Tensors {
      return {band("eye", tn::equal, a)};
    },
    .samples = {{"", "n_rows=3"},
                {"", "n_rows=2, n_cols=4, k=1"},
                {"", "n_rows=3, k=-1, dtype=i32"}},
};
TN_OP(eye);

struct IdentityAttrs {
  Dim n = 0;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) { f("n", a.n, required), f("dtype", a.dtype); }
};

constexpr auto identity_def = Composite<IdentityAttrs>{
    .doc = "The identity matrix with `n` rows.",
    .args = {},
    .body = [](const IdentityAttrs& a, const Tensors&) -> Tensors {
      return {band("identity", tn::equal, {a.n, {}, 0, a.dtype})};
    },
    .samples = {{"", "n=3"}, {"", "n=0, dtype=i32"}},
};
TN_OP(identity);

struct TriAttrs {
  Dim n = 0;
  Maybe<Dim> m;
  int64_t k = 0;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) {
    f("n", a.n, required), f("m", a.m), f("k", a.k), f("dtype", a.dtype);
  }
};

constexpr auto tri_def = Composite<TriAttrs>{
    .doc =
        "One on and below the diagonal `k` of a matrix with `n` rows and `m` columns, zero above.",
    .args = {},
    .body = [](const TriAttrs& a, const Tensors&) -> Tensors {
      return {band("tri", tn::less_equal, {a.n, a.m, a.k, a.dtype})};
    },
    .samples = {{"", "n=3"}, {"", "n=2, m=4, k=1"}, {"", "n=3, k=-1, dtype=i32"}},
};
TN_OP(tri);

struct TriangleAttrs {
  int64_t k = 0;
  static constexpr void fields(auto& a, auto&& f) { f("k", a.k); }
};

static Tensor triangle(std::string_view op, Compare compare, int64_t k, const Tensor& given) {
  if (given.rank() == 0) fail("{}: needs an axis or more: {}", op, *type_of(given));
  Dim n = given.shape().back();
  Tensor x = given.rank() == 1 ? tn::broadcast_to(given, {n, n}) : given;
  int rank = x.rank();
  Tensor kept = compare_diagonal(compare, x.shape()[rank - 2], x.shape()[rank - 1], k);
  return tn::where(kept, x, make_scalar(0, x.dtype(), false));  // 0 alone would widen bool
}

constexpr auto tril_def = Composite<TriangleAttrs>{
    .doc =
        "`x` with zeros above the diagonal `k` of its last two axes. A vector "
        "becomes the rows of a square matrix first.",
    .args = {"x"},
    .body = [](const TriangleAttrs& a, const Tensors& in) -> Tensors {
      return {triangle("tril", tn::less_equal, a.k, in[0])};
    },
    .samples = {{"f32[3,3]"}, {"f32[2,3,4]", "k=1"}, {"f32[3,2]", "k=-1"}},
};
TN_OP(tril);

constexpr auto triu_def = Composite<TriangleAttrs>{
    .doc =
        "`x` with zeros below the diagonal `k` of its last two axes. A vector "
        "becomes the rows of a square matrix first.",
    .args = {"x"},
    .body = [](const TriangleAttrs& a, const Tensors& in) -> Tensors {
      return {triangle("triu", tn::greater_equal, a.k, in[0])};
    },
    .samples = {{"f32[3,3]"}, {"f32[2,3,4]", "k=1"}, {"f32[3,2]", "k=-1"}},
};
TN_OP(triu);

enum class Indexing : uint8_t { xy, ij };
static constexpr std::string_view kIndexingNames[] = {"xy", "ij"};
constexpr ChoiceNames choice_names(Indexing) { return kIndexingNames; }

struct MeshgridAttrs {
  Indexing indexing = Indexing::xy;
  static constexpr void fields(auto& a, auto&& f) { f("indexing", a.indexing); }
};

static Tensors meshgrid_body(const MeshgridAttrs& a, const Tensors& in) {
  int count = static_cast<int>(in.size());
  auto axis_of = [&](int i) {
    bool swapped = a.indexing == Indexing::xy && count > 1 && i < 2;
    return swapped ? 1 - i : i;
  };
  Shape grid = Shape::filled(count, 1);
  for (int i = 0; i < count; ++i) {
    const Tensor& x = in[static_cast<size_t>(i)];
    if (x.rank() > 1) fail("meshgrid: operands have one axis: {} ({})", x.rank(), *type_of(x));
    grid[axis_of(i)] = x.shape().elements();
  }
  Tensors out;
  for (int i = 0; i < count; ++i) {
    Shape own = Shape::filled(count, 1);
    own[axis_of(i)] = grid[axis_of(i)];
    out.push_back(tn::broadcast_to(tn::reshape(in[static_cast<size_t>(i)], own), grid));
  }
  return out;
}

constexpr auto meshgrid_def = Composite<MeshgridAttrs>{
    .doc =
        "Each operand spread over the grid of all of them: operand i varies along axis i, except "
        "that "
        "`xy` indexing swaps the first two.",
    .args = {"*arrays"},
    .results = {"*"},
    .body = rule<meshgrid_body>,
    .samples = {{"f32[2], f32[3]"}, {"f32[2], f32[3], f32[4]", "indexing=ij"}, {"f32[3]"}},
};
TN_OP(meshgrid);

}  // namespace tn::ops
