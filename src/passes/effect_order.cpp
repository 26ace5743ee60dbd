#include <algorithm>

#include "ir/body.h"
#include "ops/op_decls.h"
#include "passes/passes.h"

namespace tn {

bool has_effects(const GraphOp& op) {
  static constexpr const OpDef* kEffects[] = {&ops::print, &ops::check, &ops::send, &ops::recv};
  if (std::ranges::count(kEffects, op.op) > 0) return true;
  if (!op.attrs) return false;
  for (const Field& f : list_fields(*op.op->attrs, const_cast<void*>(op.attr_data())).items)
    if (f.kind == FieldKind::graph)
      if (const Graph& body = **static_cast<GraphRef*>(f.at);
          std::ranges::any_of(body.ops, has_effects))
        return true;
  return false;
}

}  // namespace tn
