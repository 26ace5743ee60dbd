// Printing and checking while other ops run, and the op that waits for them.
#include "ops/effects.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/values_text.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn {

void (*print_line)(std::string_view) = nullptr;

namespace ops {
namespace {

/// `text` with operands [first, …) in place of `{}`; those that have no place follow.
std::string with_values(std::string_view text, const LibraryCall& call, size_t first,
                        bool anchored) {
  std::string out;
  for (size_t i = first; i + anchored < call.in_types.size(); ++i) {
    size_t at = text.find("{}");
    out += text.substr(0, at);
    text.remove_prefix(at == text.npos ? text.size() : at + 2);
    if (at == out.npos) out += out.empty() ? "" : " ";
    out += values_text(call.in_types[i], call.in[i]);
  }
  return out.append(text);
}

void run_print(const LibraryCall& call) {
  const auto& a = *static_cast<const PrintAttrs*>(call.attrs);
  if (print_line) print_line(with_values(a.text, call, 0, a.anchored));
}

void run_check(const LibraryCall& call) {
  const auto& a = *static_cast<const CheckAttrs*>(call.attrs);
  const auto* flags = static_cast<const bool*>(call.in[0]);
  if (std::all_of(flags, flags + call.in_types[0]->elements, [](bool b) { return b; })) return;
  std::string text = "check: " + with_values(a.text, call, 1, a.anchored);
  if (!a.place.empty()) text += format("\n  at {}", a.place);
  throw UserError(Fault::value, text);
}

template <class A>
TypeList infer_effect(const A&, Types) {
  return Type{DType::b1, {Dim(0)}};
}

void run_after(const LibraryCall& call) {
  std::memcpy(call.out[0], call.in[0], static_cast<size_t>(call.out_types[0]->bytes()));
}

Tensors batch_after(const NoAttrs&, const BatchCall& call) {
  Tensors in = call.in;
  if (!call.batched[0]) in[0] = with_batch(in[0], call.size);
  return emit_all(after, in, nullptr);
}

}  // namespace

constinit const OpDef print = Op<PrintAttrs>{
    .name = "print",
    .doc = "Prints a text with values in it.",
    .args = {"*values"},
    .surface = false,
    .infer = rule<infer_effect<PrintAttrs>>,
    .run = run_print,
    .gradient = Gradient::zero,
    .batch = Batch::loop,
};

constinit const OpDef check = Op<CheckAttrs>{
    .name = "check",
    .doc = "Fails unless all of a condition is true.",
    .args = {"condition", "*values"},
    .surface = false,
    .infer = rule<infer_effect<CheckAttrs>>,
    .run = run_check,
    .gradient = Gradient::zero,
    .batch = Batch::loop,
};

constinit const OpDef after = Op<>{
    .name = "after",
    .doc = "Its first operand, when the others have been computed.",
    .args = {"x", "*others"},
    .surface = false,
    .infer = [](const NoAttrs&, Types in) -> TypeList { return Type(*in[0]); },
    .run = run_after,
    .linear = Linear::each,
    .adjoint = [](const NoAttrs&, T ct, const Tensors&, int k) { return k == 0 ? ct : Tensor(); },
    .batch_rule = rule<batch_after>,
};

}  // namespace ops
}  // namespace tn
