#include "ir/precision.h"

#include "base/error.h"
#include "ir/emit.h"
#include "ir/number.h"
#include "tenon/amp.h"

namespace tn {

void apply_policy(Precision precision, Tensors& in) {
  DType to = precision == Precision::low ? narrow_type : DType::f32;
  for (Tensor& t : in) {
    if (!t.defined() || is_number(t)) continue;
    DType type = t.dtype();
    bool covered = type == DType::f32 || type == DType::bf16 || type == DType::f16;
    if (covered && type != to) t = cast_to(t, to);
  }
}

namespace amp {

Autocast::Autocast(std::optional<DType> type) : outer_(narrow_type) {
  if (type && *type != DType::bf16 && *type != DType::f16)
    fail(Fault::type, "autocast: the narrow type is bfloat16 or float16, not {}", name_of(*type));
  narrow_type = type.value_or(DType::f32);
}

Autocast::~Autocast() { narrow_type = outer_; }

std::optional<DType> autocast_type() {
  if (narrow_type == DType::f32) return {};
  return narrow_type;
}

}  // namespace amp

}  // namespace tn
