// Fourier transforms: one op along one axis, and the names of the array API for it.
#include "ops/fourier.h"

#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

struct FftAttrs {
  Maybe<Dim> n;
  Axis axis = -1;
  Norm norm = Norm::backward;
  static constexpr void fields(auto& a, auto&& f) {
    f("n", a.n), f("axis", a.axis), f("norm", a.norm);
  }
};

struct FreqAttrs {
  Dim n = 0;
  double d = 1;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) {
    f("n", a.n, required), f("d", a.d), f("dtype", a.dtype);
  }
};

struct ShiftAttrs {
  Maybe<Axes> axes;
  static constexpr void fields(auto& a, auto&& f) { f("axes", a.axes); }
};

/// Of the types that are transformed: f32, f64 and the complex ones.
Tensor transformable(std::string_view op, const Tensor& x, bool complex) {
  Tensors in{x};
  DType type = promote_all(in, op, every_type, true);
  type = type == DType::f64 || type == DType::c128 ? DType::f64 : DType::f32;
  return cast_to(in[0], complex ? complex_of(type) : type);
}

/// How many numbers are transformed along `axis`.
Dim length_of(std::string_view op, FftKind kind, const Maybe<Dim>& n, const Type& x, int axis) {
  Dim extent = x.shape[axis];
  Offset length = n ? Offset(*n) : kind == FftKind::c2r ? Offset(extent * 2) - 2 : Offset(extent);
  if (!decide_at_least(length, 1))
    fail("{}: at least one number is needed: {} along axis {} ({})", op, length, axis, x);
  return length.size();
}

void prepare_fft_axis(FftAxisAttrs& a, Tensors& in) {
  in[0] = transformable("fft_axis", in[0], a.kind != FftKind::r2c);
  const Type& x = *type_of(in[0]);
  a.axis = normal_axis(a.axis, x.rank(), "fft_axis");
  Dim given = x.shape[a.axis.i], n = length_of("fft_axis", a.kind, a.n, x, a.axis.i);
  Dim expected = a.kind == FftKind::c2r ? floor_div(n, 2) + 1 : n;
  if (!decide_equal(given, expected))
    fail("fft_axis: {} numbers along axis {}, {} are needed ({})", given, a.axis.i, expected, x);
  a.n = n;
}

Type infer_fft_axis(const FftAxisAttrs& a, Types in) {
  if (a.kind == FftKind::c2c) return *in[0];
  Dim n = *a.n;
  if (a.kind == FftKind::c2r)
    return {real_of(in[0]->dtype), with_extent(in[0]->shape, a.axis.i, n)};
  return {complex_of(in[0]->dtype), with_extent(in[0]->shape, a.axis.i, floor_div(n, 2) + 1)};
}

/// `ends` for the first number of half a spectrum, and the last when it is its own mirror image,
/// `middle` for those that stand for two.
Tensor half_weights(Dim n, double ends, double middle, DType type, int rank, int axis) {
  Dim count = floor_div(n, 2) + 1;
  int64_t alone = decide_divides(2, n) ? 2 : 1;
  if (decide_at_least(alone, count)) return filled(ends, type, Shape::filled(rank, 1));
  Tensor end = filled(ends, type, {1}), rest = filled(middle, type, {count - alone});
  Tensors parts{end, rest};
  if (alone == 2) parts.push_back(end);
  return tn::reshape(tn::concat(parts, 0), with_extent(Shape::filled(rank, 1), axis, count));
}

/// The matrix of exp(∓2πi jk/n) is symmetric. Half a spectrum stands for a whole one, so the middle
/// numbers count twice, or the pairing with a whole one halves them.
Tensor transposed_fft(const FftAxisAttrs& a, const Tensor& ct, const Tensors& in, int) {
  if (a.kind == FftKind::c2c) return emit(fft_axis, {ct}, a);
  FftAxisAttrs back = a;
  back.kind = a.kind == FftKind::r2c ? FftKind::c2r : FftKind::r2c;
  DType type = real_of(in[0].dtype());
  if (a.kind == FftKind::c2r)
    return tn::multiply(emit(fft_axis, {ct}, back),
                        half_weights(*a.n, 1, 2, type, ct.rank(), a.axis.i));
  return emit(fft_axis, {tn::multiply(ct, half_weights(*a.n, 1, 0.5, type, ct.rank(), a.axis.i))},
              back);
}

Divisor divisor_of(Norm norm, bool inverse) {
  if (norm == Norm::ortho) return Divisor::root;
  return (norm == Norm::forward) == inverse ? Divisor::one : Divisor::length;
}

