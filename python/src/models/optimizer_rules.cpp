// Update rules of optimizers (nn/optimizer_def.h) for the classes of Python.
#include <nanobind/stl/string.h>

#include "base/error.h"
#include "calls/call_spec.h"
#include "nn/optimizer_def.h"

namespace tn::python {
namespace {

using namespace optim;

/// The hyper-parameters of an optimizer: attributes of an object, which users may change.
struct Options {
  const OptimizerDef* def;
  std::string_view optimizer;  // the name of its class, for errors
  AttrBuffer attrs;

  explicit Options(nb::handle self)
      : def(find_optimizer(nb::cast<std::string>(self.attr("_rule")))),
        optimizer(type_name(self.ptr())) {
    invariant(def, "{}: its rule is none of the library", optimizer);
    def->defaults(attrs.data);
    for (const Hyperparameter& h : hyperparameters_of(*def, attrs.data))
      if (!h.is_decay()) read(h, self.attr(h.name));
  }

 private:
  void read(const Hyperparameter& h, nb::handle value) {
    const std::vector<Field>& parts = h.parts.items;
    if (parts.size() == 1) return read(parts[0], value);
    bool is_list = PySequence_Check(value.ptr()) && !PyUnicode_Check(value.ptr());
    if (!is_list || nb::len(value) != parts.size())
      fail(Fault::type, "{}: {} must be {} numbers: {}", optimizer, h.name, parts.size(),
           nb::repr(value).c_str());
    for (size_t i = 0; i < parts.size(); ++i) read(parts[i], nb::object(value[i]));
  }
  void read(const Field& part, nb::handle value) {
    if (part.set && value.is_none()) {
      *part.set = false;
      return;
    }
    auto offset = [&](const void* at) { return static_cast<const char*>(at) - attrs.data; };
    FieldSlot slot{optimizer,
                   part.name,
                   part.kind,
                   part.choices,
                   static_cast<size_t>(offset(part.at)),
                   part.set ? offset(part.set) : -1};
    std::vector<nb::object> texts;
    slot.write(attrs.data, value.ptr(), texts);
  }
};

nb::str key_of(const StateDef& def) { return nb::str(def.name.data(), def.name.size()); }

void put_state(const OptimizerDef& def, Tensors& state, nb::dict& into) {
  for (int i = 0; i < def.state.size(); ++i)
    if (Tensor& each = state[static_cast<size_t>(i)]; each.defined())
      into[key_of(def.state[i])] = wrapped(std::move(each));
}

void check_rule(nb::handle self) {
  Options options(self);
  check_attrs(*options.def, options.attrs.data, options.optimizer);
}

void init_rule(nb::handle self, nb::handle parameter, nb::dict state) {
  Options options(self);
  Tensors initial =
      initial_state(*options.def, options.attrs.data, read_tensor(parameter.ptr(), "parameter"));
  put_state(*options.def, initial, state);
}

nb::object apply_rule(nb::handle self, nb::handle gradient, nb::handle parameter, nb::dict state) {
  Options options(self);
  auto read = [](const char* what, const nb::object& given) {
    return read_tensor(given.ptr(), what);
  };
  OptimizerStep update{*options.def, read("gradient", nb::borrow(gradient)),
                       read("parameter", nb::borrow(parameter)),
                       read("step", self.attr("state")["step"]),
                       read("learning_rate", self.attr("learning_rate"))};
  for (const StateDef& each : options.def->state) {
    nb::str key = key_of(each);
    update.state.push_back(state.contains(key) ? read(key.c_str(), state[key]) : Tensor());
  }
  Tensor made = options.def->update(options.attrs.data, update);
  put_state(*options.def, update.state, state);
  return wrapped(std::move(made));
}

}  // namespace

void bind_optimizer_rules(nb::module_& m) {
  m.def("_check_rule", check_rule, users_call);
  m.def("_init_rule", init_rule, users_call);
  m.def("_apply_rule", apply_rule, users_call);
}

}  // namespace tn::python
