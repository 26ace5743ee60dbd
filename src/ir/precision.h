#pragma once
// Mixed precision: what a policy does with the operands of ops as they are called (tenon/amp.h).
#include "ir/opdef.h"

namespace tn {

/// The narrow type of the policy in force on this thread; f32: there is none.
inline thread_local DType narrow_type = DType::f32;

/// No policy, from construction to destruction: what is recorded then computes in the types it is
/// given. The insides of ops are, and derivatives and batches of what was recorded before.
class AsGiven {
 public:
  AsGiven() : outer_(narrow_type) { narrow_type = DType::f32; }
  ~AsGiven() { narrow_type = outer_; }
  AsGiven(const AsGiven&) = delete;

 private:
  DType outer_;
};

/// Whether a call of `op` is under a policy that converts its operands.
inline bool is_under_policy(const OpDef& op) {
  return op.precision != Precision::any && narrow_type != DType::f32;
}
/// Converts floating operands as the policy says. float64 stays: it was chosen, not defaulted to.
void apply_policy(Precision precision, Tensors& in);

}  // namespace tn