/// `x` cut, or filled up with zeros, to `count` numbers along `axis`.
Tensor resized(const Tensor& x, int axis, Dim count) {
  Dim given = x.shape()[axis];
  if (identical(given, count)) return x;
  if (decide_at_least(given, count)) return slice_axis(x, axis, 0, count);
  Offsets width;
  for (int k = 0; k < x.rank(); ++k)
    width.push_back(0), width.push_back(k == axis ? count - given : Dim(0));
  return tn::pad(x, width);
}

/// One transform as users ask for it, by the name of `op`.
Tensor transform(std::string_view op, const Tensor& given, FftKind kind, bool inverse,
                 const FftAttrs& a) {
  if (kind == FftKind::r2c) check_kind(op, ordered, given.dtype());
  Tensor x = transformable(op, given, kind != FftKind::r2c);
  int axis = normal_axis(a.axis, x.rank(), op);
  Dim n = length_of(op, kind, a.n, *type_of(x), axis);
  x = resized(x, axis, kind == FftKind::c2r ? floor_div(n, 2) + 1 : n);
  return emit(fft_axis, {x}, FftAxisAttrs{kind, inverse, 1, n, axis, divisor_of(a.norm, inverse)});
}

template <const char* kOp, FftKind kKind, bool kInverse>
Tensors one_axis(const FftAttrs& a, const Tensors& in) {
  return {transform(kOp, in[0], kKind, kInverse, a)};
}

/// The axes of a transform over several, with the length along each if given.
struct Sides {
  Axes axes;
  Offsets lengths;
  Maybe<Dim> length(int i) const {
    return lengths.size() ? Maybe<Dim>(lengths[i].size()) : Maybe<Dim>();
  }
};

Sides sides_of(std::string_view op, const FftnAttrs& a, const Tensor& x) {
  Sides sides;
  if (a.s) sides.lengths = *a.s;
  int64_t count = a.axes ? a.axes->size() : a.s ? a.s->size() : x.rank();
  if (a.s && a.s->size() != count)
    fail("{}: {} lengths for {} axes ({})", op, a.s->size(), count, *type_of(x));
  if (count > x.rank() || count == 0) fail("{}: {} axes to transform ({})", op, count, *type_of(x));
  for (int i = 0; i < count; ++i) {
    int axis = normal_axis(a.axes ? (*a.axes)[i] : i - count, x.rank(), op);
    if (sides.axes.has(axis)) fail("{}: axis {} is named twice ({})", op, axis, *type_of(x));
    sides.axes.push_back(axis);
  }
  return sides;
}

/// The last axis holds the reals: it is transformed first, or last on the way back.
template <const char* kOp, FftKind kKind, bool kInverse>
Tensors several_axes(const FftnAttrs& a, const Tensors& in) {
  Sides sides = sides_of(kOp, a, in[0]);
  int last = sides.axes.size() - 1;
  Tensor x = in[0];
  auto along = [&](int i, FftKind kind) {
    x = transform(kOp, x, kind, kInverse, {sides.length(i), sides.axes[i], a.norm});
  };
  if (kKind != FftKind::c2r) along(last, kKind);
  for (int i = last - 1; i >= 0; --i) along(i, FftKind::c2c);
  if (kKind == FftKind::c2r) along(last, kKind);
  return {x};
}

Tensor frequencies(std::string_view op, const FreqAttrs& a, bool half) {
  check_kind(op, floats, a.dtype);
  if (a.n.is_negative() || !decide_at_least(a.n, 1)) fail("{}: n must be positive: {}", op, a.n);
  Offset below = Offset(0) - floor_div(a.n, 2);
  Dim positive = half ? floor_div(a.n, 2) + 1 : ceil_div(a.n, 2);
  Tensor k = tn::arange(0, Scalar(Offset(positive)), 1, a.dtype);
  if (!half) k = tn::concat({k, tn::arange(Scalar(below), 0, 1, a.dtype)}, 0);
  if (a.n.is_const()) return tn::divide(k, static_cast<double>(a.n.raw) * a.d);
  return k / cast_to(value_of(a.n, DType::f64) * a.d, k.dtype());
}

Tensors shifted(std::string_view op, const ShiftAttrs& a, const Tensor& x, bool back) {
  Axes axes = normal_axes(a.axes, x.rank(), op);
  Offsets places;
  for (Axis axis : axes) {
    Offset half = floor_div(x.shape()[axis.i], 2);
    places.push_back(back ? Offset(0) - half : half);
  }
  return {axes.empty() ? x : tn::roll(x, places, axes)};
}

