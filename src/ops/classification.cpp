// Questions about floating-point numbers, and their parts: sign, neighbours, infinities, NaN.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static S truth(S like, bool value) { return like.builder->constant(Scalar(value), DType::b1); }

// What holds for no integer or for all of them.
template <class F>
static S ask(S x, bool of_integers, F of_floats) {
  return is_float(x.type()) ? of_floats(x) : truth(x, of_integers);
}
static S is_nan(S x) {
  return ask(x, false, [](S v) { return sc::is_nan(v); });
}
static S is_infinite(S x) {
  return ask(x, false, [](S v) { return sc::abs(v) == kInfinity; });
}
static S is_finite(S x) {
  return ask(x, true, [](S v) { return sc::abs(v) < kInfinity; });
}

constexpr auto isnan_def = Elementwise<>{
    .doc = "Whether the number is NaN, or a part of it is. False for integers.",
    .types = every_type,
    .result = ResultType::boolean,
    .scalar = [](S x) { return is_nan(x); },
    .complex = [](Z z) { return Z{is_nan(z.re) | is_nan(z.im), {}}; },
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(isnan);

constexpr auto isinf_def = Elementwise<>{
    .doc = "Whether the number is an infinity, or a part of it is. False for integers.",
    .types = every_type,
    .result = ResultType::boolean,
    .scalar = [](S x) { return is_infinite(x); },
    .complex = [](Z z) { return Z{is_infinite(z.re) | is_infinite(z.im), {}}; },
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(isinf);

constexpr auto isfinite_def = Elementwise<>{
    .doc = "Whether the number is neither NaN nor an infinity, in both parts. True for integers.",
    .types = every_type,
    .result = ResultType::boolean,
    .scalar = [](S x) { return is_finite(x); },
    .complex = [](Z z) { return Z{is_finite(z.re) & is_finite(z.im), {}}; },
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(isfinite);

constexpr auto isposinf_def = Elementwise<>{
    .doc = "Whether the number is plus infinity. False for integers.",
    .types = ordered,
    .result = ResultType::boolean,
    .scalar = [](S x) { return ask(x, false, [](S v) { return v == kInfinity; }); },
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(isposinf);

constexpr auto isneginf_def = Elementwise<>{
    .doc = "Whether the number is minus infinity. False for integers.",
    .types = ordered,
    .result = ResultType::boolean,
    .scalar = [](S x) { return ask(x, false, [](S v) { return v == -kInfinity; }); },
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(isneginf);

constexpr auto signbit_def = Elementwise<>{
    .doc = "Whether the sign is negative; true for -0.0 and for a NaN with its sign set.",
    .types = reals,
    .result = ResultType::boolean,
    .scalar =
        [](S x) {
          if (!is_float(x.type())) return x < 0.0;
          return sc::bitcast(x, x.type() == DType::f64 ? DType::i64 : DType::i32) < 0.0;
        },
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(signbit);

constexpr auto copysign_def = Elementwise<>{
    .doc = "The magnitude of `x1` with the sign of `x2`, zeros and NaN included.",
    .types = floats,
    .operands = Operands::inexact,
    .scalar = [](S a, S b) { return sc::copysign(a, b); },
    .partials = {[](T t, T x, T y) { return t * tn::sign(x) * tn::copysign(1, y); }, nullptr},
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}},
};
TN_OP(copysign);

// Neighbouring floats of one sign are neighbouring integers, in every width. Narrow floats are
// widened before they compute, so the step is taken on their bits instead.
static Tensor next_after(const Tensor& x, const Tensor& to) {
  int64_t bits = size_of(x.dtype()) * 8;
  DType integer = bits == 16 ? DType::i16 : bits == 32 ? DType::i32 : DType::i64;
  int64_t sign = INT64_MIN >> (64 - bits);
  Tensor up = tn::less(x, to);
  Tensor grows = tn::equal(up, tn::greater(x, 0));  // the magnitude
  Tensor step = tn::astype(tn::where(grows, 1, -1), integer);
  Tensor smallest = tn::astype(tn::where(up, 1, sign + 1), integer);
  Tensor stepped = tn::add(tn::bitcast(x, integer), step);
  Tensor next = tn::bitcast(tn::where(tn::equal(x, 0), smallest, stepped), x.dtype());
  Tensor result = tn::where(tn::equal(x, to), to, next);
  Tensor unordered = tn::logical_or(tn::isnan(x), tn::isnan(to));
  return tn::where(unordered, tn::add(x, to), result);
}

constexpr auto nextafter_def = Composite<>{
    .doc =
        "The next number after `x1` towards `x2` that its type can hold; `x2` where they are "
        "equal, "
        "NaN where either is.",
    .args = {"x1", "x2"},
    .recorded = true,
    .prepare = [](NoAttrs&, Tensors& in) { promote_all(in, "nextafter", floats, true); },
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors { return {next_after(in[0], in[1])}; },
    .jvp = [](const NoAttrs&, const Primal& p, const Tensors& t) -> Tensors {
      return {t[0].defined() ? tn::broadcast_to(t[0], p.out[0].shape()) : Tensor()};
    },
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}},
};
TN_OP(nextafter);

struct NanToNumAttrs {
  double nan = 0;
  Maybe<double> posinf, neginf;
  static constexpr void fields(auto& a, auto&& f) {
    f("nan", a.nan), f("posinf", a.posinf), f("neginf", a.neginf);
  }
};

static double largest(DType type) {
  switch (real_of(type)) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

static S numbered(const NanToNumAttrs& a, S x) {
  if (!is_float(x.type())) return x;
  S result = sc::select(sc::is_nan(x), loop::constant_like(x, a.nan), x);
  result = sc::select(x == kInfinity, loop::constant_like(x, *a.posinf), result);
  return sc::select(x == -kInfinity, loop::constant_like(x, *a.neginf), result);
}

// A part that was replaced does not vary.
static Tensors jvp_nan_to_num(const NanToNumAttrs&, const Primal& p, const Tensors& t) {
  T x = p.in[0];
  if (!is_complex(x.dtype())) return {tn::where(tn::isfinite(x), t[0], 0)};
  Tensor re = tn::where(tn::isfinite(tn::real(x)), tn::real(t[0]), 0);
  Tensor im = tn::where(tn::isfinite(tn::imag(x)), tn::imag(t[0]), 0);
  return {tn::make_complex(re, im)};
}

constexpr auto nan_to_num_def = Elementwise<NanToNumAttrs>{
    .doc =
        "`x` with NaN replaced by `nan`, infinities by `posinf` and `neginf`, which default to the "
        "largest and smallest number of the type. Integers stay as they are.",
    .args = {"x"},
    .types = every_type,
    .scalar = [](const NanToNumAttrs& a, S x) { return numbered(a, x); },
    .complex = [](const NanToNumAttrs& a, Z z) { return Z{numbered(a, z.re), numbered(a, z.im)}; },
    .prepare =
        [](NanToNumAttrs& a, Tensors& in) {
          double most = largest(in[0].dtype());
          a.posinf = a.posinf.value_or(most), a.neginf = a.neginf.value_or(-most);
        },
    .jvp = rule<jvp_nan_to_num>,
    .samples = {{"f32[2,3]"}, {"f32[4]", "nan=1.5, posinf=2.0, neginf=-2.0"}, {"f32[]"}},
};
TN_OP(nan_to_num);

}  // namespace tn::ops
