#include "nn/optimizer_def.h"

#include "base/error.h"
#include "ir/trace.h"
#include "tenon/mesh.h"

namespace tn::optim {

Tensor& OptimizerStep::operator[](std::string_view name) {
  for (int i = 0; i < def.state.size(); ++i) {
    Tensor& found = state[static_cast<size_t>(i)];
    if (def.state[i].name == name && found.defined()) return found;
  }
  fail(Hint{"make a new optimizer after a change of its options"},
       "{}: the state of the parameter has no '{}'", def.name, name);
}

const OptimizerDef* find_optimizer(std::string_view name) {
  for (const OptimizerDef* def : optimizer_table())
    if (def->name == name) return def;
  return nullptr;
}

std::vector<Hyperparameter> hyperparameters_of(const OptimizerDef& def, void* attrs) {
  std::vector<Hyperparameter> list;
  def.list(attrs, list);
  return list;
}

static void check_part(const Hyperparameter& h, const Field& part, std::string_view optimizer) {
  if (!h.range || (part.set && !*part.set)) return;
  bool whole = part.kind == FieldKind::integer;
  double value = whole ? static_cast<double>(*static_cast<const int64_t*>(part.at))
                       : *static_cast<const double*>(part.at);
  if (!h.range->has(value))
    fail("{}: {} must be {}, not {}", optimizer, h.name, h.range->text, value);
}

void check_attrs(const OptimizerDef& def, void* attrs, std::string_view optimizer) {
  for (const Hyperparameter& h : hyperparameters_of(def, attrs))
    for (const Field& part : h.parts.items) check_part(h, part, optimizer);
  std::string_view wrong = def.check ? def.check(attrs) : "";
  if (!wrong.empty()) fail("{}: {}", optimizer, wrong);
}

Tensors initial_state(const OptimizerDef& def, const void* attrs, const Tensor& parameter) {
  Tensors state;
  bool on_mesh = is_mesh(parameter.device()) && !Trace::tracing();
  for (const StateDef& each : def.state) {
    Tensor& made =
        state.emplace_back(each.initial ? each.initial(attrs, parameter) : zeros_like(parameter));
    // Nothing else says how it is divided. Whole state needs more memory than a worker may have.
    if (on_mesh && made.defined() && identical(made.shape(), parameter.shape()))
      made = map_blocks(parameter, [&](const Tensor& block) {
        return each.initial ? each.initial(attrs, block) : zeros_like(block);
      });
  }
  return state;
}

}  // namespace tn::optim
