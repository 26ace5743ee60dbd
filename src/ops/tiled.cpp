#include "ops/tiled.h"

#include "ops/op_decls.h"

namespace tn::ops {

const TiledForm* tiled_form(const OpDef& op, Types in) {
  if (in.empty()) return nullptr;
  DType type = in[0]->dtype;
  if (type != DType::f32 && type != DType::f64) return nullptr;
  if (&op == &conv) return &tiled_conv;
  if (&op == &dot) return &tiled_dot;
  return &op == &scaled_dot_product_attention ? &tiled_attention : nullptr;
}

}  // namespace tn::ops
