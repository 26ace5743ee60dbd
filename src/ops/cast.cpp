// Conversions between element types, and ops that change nothing but what the library knows.
#include "base/error.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/ops.h"

namespace tn::ops {

struct AstypeAttrs {
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) { f("dtype", a.dtype, required); }
};

// To a narrow float in one rounding: directly from what f32 may not hold, else through f32.
static S converted(S x, DType to) {
  if (x.type() == to) return x;
  bool narrow = is_float(to) && info(to).compute != to;
  bool direct = is_float(x.type()) ? info(x.type()).compute == x.type()
                                   : is_integer(x.type()) && size_of(x.type()) >= 4;
  if (narrow && !direct) x = sc::cast(x, DType::f32);
  return sc::cast(x, to);
}

static void prepare_astype(AstypeAttrs& a, Tensors& in) {
  if (is_complex(in[0].dtype()) && !is_complex(a.dtype) && a.dtype != DType::b1)
    fail(Fault::type, Hint{"take a part first: astype(real(x), dtype), or abs(x)"},
         "astype: a complex number does not convert to {} ({})", a.dtype, *type_of(in[0]));
}

constexpr auto astype_def = Elementwise<AstypeAttrs>{
    .doc =
        "`x` converted to the element type `dtype`. Floats become integers without their fraction, "
        "saturated to the range, NaN as 0; integers wrap around; nonzero numbers are true. "
        "Complex numbers convert to complex types and bool only.",
    .aliases = {"cast"},
    .args = {"x"},
    .types = any_type,
    .operands = Operands::as_given,
    .result = ResultType::given,
    .scalar = [](const AstypeAttrs& a, S x) { return converted(x, real_of(a.dtype)); },
    .complex =
        [](const AstypeAttrs& a, Z z) {
          if (a.dtype == DType::b1) return Z{(z.re != 0.0) | (z.im != 0.0), {}};
          return Z{converted(z.re, real_of(a.dtype)), converted(z.im, real_of(a.dtype))};
        },
    .prepare = [](AstypeAttrs& a, Tensors& in) { prepare_astype(a, in); },
    .linear = Linear::each,
    .adjoint =
        [](const AstypeAttrs&, T ct, const Tensors& in, int) {
          DType type = in[0].dtype();
          return cast_to(is_complex(type) ? ct : tn::real(ct), type);
        },
    .samples = {{"f32[2,3]", "dtype=f64"},
                {"f32[2,3]", "dtype=bf16"},
                {"i32[4]", "dtype=f32"},
                {"f32[]", "dtype=bool"},
                {"f32[4]", "dtype=c64"}},
};
TN_OP(astype);

struct BitcastAttrs {
  DType dtype = DType::i32;
  static constexpr void fields(auto& a, auto&& f) { f("dtype", a.dtype, required); }
};

static Type infer_bitcast(const BitcastAttrs& a, Types in) {
  const Type& x = *in[0];
  if (is_complex(x.dtype) || is_complex(a.dtype) || x.dtype == DType::b1 || a.dtype == DType::b1)
    fail(Fault::type, "bitcast: bool and complex are not supported: {} ({})", a.dtype, x);
  if (size_of(x.dtype) != size_of(a.dtype))
    fail(Fault::type, "bitcast: element sizes differ: {} ({}) and {} ({})", size_of(x.dtype), x,
         size_of(a.dtype), a.dtype);
  return {a.dtype, x.shape};
}

constexpr auto bitcast_def = Op<BitcastAttrs>{
    .doc =
        "The bits of every element read as another type of the same size: `float32` 1.0 as "
        "`uint32` "
        "is 0x3f800000. bool and complex are refused. The derivative is 0.",
    .args = {"x"},
    .infer = rule<infer_bitcast>,
    .lower =
        [](const BitcastAttrs& a, loop::Lowering& l) {
          loop::Coords at = l.loops(l.out[0]->shape);
          S x = l.load(0, at).re;
          l.store(0, at, {x.type() == a.dtype ? x : sc::bitcast(x, a.dtype), {}});
        },
    .gradient = Gradient::zero,
    .batch = Batch::aligned,
    .samples = {{"f32[2,3]", "dtype=i32"}, {"i64[4]", "dtype=f64"}, {"f32[]", "dtype=u32"}},
};
TN_OP(bitcast);

constexpr auto stop_gradient_def = Elementwise<>{
    .doc = "`x` itself, as a constant to differentiation.",
    .aliases = {"detach"},
    .types = any_type,
    .operands = Operands::as_given,
    .scalar = [](S x) { return x; },
    .complex = [](Z z) { return z; },
    .gradient = Gradient::zero,
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(stop_gradient);

constexpr auto contiguous_def = Composite<>{
    .doc = "`x` itself: computed tensors are always row-major.",
    .args = {"x"},
    .body = [](const NoAttrs&, const Tensors& in) -> Tensors { return in; },
    .samples = {{"f32[2,3]"}, {"f32[]"}},
};
TN_OP(contiguous);

}  // namespace tn::ops
