#include "ops/tiled.h"

#include "ops/op_decls.h"

namespace tn::ops {

const TiledForm* tiled_form(const OpDef& op, Types in) {
  if (&op != &dot) return nullptr;
  DType type = in[0]->dtype;
  return type == DType::f32 || type == DType::f64 ? &tiled_dot : nullptr;
}

}  // namespace tn::ops
