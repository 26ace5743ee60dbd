// Which ops have effects (prints, checks, messages), in the bodies of control flow too.
#include <algorithm>

#include "ir/body.h"
#include "ops/op_decls.h"
#include "passes/passes.h"

namespace tn {

bool has_effects(const GraphOp& op) {
  static constexpr const OpDef* kEffects[] = {&ops::print, &ops::check, &ops::send, &ops::recv};
  if (std::ranges::count(kEffects, op.op) > 0) return true;
  return std::ranges::any_of(
      bodies_of(op), [](GraphRef body) { return std::ranges::any_of(body->ops, has_effects); });
}

}  // namespace tn
