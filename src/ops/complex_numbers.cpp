// Complex numbers and their parts.
#include "base/error.h"
#include "ir/sizes.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {

constexpr auto real_def = Elementwise<>{
    .doc = "The real part; real numbers stay as they are.",
    .types = every_type,
    .result = ResultType::real,
    .scalar = [](S x) { return x; },
    .complex = [](Z z) { return Z{z.re, {}}; },
    .linear = Linear::each,
    .adjoint = [](const NoAttrs&, T ct, const Tensors& in,
                  int) { return cast_to(ct, in[0].dtype()); },
    .samples = {{"f32[2,3]"}, {"c64[2,3]"}, {"c64[]"}},
};
TN_OP(real);

constexpr auto imag_def = Elementwise<>{
    .doc = "The imaginary part; 0 for real numbers.",
    .types = every_type,
    .result = ResultType::real,
    .scalar = [](S x) { return loop::constant_like(x, 0); },
    .complex = [](Z z) { return Z{z.im, {}}; },
    .linear = Linear::each,
    .adjoint = [](const NoAttrs&, T ct, const Tensors& in,
                  int) { return is_complex(in[0].dtype()) ? tn::make_complex(0, -ct) : Tensor(); },
    .samples = {{"f32[2,3]"}, {"c64[2,3]"}, {"c64[]"}},
};
TN_OP(imag);

constexpr auto conj_def = Elementwise<>{
    .doc = "The number with its imaginary part negated; real numbers stay as they are.",
    .aliases = {"conjugate"},
    .types = every_type,
    .scalar = [](S x) { return x; },
    .complex = [](Z z) { return Z{z.re, -z.im}; },
    .linear = Linear::each,
    .adjoint = [](const NoAttrs&, T ct, const Tensors&, int) { return tn::conj(ct); },
    .samples = {{"f32[2,3]"}, {"c64[2,3]"}, {"c64[]"}},
};
TN_OP(conj);

struct AngleAttrs {
  bool deg = false;
  static constexpr void fields(auto& a, auto&& f) { f("deg", a.deg); }
};

constexpr auto angle_def = Composite<AngleAttrs>{
    .doc =
        "The angle of a complex number in [-pi, pi], in degrees when `deg`; of reals 0, or pi for "
        "negative ones. NaN stays NaN.",
    .args = {"x"},
    .body = [](const AngleAttrs& a, const Tensors& in) -> Tensors {
      check_kind("angle", every_type, in[0].dtype());
      Tensor z = cast_to(in[0], to_inexact(in[0].dtype()));
      Tensor turned = tn::atan2(tn::imag(z), tn::real(z));
      return {a.deg ? tn::degrees(turned) : turned};
    },
    .samples = {{"f32[2,3]"}, {"c64[2,3]"}, {"c64[4]", "deg=true"}},
};
TN_OP(angle);

static Type infer_make_complex(const NoAttrs&, Types in) {
  if (!decide_equal(in[0]->shape, in[1]->shape))
    fail("make_complex: the parts have different shapes: {} and {}", *in[0], *in[1]);
  return {complex_of(in[0]->dtype), in[0]->shape};
}

static void lower_make_complex(const NoAttrs&, loop::Lowering& l) {
  loop::Coords at = l.loops(l.out[0]->shape);
  l.store(0, at, {l.load_real(0, at), l.load_real(1, at)});
}

constexpr auto make_complex_def = Op<>{
    .doc =
        "The complex numbers `re + im * 1j` from their parts. float64 parts give complex128, "
        "all others complex64.",
    .aliases = {"complex"},
    .args = {"re", "im"},
    .prepare =
        [](NoAttrs&, Tensors& in) {
          bool wide = promote_all(in, "make_complex", floats, true) == DType::f64;
          Shape shape = broadcast(in[0].shape(), in[1].shape(), "make_complex");
          for (Tensor& x : in)
            x = tn::broadcast_to(cast_to(x, wide ? DType::f64 : DType::f32), shape);
        },
    .infer = rule<infer_make_complex>,
    .lower = rule<lower_make_complex>,
    .linear = Linear::jointly,
    .adjoint = [](const NoAttrs&, T ct, const Tensors&,
                  int k) { return k == 0 ? tn::real(ct) : -tn::imag(ct); },
    .batch = Batch::aligned,
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"f32[], f32[]"}},
};
TN_OP(make_complex);

}  // namespace tn::ops
