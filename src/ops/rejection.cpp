// Distributions by rejection: every element tries again until a draw is accepted, in its own time.
// Its keys follow from the given one and its position, so it does not depend on the others.
#include "base/error.h"
#include "ops/draws.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "tenon/operators.h"

namespace tn::ops {
namespace {

/// The parameter spread over the result, whose shape is not kept elsewhere.
void prepare_parameter(std::string_view op, std::string_view name, Maybe<Shape>& shape, DType type,
                       Tensors& in) {
  check_one_key(op, in[0]);
  Shape whole = shape.value_or(in[1].shape());
  check_sizes(op, whole);
  if (auto known = known_number(in[1]); known && !(known->real >= 0))
    fail("{}: {} must not be negative: {}", op, name, known->real);
  in[1] = tn::broadcast_to(parameter(op, name, in[1], whole, type), whole);
  shape = {};
}

struct GammaAttrs {
  Maybe<Shape> shape;
  DType dtype = DType::f32;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape), f("dtype", a.dtype); }
};

struct PoissonAttrs {
  Maybe<Shape> shape;
  DType dtype = DType::i64;
  static constexpr void fields(auto& a, auto&& f) { f("shape", a.shape), f("dtype", a.dtype); }
};

}  // namespace

constexpr auto random_gamma_def = Op<GammaAttrs>{
    .doc =
        "Numbers of the gamma distribution with parameter `a` and scale 1, float32 or float64. `a` "
        "broadcasts to `shape`, by default its own. There is no derivative in `a`.",
    .args = {"key", "a"},
    .prepare =
        [](GammaAttrs& a, Tensors& in) {
          if (a.dtype != DType::f32 && a.dtype != DType::f64)
            fail(Fault::type, Hint{"convert the result with astype"},
                 "random_gamma: draws f32 or f64: {}", a.dtype);
          prepare_parameter("random_gamma", "a", a.shape, a.dtype, in);
        },
    .infer = [](const GammaAttrs&, Types in) -> TypeList { return Type(*in[1]); },
    .gradient = Gradient::none,
    .batch = Batch::aligned,
    .samples = {{"u32[2], f32[3]", "", 0, 9}, {"u32[2], f32[3]", "shape=[2,3], dtype=f64", 0, 9}},
};
TN_OP(random_gamma);

constexpr auto random_poisson_def = Op<PoissonAttrs>{
    .doc =
        "Counts of the Poisson distribution with rate `lam`, int32 or int64. `lam` broadcasts to "
        "`shape`, by default its own; it is used as float32. -1 where it is negative or NaN.",
    .args = {"key", "lam"},
    .prepare =
        [](PoissonAttrs& a, Tensors& in) {
          if (a.dtype != DType::i32 && a.dtype != DType::i64)
            fail(Fault::type, Hint{"convert the result with astype"},
                 "random_poisson: draws i32 or i64: {}", a.dtype);
          prepare_parameter("random_poisson", "lam", a.shape, DType::f32, in);
        },
    .infer = [](const PoissonAttrs& a, Types in) -> TypeList {
      return Type{a.dtype, in[1]->shape};
    },
    .gradient = Gradient::zero,
    .batch = Batch::aligned,
    .samples = {{"u32[2], f32[3]", "", 0, 30}, {"u32[2], f32[3]", "shape=[2,3], dtype=i64", 0, 30}},
};
TN_OP(random_poisson);

}  // namespace tn::ops
