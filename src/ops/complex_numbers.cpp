// Complex numbers and their parts.
#include "ops/families.h"
#include "ops/op_decls.h"

namespace tn::ops {

constinit const OpDef real = Elementwise<>{
    .name = "real",
    .doc = "The real part; real numbers stay as they are.",
    .types = every_type,
    .result = ResultType::real,
    .scalar = [](S x) { return x; },
    .complex =
        [](Z z) {
          return Z{z.re, {}};
        },
    .samples = {{"f32[2,3]"}, {"c64[2,3]"}, {"c64[]"}},
};

constinit const OpDef imag = Elementwise<>{
    .name = "imag",
    .doc = "The imaginary part; 0 for real numbers.",
    .types = every_type,
    .result = ResultType::real,
    .scalar = [](S x) { return loop::constant_like(x, 0); },
    .complex =
        [](Z z) {
          return Z{z.im, {}};
        },
    .samples = {{"f32[2,3]"}, {"c64[2,3]"}, {"c64[]"}},
};

constinit const OpDef conj = Elementwise<>{
    .name = "conj",
    .doc = "The number with its imaginary part negated; real numbers stay as they are.",
    .aliases = {"conjugate"},
    .types = every_type,
    .scalar = [](S x) { return x; },
    .complex =
        [](Z z) {
          return Z{z.re, -z.im};
        },
    .samples = {{"f32[2,3]"}, {"c64[2,3]"}, {"c64[]"}},
};

static Type infer_make_complex(const NoAttrs&, Types in) {
  return {complex_of(in[0]->dtype), broadcast(in[0]->shape, in[1]->shape, "make_complex")};
}

// The coordinates of an operand that is broadcast to the result: aligned right, 0 along axes of
// extent 1.
static loop::Coords operand_coords(loop::Lowering& l, const Shape& operand,
                                   const loop::Coords& at) {
  loop::Coords own(at.end() - operand.rank(), at.end());
  for (int i = 0; i < operand.rank(); ++i)
    if (operand[i] == Dim(1)) own[static_cast<size_t>(i)] = l.number(0);
  return own;
}

static void lower_make_complex(const NoAttrs&, loop::Lowering& l) {
  loop::Coords at = l.loops(l.out[0]->shape);
  S re = l.load_real(0, operand_coords(l, l.in[0]->shape, at));
  S im = l.load_real(1, operand_coords(l, l.in[1]->shape, at));
  l.store(0, at, {re, im});
}

constinit const OpDef make_complex = Op<>{
    .name = "make_complex",
    .doc =
        "The complex numbers `re + im * 1j` from their parts. float64 parts give complex128, "
        "all others complex64.",
    .aliases = {"complex"},
    .args = {"re", "im"},
    .prepare =
        [](NoAttrs&, Tensors& in) {
          DType type = promote_all(in, "make_complex", floats, true);
          if (type == DType::f64) return;
          for (Tensor& x : in) x = cast_to(x, DType::f32);
        },
    .infer = rule<infer_make_complex>,
    .lower = rule<lower_make_complex>,
    .samples = {{"f32[2,3], f32[2,3]"}, {"f32[2,1], f32[3]"}, {"f32[], f32[]"}},
};

}  // namespace tn::ops
