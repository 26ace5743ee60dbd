// Printing and checking while other ops run, and the op that waits for them.
#include "ops/effects.h"

#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn {

void (*print_line)(std::string_view) = nullptr;

namespace ops {
namespace {

template <class A>
TypeList infer_effect(const A&, Types) {
  return Type{DType::b1, {Dim(0)}};
}

Tensors batch_after(const NoAttrs&, const BatchCall& call) {
  Tensors in = call.in;
  if (!call.batched[0]) in[0] = with_batch(in[0], call.size);
  return emit_all(after, in, nullptr);
}

}  // namespace

constexpr auto print_def = Op<PrintAttrs>{
    .doc = "Prints a text with values in it.",
    .args = {"*values"},
    .surface = false,
    .infer = rule<infer_effect<PrintAttrs>>,
    .gradient = Gradient::zero,
    .batch = Batch::loop,
};
TN_OP(print);

constexpr auto check_def = Op<CheckAttrs>{
    .doc = "Fails unless all of a condition is true.",
    .args = {"condition", "*values"},
    .surface = false,
    .infer = rule<infer_effect<CheckAttrs>>,
    .gradient = Gradient::zero,
    .batch = Batch::loop,
};
TN_OP(check);

constexpr auto after_def = Op<>{
    .doc = "Its first operand, when the others have been computed.",
    .args = {"x", "*others"},
    .surface = false,
    .infer = [](const NoAttrs&, Types in) -> TypeList { return Type(*in[0]); },
    .linear = Linear::each,
    .adjoint = [](const NoAttrs&, T ct, const Tensors&, int k) { return k == 0 ? ct : Tensor(); },
    .batch_rule = rule<batch_after>,
};
TN_OP(after);

}  // namespace ops
}  // namespace tn