constexpr char kFft[] = "fft", kIfft[] = "ifft", kRfft[] = "rfft", kIrfft[] = "irfft",
               kHfft[] = "hfft", kIhfft[] = "ihfft", kFftn[] = "fftn", kIfftn[] = "ifftn",
               kRfftn[] = "rfftn", kIrfftn[] = "irfftn";

}  // namespace

constexpr auto fft_axis_def = Op<FftAxisAttrs>{
    .doc =
        "`scale * sum(x[j] * exp(-2j * pi * j * k / n))` along `axis` for every k, with the other "
        "sign when `inverse`. `r2c` takes `n` reals and gives the first `n // 2 + 1` numbers; the "
        "rest are their conjugates. `c2r` takes those and gives `n` reals (an even number unless "
        "`n` says otherwise); it ignores the imaginary parts of numbers that are their own "
        "conjugates. Any `n` takes time n log n. What `fft` and its like are made of.",
    .module = "fft",
    .args = {"x"},
    .prepare = rule<prepare_fft_axis>,
    .infer = rule<infer_fft_axis>,
    .linear = Linear::each,
    .adjoint = rule<transposed_fft>,
    .batch = Batch::aligned,
    .samples = {{"f32[7]", "kind=r2c"},
                {"f32[2,8,3]", "kind=r2c, inverse=true, axis=1"},
                {"f32[3,6]", "axis=0, scale=0.5"},
                {"f32[2,12]", "inverse=true"},
                {"f32[5,2]", "kind=c2r, axis=0"},
                {"f32[5]", "kind=c2r, n=9, inverse=true"}},
};
TN_OP(fft_axis);

constexpr auto fft_def = Composite<FftAttrs>{
    .doc =
        "The discrete Fourier transform `sum(x[j] * exp(-2j * pi * j * k / n))` along `axis`, "
        "which "
        "is first cut, or filled up with zeros, to `n` numbers. `norm` says which direction "
        "divides "
        "by n: `backward`, `forward`, or both by its root (`ortho`). Reals become complex, "
        "complex128 from float64 and complex64 from all others.",
    .module = "fft",
    .args = {"x"},
    .body = rule<one_axis<kFft, FftKind::c2c, false>>,
    .samples = {{"f32[8]"},
                {"f32[3,5]", "axis=0, norm=ortho"},
                {"f32[2,7]", "n=4"},
                {"f32[5]", "n=9"}},
};
TN_OP(fft);

constexpr auto ifft_def = Composite<FftAttrs>{
    .doc = "The inverse of `fft`, for equal `n`, `axis` and `norm`.",
    .module = "fft",
    .args = {"x"},
    .body = rule<one_axis<kIfft, FftKind::c2c, true>>,
    .samples = {{"f32[8]"}, {"f32[3,5]", "axis=0, norm=forward"}, {"f32[2,7]", "n=4"}},
};
TN_OP(ifft);

constexpr auto fftn_def = Composite<FftnAttrs>{
    .doc =
        "`fft` along each of `axes`, to the lengths `s`. Without `axes` the last ones, as many as "
        "`s` has, or all.",
    .module = "fft",
    .args = {"x"},
    .body = rule<several_axes<kFftn, FftKind::c2c, false>>,
    .samples = {{"f32[3,4]"},
                {"f32[2,3,5]", "axes=[0,2], norm=ortho"},
                {"f32[2,3,4]", "s=[2,5], axes=[-2,-1]"}},
};
TN_OP(fftn);

constexpr auto ifftn_def = Composite<FftnAttrs>{
    .doc = "The inverse of `fftn`, for equal `s`, `axes` and `norm`.",
    .module = "fft",
    .args = {"x"},
    .body = rule<several_axes<kIfftn, FftKind::c2c, true>>,
    .samples = {{"f32[3,4]"}, {"f32[2,3,5]", "axes=[0,2], norm=forward"}},
};
TN_OP(ifftn);

constexpr auto rfft_def = Composite<FftAttrs>{
    .doc =
        "`fft` of reals: the first `n // 2 + 1` numbers, of which the rest are the conjugates. See "
        "`fft` for `n` and `norm`.",
    .module = "fft",
    .args = {"x"},
    .body = rule<one_axis<kRfft, FftKind::r2c, false>>,
    .samples = {{"f32[8]"}, {"f32[3,5]", "axis=0, norm=ortho"}, {"f32[2,7]", "n=4"}},
};
TN_OP(rfft);

