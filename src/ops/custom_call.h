#pragma once
// Calls of functions whose derivatives are the user's. The call's last operand is a number that
// leads to the rules; they live as long as the traces it was called in, and then another call gets
// the number.
#include "ir/body.h"
#include "tenon/flat.h"

namespace tn {

struct CustomCall {
  const std::shared_ptr<const flat::CustomRules> rules;
  const size_t args;  // of the function; what it closes over follows them
  const int64_t number;

  CustomCall(std::shared_ptr<const flat::CustomRules> rules, size_t args);
  ~CustomCall();
  CustomCall(const CustomCall&) = delete;
  static std::shared_ptr<const CustomCall> find(const Tensor& number);
};

/// Records the call of `graph` on `in`: the arguments, then what it closes over.
Tensors emit_custom(std::shared_ptr<const flat::CustomRules> rules, size_t args, GraphRef graph,
                    const Tensors& in);

// The rules of `call`, by transforms/.
Tensors jvp_custom(GraphRef graph, const Primal& p, const Tensors& t);
Tensors vjp_custom(GraphRef graph, const Primal& p, const Tensors& ct);
Tensors batch_custom(GraphRef graph, const BatchCall& call);

}  // namespace tn
