#include "transforms/derivative.h"

#include "base/error.h"
#include "ir/body.h"
#include "ir/sizes.h"
#include "ir/trace.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "tenon/ops.h"
#include "transforms/sweep.h"

namespace tn {

Tensor zeros_of(TypeRef type) {
  DeviceScope there(type->device);
  return ops::filled(Scalar(0), type->dtype, type->shape);
}

Tensor sum_to(const Tensor& ct, const Shape& shape) {
  if (identical(ct.shape(), shape)) return ct;
  int front = ct.rank() - shape.rank();
  Axes over;
  for (int k = 0; k < ct.rank(); ++k)
    if (k < front || !decide_equal(ct.shape()[k], shape[k - front])) over.push_back(k);
  Tensor summed = over.empty() ? ct : tn::sum(ct, over);
  return identical(summed.shape(), shape) ? summed : tn::reshape(summed, shape);
}

namespace {

[[noreturn]] void fail_not_differentiable(const OpDef& op) {
  unsupported({"stop_gradient of its result, or of its operand, makes it a constant"},
              "{}: it is not differentiable", op.name);
}

/// The transpose of the op's jvp: its tangents are computed from parameters, by linear ops, which
/// are then walked backwards. Only those are: the parameters have no values.
Tensors transpose_jvp(const Application& a, const Tensors& cts, const std::vector<bool>& wanted) {
  Tensors params, tangents(a.in.size());
  for (size_t k = 0; k < a.in.size(); ++k)
    if (wanted[k]) params.push_back(tangents[k] = make_param(type_of(a.in[k])));
  Tensors out, given;
  Tensors made = a.op.rules->jvp(a.attrs, {a.in, a.out, wanted}, tangents);
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i].defined() && cts[i].defined()) out.push_back(made[i]), given.push_back(cts[i]);
  return spread(sweep_back(tape_of(params, out), params, given), wanted);
}

/// A composite is differentiated through its body, on copies of the operands that `chosen` holds
/// for.
struct TapedBody {
  Tensors copies, out;
  TapedBody(const Application& a, const std::vector<bool>& chosen) {
    Trace trace(a.op.name, Trace::Values::known);
    Tensors in = a.in;
    for (size_t k = 0; k < in.size(); ++k)
      if (chosen[k]) copies.push_back(in[k] = taped_copy(in[k]));
    in.resize(std::max(in.size(), static_cast<size_t>(a.op.args.size())));  // absent ones
    out = a.op.rules->body(a.attrs, in);
  }
};

Tensors vjp_of_body(const Application& a, const Tensors& cts, const std::vector<bool>& wanted) {
  TapedBody body(a, wanted);
  return spread(sweep_back(tape_of(body.copies, body.out), body.copies, cts), wanted);
}

Tensors jvp_of_body(const Application& a, const Tensors& tangents) {
  Mask given = mask_of(tangents);
  TapedBody body(a, given);
  return sweep_forward(tape_of(body.copies, body.out), chosen(tangents, given));
}

Tensor added(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : tn::add(a, b);
}

/// A term of an elementwise derivative may be smaller than the result, where others broadcast it.
Tensor broadcast_like(const Tensor& t, const Tensor& out) {
  return t.defined() && !identical(t.shape(), out.shape()) ? tn::broadcast_to(t, out.shape()) : t;
}

Tensors jvp_by_partials(const Application& a, const Tensors& tangents) {
  Tensor sum;
  for (size_t k = 0; k < a.in.size(); ++k)
    if (auto partial = a.op.rules->partials[static_cast<int>(k)]; partial && tangents[k].defined())
      sum = added(sum, partial(a.attrs, tangents[k], a.in, a.out[0]));
  return {broadcast_like(sum, a.out[0])};
}

Tensors jvp_linear(const Application& a, const Tensors& tangents) {
  Tensors in = a.in;
  if (a.op.linear == Linear::jointly) {
    for (size_t k = 0; k < in.size(); ++k)
      if (tangents[k].defined())
        in[k] = tangents[k];
      else if (is_differentiable(in[k].dtype()))
        in[k] = zeros_of(type_of(in[k]));
    return emit_all(a.op, in, a.attrs);
  }
  Tensor sum;
  for (size_t k = 0; k < in.size(); ++k) {
    if (!tangents[k].defined()) continue;
    in[k] = tangents[k];
    sum = added(sum, emit_all(a.op, in, a.attrs)[0]);
    in[k] = a.in[k];
  }
  return {sum};
}

bool any_set(const Tensors& list) {
  for (const Tensor& t : list)
    if (t.defined()) return true;
  return false;
}

}  // namespace

/// Tangents and cotangents are on the device of their values; host scalars are copied there.
static Tensors placed_like(Tensors list, const Tensors& values) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].defined()) list[i] = list[i].to(values[i].device());
  return list;
}

Tensors jvp_of(const Application& a, const Tensors& given) {
  const OpDef& op = a.op;
  if (op.gradient == Gradient::zero || !any_set(given)) return Tensors(a.out.size());
  Tensors tangents = placed_like(given, a.in);
  DeviceScope inside(device_of(a.in));
  if (op.rules->jvp) return op.rules->jvp(a.attrs, {a.in, a.out, mask_of(tangents)}, tangents);
  if (op.rules->partials.size()) return jvp_by_partials(a, tangents);
  if (op.linear != Linear::no) return jvp_linear(a, tangents);
  if (op.rules->body) return jvp_of_body(a, tangents);
  fail_not_differentiable(op);
}

static Tensors cotangents_of(const Application& a, const Tensors& given,
                             const std::vector<bool>& wanted) {
  const OpDef& op = a.op;
  Tensors back(a.in.size());
  if (op.gradient == Gradient::zero || !any_set(given)) return back;
  Tensors cts = placed_like(given, a.out);
  DeviceScope inside(device_of(a.in));
  if (op.rules->vjp)
    if (Tensors made = op.rules->vjp(a.attrs, {a.in, a.out, wanted}, cts); !made.empty())
      return made;
  if (op.rules->jvp) return transpose_jvp(a, cts, wanted);
  if (op.rules->body) return vjp_of_body(a, cts, wanted);
  if (!op.rules->partials.size() && op.linear == Linear::no) fail_not_differentiable(op);
  for (size_t k = 0; k < a.in.size(); ++k) {
    if (!wanted[k]) continue;
    int place = static_cast<int>(k);
    if (op.linear != Linear::no)
      back[k] = op.rules->adjoint(a.attrs, cts[0], a.in, place);
    else if (auto partial = op.rules->partials[place])
      back[k] = partial(a.attrs, cts[0], a.in, a.out[0]);
    if (back[k].defined() && op.is_elementwise()) back[k] = sum_to(back[k], a.in[k].shape());
  }
  return back;
}

Tensors vjp_of(const Application& a, const Tensors& given, const std::vector<bool>& wanted) {
  Tensors back = cotangents_of(a, given, wanted);
  return placed_like(std::move(back), a.in);
}

}  // namespace tn
