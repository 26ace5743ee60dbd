#include "tenon/transforms.h"

#include "base/error.h"
#include "ir/trace.h"
#include "ops/op_decls.h"
#include "tenon/ops.h"
#include "transforms/derivative.h"
#include "transforms/sweep.h"

namespace tn {

struct Pullback::Record {
  Trace trace{"grad", Trace::Values::known};
  Tensors inputs, taped_outputs;
  Tape tape;
};

namespace {

int normal_argnum(int n, size_t count, std::string_view by) {
  int c = static_cast<int>(count);
  if (n < -c || n >= c) fail(Fault::index, "{}: no argument {} of {}", by, n, c);
  return n < 0 ? n + c : n;
}

void check_inexact(const Tensor& x, int n, std::string_view by) {
  if (is_differentiable(x.dtype())) return;
  fail(Fault::type, Hint{"convert it: x.astype(tn.float32), or leave it out of argnums"},
       "{}: argument {} is {}: derivatives exist for floating and complex arguments only", by, n,
       *type_of(x));
}

Tensor dense(const Tensor& t, const Tensor& like) { return t ? t : zeros_of(type_of(like)); }

}  // namespace

Pullback::Pullback(const Function& f, const Tensors& primals, const std::vector<int>& argnums) {
  auto record = std::make_shared<Record>();
  Tensors args = primals;
  for (int n : argnums) {
    Tensor& arg = args[static_cast<size_t>(normal_argnum(n, primals.size(), "grad"))];
    check_inexact(arg, n, "grad");
    record->inputs.push_back(arg = taped_copy(arg));
  }
  record->taped_outputs = f(args);
  record->trace.end();
  record->tape = tape_of(record->inputs, record->taped_outputs);
  for (const Tensor& t : record->taped_outputs) outputs_.push_back(emit(ops::copy, {t}));
  record_ = record;
}

Tensors Pullback::operator()(const Tensors& cotangents) const {
  const Tensors& out = record_->taped_outputs;
  if (cotangents.size() != out.size())
    fail("vjp: {} cotangents for {} results", cotangents.size(), out.size());
  Tensors cts = cotangents;
  for (size_t i = 0; i < cts.size(); ++i) {
    if (!cts[i]) continue;
    if (cts[i].shape() != out[i].shape())
      fail("vjp: cotangent {} is {} but the result is {}", i, *type_of(cts[i]), *type_of(out[i]));
    cts[i] = cast_to(cts[i], out[i].dtype());
  }
  Tensors back = sweep_back(record_->tape, record_->inputs, cts);
  for (size_t i = 0; i < back.size(); ++i) back[i] = dense(back[i], record_->inputs[i]);
  return back;
}

static std::vector<int> every(size_t count) {
  std::vector<int> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<int>(i);
  return all;
}

Derivatives vjp(const Function& f, const Tensors& primals, const Tensors& cotangents) {
  Pullback pullback(f, primals, every(primals.size()));
  return {pullback.outputs(), pullback(cotangents)};
}

Derivatives jvp(const Function& f, const Tensors& primals, const Tensors& tangents) {
  if (tangents.size() != primals.size())
    fail("jvp: {} tangents for {} arguments", tangents.size(), primals.size());
  Trace trace("jvp", Trace::Values::known);
  Tensors args = primals, inputs, given;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!tangents[i]) continue;
    check_inexact(args[i], static_cast<int>(i), "jvp");
    if (tangents[i].shape() != args[i].shape())
      fail("jvp: tangent {} is {} but the argument is {}", i, *type_of(tangents[i]),
           *type_of(args[i]));
    inputs.push_back(args[i] = taped_copy(args[i]));
    given.push_back(cast_to(tangents[i], args[i].dtype()));
  }
  Tensors out = f(args);
  trace.end();
  Derivatives result;
  result.derivatives = sweep_forward(tape_of(inputs, out), given);
  for (size_t i = 0; i < out.size(); ++i) {
    result.derivatives[i] = dense(result.derivatives[i], out[i]);
    result.values.push_back(emit(ops::copy, {out[i]}));
  }
  return result;
}

std::function<Derivatives(const Tensors&)> value_and_grad(Function f, std::vector<int> argnums) {
  return [f = std::move(f), argnums = std::move(argnums)](const Tensors& args) -> Derivatives {
    Pullback pullback(f, args, argnums);
    const Tensors& out = pullback.outputs();
    if (out.empty() || out[0].rank() != 0)
      fail(Hint{"reduce it with sum or mean, or use vjp or jacobian"},
           "grad: the function must return a scalar first, not {}",
           out.empty() ? "nothing" : to_text(*type_of(out[0])));
    if (!is_float(out[0].dtype()))
      fail(Fault::type, "grad: the function must return a real floating scalar, not {}",
           *type_of(out[0]));
    Tensors cts(out.size());
    cts[0] = make_scalar(1.0, out[0].dtype(), false);
    return {out, pullback(cts)};
  };
}

Function grad(Function f, std::vector<int> argnums) {
  return [g = value_and_grad(std::move(f), std::move(argnums))](const Tensors& args) {
    return g(args).derivatives;
  };
}

}  // namespace tn
