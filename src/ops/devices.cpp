#include "ops/devices.h"

#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn {
namespace ops {
namespace {

struct DeviceAttrs {
  std::string_view device = "cpu";
  static constexpr void fields(auto& a, auto&& f) { f("device", a.device); }
};

View view_unchanged(const DeviceAttrs&, const Type& x) {
  View view;
  view.kind = View::Kind::reshape, view.shape = x.shape;
  return view;
}

TypeList infer_to_device(const DeviceAttrs& a, Types in) {
  return Type{in[0]->dtype, in[0]->shape, Device(a.device)};
}

}  // namespace

constexpr auto to_device_def = Movement<DeviceAttrs>{
    .doc = "`x` on another device.",
    .surface = false,
    .moves = true,
    .infer = rule<infer_to_device>,
    .view = rule<view_unchanged>,
    .adjoint = [](const DeviceAttrs&, const Tensor& ct,
                  const Tensor& x) { return ct.to(x.device()); },
    .samples = {{"f32[2,3]", "device=\"cpu\""}},
};
TN_OP(to_device);

}  // namespace ops

Tensor (*movable_to)(const Tensor& x, Device device) = nullptr;

Device Tensor::device() const { return type_of(*this)->device; }

Tensor Tensor::to(Device device) const {
  if (this->device() == device) return *this;
  Tensor moved = movable_to ? movable_to(*this, device) : *this;
  ops::DeviceAttrs attrs{intern(to_text(device))};
  return emit_all(ops::to_device, {&moved, 1}, &attrs)[0];
}

}  // namespace tn
