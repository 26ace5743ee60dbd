// grad, vjp, jvp and their like on flat lists of tensors.
#include <set>

#include "base/error.h"
#include "ir/sizes.h"
#include "ir/trace.h"
#include "ops/op_decls.h"
#include "tenon/flat.h"
#include "tenon/ops.h"
#include "transforms/derivative.h"
#include "transforms/names.h"
#include "transforms/sweep.h"

namespace tn::flat {

struct Pullback::Record {
  Names names;
  Trace trace{names.transform, Trace::Values::known};
  Tensors inputs = {}, taped_outputs = {};
  size_t distinct = 0;  // inputs: the others stand for these
  Tape tape = {};
};

namespace {

size_t normal_argnum(int n, size_t count, const Names& names) {
  int c = static_cast<int>(count);
  if (n < -c || n >= c) fail(Fault::index, "{}: no argument {} of {}", names.transform, n, c);
  return static_cast<size_t>(n < 0 ? n + c : n);
}

void check_inexact(const Tensor& x, size_t i, const Names& names) {
  if (is_differentiable(x.dtype())) return;
  fail(Fault::type, Hint{"convert it with astype(float32), or leave it out of the arguments"},
       "{}: {} is {}: derivatives exist for floating and complex arguments only", names.transform,
       argument_name(names, i), *type_of(x));
}

Tensor dense(const Tensor& t, const Tensor& like) {
  return t.defined() ? t : zeros_of(type_of(like));
}

}  // namespace

Tensor fitting(const Tensor& given, const Tensor& x, std::string_view what, const Names& names,
               const std::string& name) {
  bool fits = is_inexact(given.dtype()) && kind_of(given.dtype()) <= kind_of(x.dtype());
  if (!fits || !decide_equal(given.shape(), x.shape()))
    fail(fits ? Fault::value : Fault::type, "{}: the {} of {} is {} but must be {}",
         names.transform, what, name, *type_of(given), *type_of(x));
  return cast_to(given, x.dtype()).to(x.device());
}

Pullback::Pullback(const Function& f, const Tensors& primals, const std::vector<int>& argnums,
                   Names names, size_t lists) {
  auto record = SharedPtr<Record>::make(std::move(names));
  check_given(primals, record->names.transform, "argument");
  Tensors args = primals;
  std::set<size_t> seen;
  for (int n : argnums) {
    size_t i = normal_argnum(n, primals.size(), record->names);
    if (!seen.insert(i).second) fail("{}: argument {} is chosen twice", record->names.transform, i);
    check_inexact(args[i], i, record->names);
    record->inputs.push_back(args[i] = taped_copy(args[i]));
  }
  record->taped_outputs = f(args);
  record->trace.end();
  check_given(record->taped_outputs, record->names.transform, "result");
  record->distinct = record->inputs.size() / lists;
  record->tape = tape_of(record->inputs, record->taped_outputs, record->distinct);
  for (const Tensor& t : record->taped_outputs) outputs_.push_back(emit(ops::copy, {t}));
  record_ = record;
}

Tensors Pullback::operator()(const Tensors& cotangents) const {
  const Tensors& out = record_->taped_outputs;
  const Names& names = record_->names;
  if (cotangents.size() != out.size())
    fail("{}: {} cotangents for {} results", names.transform, cotangents.size(), out.size());
  Tensors cts = cotangents;
  for (size_t i = 0; i < cts.size(); ++i)
    if (cts[i].defined())
      cts[i] = fitting(cts[i], out[i], "cotangent", names, result_name(names, i));
  std::span<const Tensor> inputs = record_->inputs;
  Tensors back = sweep_back(record_->tape, inputs.first(record_->distinct), cts);
  for (size_t i = 0; i < back.size(); ++i) back[i] = dense(back[i], inputs[i]);
  for (size_t i = back.size(); i < inputs.size(); ++i)
    back.push_back(Tensor(back[i - record_->distinct]));
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

Derivatives jvp(const Function& f, const Tensors& primals, const Tensors& tangents,
                const Names& names) {
  if (tangents.size() != primals.size())
    fail("{}: {} tangents for {} arguments", names.transform, tangents.size(), primals.size());
  check_given(primals, names.transform, "argument");
  Trace trace(names.transform, Trace::Values::known);
  Tensors args = primals, inputs, given;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!tangents[i].defined()) continue;
    check_inexact(args[i], i, names);
    if (DType type = tangents[i].dtype();
        is_inexact(type) && promote(type, args[i].dtype()) != args[i].dtype())
      fail(Fault::type, Hint{"convert it with astype, which rounds it"},
           "{}: the tangent of {} is {} but must be {}", names.transform, argument_name(names, i),
           *type_of(tangents[i]), *type_of(args[i]));
    given.push_back(fitting(tangents[i], args[i], "tangent", names, argument_name(names, i)));
    inputs.push_back(args[i] = taped_copy(args[i]));
  }
  Tensors out = f(args);
  trace.end();
  check_given(out, names.transform, "result");
  Derivatives result;
  result.derivatives = sweep_forward(tape_of(inputs, out), given);
  for (size_t i = 0; i < out.size(); ++i) {
    result.derivatives[i] = dense(result.derivatives[i], out[i]);
    result.values.push_back(emit(ops::copy, {out[i]}));
  }
  return result;
}

Callback<Derivatives(const Tensors&)> value_and_grad(Function f, std::vector<int> argnums,
                                                     Names names, size_t lists) {
  return [f = std::move(f), argnums = std::move(argnums), names = std::move(names),
          lists](const Tensors& args) -> Derivatives {
    Pullback pullback(f, args, argnums, names, lists);
    const Tensors& out = pullback.outputs();
    if (out.empty() || out[0].rank() != 0)
      fail(Hint{"reduce it with sum or mean, or use vjp or jacobian"},
           "{}: the function must return a scalar first, not {}", names.transform,
           out.empty() ? "nothing" : to_text(*type_of(out[0])));
    if (!is_float(out[0].dtype()))
      fail(Fault::type, Hint{"return a real number of it, such as abs, or use vjp"},
           "{}: the function must return a real floating scalar first, not {}", names.transform,
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

}  // namespace tn::flat