constexpr auto irfft_def = Composite<FftAttrs>{
    .doc =
        "The inverse of `rfft`: `n` reals from the first `n // 2 + 1` numbers of their transform. "
        "Without `n` an even number of reals, `2 * (m - 1)` from m numbers.",
    .module = "fft",
    .args = {"x"},
    .body = rule<one_axis<kIrfft, FftKind::c2r, true>>,
    .samples = {{"f32[5]"}, {"f32[3,5]", "axis=0, norm=forward"}, {"f32[2,4]", "n=7"}},
};
TN_OP(irfft);

constexpr auto rfftn_def = Composite<FftnAttrs>{
    .doc = "`rfft` along the last of `axes`, then `fft` along the others. See `fftn`.",
    .module = "fft",
    .args = {"x"},
    .body = rule<several_axes<kRfftn, FftKind::r2c, false>>,
    .samples = {{"f32[3,4]"},
                {"f32[2,3,5]", "axes=[2,0], norm=ortho"},
                {"f32[2,3,4]", "s=[2,5], axes=[-2,-1]"}},
};
TN_OP(rfftn);

constexpr auto irfftn_def = Composite<FftnAttrs>{
    .doc =
        "The inverse of `rfftn`: `ifft` along all but the last of `axes`, then `irfft` along it.",
    .module = "fft",
    .args = {"x"},
    .body = rule<several_axes<kIrfftn, FftKind::c2r, true>>,
    .samples = {{"f32[3,4]"},
                {"f32[2,3,5]", "axes=[2,0], norm=ortho"},
                {"f32[2,3,4]", "s=[2,5], axes=[-2,-1]"}},
};
TN_OP(irfftn);

constexpr auto hfft_def = Composite<FftAttrs>{
    .doc =
        "The real `fft` of `n` numbers whose second half mirrors the first as conjugates; `x` "
        "holds "
        "the first `n // 2 + 1`. Without `n` an even number, `2 * (m - 1)` from m numbers.",
    .module = "fft",
    .args = {"x"},
    .body = rule<one_axis<kHfft, FftKind::c2r, false>>,
    .samples = {{"f32[5]"}, {"f32[3,5]", "axis=0, norm=forward"}, {"f32[2,4]", "n=7"}},
};
TN_OP(hfft);

constexpr auto ihfft_def = Composite<FftAttrs>{
    .doc = "The inverse of `hfft`: the first `n // 2 + 1` numbers of the `ifft` of reals.",
    .module = "fft",
    .args = {"x"},
    .body = rule<one_axis<kIhfft, FftKind::r2c, true>>,
    .samples = {{"f32[8]"}, {"f32[3,5]", "axis=0, norm=ortho"}, {"f32[2,7]", "n=4"}},
};
TN_OP(ihfft);

constexpr auto fftfreq_def = Composite<FreqAttrs>{
    .doc =
        "The frequencies that `fft` of `n` samples at distances `d` computes, in its order: 0 and "
        "up, then the negative ones, in units of 1 / (n * d).",
    .module = "fft",
    .args = {},
    .body = [](const FreqAttrs& a, const Tensors&) -> Tensors {
      return {frequencies("fftfreq", a, false)};
    },
    .samples = {{"", "n=8"}, {"", "n=5, d=0.1"}},
};
TN_OP(fftfreq);

constexpr auto rfftfreq_def = Composite<FreqAttrs>{
    .doc = "The `n // 2 + 1` frequencies that `rfft` of `n` samples at distances `d` computes.",
    .module = "fft",
    .args = {},
    .body = [](const FreqAttrs& a, const Tensors&) -> Tensors {
      return {frequencies("rfftfreq", a, true)};
    },
    .samples = {{"", "n=8"}, {"", "n=5, d=0.1"}},
};
TN_OP(rfftfreq);

constexpr auto fftshift_def = Composite<ShiftAttrs>{
    .doc = "Moves frequency 0 to the middle of `axes` (all by default).",
    .module = "fft",
    .args = {"x"},
    .body = [](const ShiftAttrs& a, const Tensors& in) -> Tensors {
      return shifted("fftshift", a, in[0], false);
    },
    .samples = {{"f32[8]"}, {"f32[3,5]", "axes=[1]"}, {"f32[4,5]"}},
};
TN_OP(fftshift);

constexpr auto ifftshift_def = Composite<ShiftAttrs>{
    .doc = "The inverse of `fftshift`.",
    .module = "fft",
    .args = {"x"},
    .body = [](const ShiftAttrs& a, const Tensors& in) -> Tensors {
      return shifted("ifftshift", a, in[0], true);
    },
    .samples = {{"f32[8]"}, {"f32[3,5]", "axes=[1]"}, {"f32[4,5]"}},
};
TN_OP(ifftshift);

}  // namespace tn::ops
