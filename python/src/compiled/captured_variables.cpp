#include "compiled/captured_variables.h"

#include <unordered_set>

#include "ir/watch.h"
#include "transforms/backward.h"

namespace tn::python {

using Gradient = VariableChange::Gradient;

namespace {

/// Also where the tensor was donated.
Tensor& inside(nb::handle object) { return *nb::inst_ptr<Tensor>(object); }

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.node() == b.node() && a.index() == b.index();
}

}  // namespace

void VariableChange::apply(const CallArguments& args, std::span<Tensor>& results) const {
  auto next = [&] {
    Tensor taken = std::move(results[0]);
    results = results.subspan(1);
    return taken;
  };
  Tensor& variable = inside(args.object(tensor));
  Tensor value = rebound ? next() : variable;
  Tensor left;
  if (gradient != Gradient::goes)
    left = gradient == Gradient::comes ? next() : args.gradient(tensor);
  if (!rebound) {
    exchange_gradient(*variable.node(), std::move(left));
  } else {
    if (variable.defined()) mark_replaced(*variable.node());
    variable = as_variable(value, std::move(left));
  }
  if (!required) require_grad(variable, false);
}

TracedVariables::TracedVariables(const CallArguments& args, const Tensors& params, Leaves& leaves) {
  std::unordered_set<PyObject*> known;
  for (size_t k = 0; k < args.tensors.size(); ++k) {
    if (!args.is_state(k) || !is_variable(*args.tensors[k].node())) continue;
    nb::object object = nb::borrow(args.object(k));
    leaves[args.key.at[k]] = object;
    if (!known.insert(object.ptr()).second) continue;
    Tensor gradient = args.gradient(k).defined() ? params[args.place_of_gradient(k)] : Tensor();
    all_.push_back({k, object, inside(object), as_variable(params[k], gradient), gradient});
    inside(object) = all_.back().param;
  }
}

TracedVariables::~TracedVariables() {
  for (Variable& v : all_) {
    exchange_gradient(*v.param.node(), {});
    inside(v.object) = std::move(v.before);
  }
}

std::vector<VariableChange> TracedVariables::after_call(const TracedState& state,
                                                        Tensors& results) const {
  std::vector<VariableChange> changes;
  bool warned = false;
  for (const Variable& v : all_) {
    const Tensor& now = inside(v.object);
    Tensor gradient = gradient_at(*now.node());
    VariableChange change{.tensor = v.tensor,
                          .rebound = !same_tensor(now, v.param),
                          .required = requires_grad(now),
                          .gradient = same_tensor(gradient, v.gradient) ? Gradient::stays
                                      : gradient.defined()              ? Gradient::comes
                                                                        : Gradient::goes};
    if (!change.rebound && change.required && change.gradient == Gradient::stays) continue;
    if (!state.writes(v.object)) {
      if (!std::exchange(warned, true)) state.warn_of_lost_change(v.tensor);
      continue;
    }
    if (change.rebound) results.push_back(now);
    if (change.gradient == Gradient::comes) results.push_back(gradient);
    changes.push_back(change);
  }
  return changes;
}

}  // namespace tn::python
