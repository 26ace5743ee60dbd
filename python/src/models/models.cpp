// Logical models: what Python builds, and what became of it.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "calls/list_function.h"
#include "core.h"
#include "functions/traced.h"
#include "ir/watch.h"
#include "model/costs.h"
#include "model/given_values.h"
#include "model/python_file.h"
#include "passes/pipeline.h"
#include "tenon/random.h"

namespace tn::python {
namespace {

using namespace model;

constexpr std::string_view kRoles[] = {"input", "parameter", "state", "output"};

Role read_role(std::string_view name) {
  auto found = std::ranges::find(kRoles, name);
  if (found == std::end(kRoles))
    fail("Terminal: no role '{}'; there are {}", name, join(kRoles, ", "));
  return static_cast<Role>(found - kRoles);
}

/// Tensors by name. `argument` is that of `evaluate`.
Values read_values(nb::handle given, std::string_view argument) {
  static nb::handle mapping =
      nb::object(nb::module_::import_("collections.abc").attr("Mapping")).release();
  if (!nb::isinstance(given, mapping))
    fail(Fault::type, "evaluate: {} is a dict by name, not a {}", argument, type_name(given.ptr()));
  Values values;
  for (nb::handle name : given)
    values.emplace(nb::str(name).c_str(), read_tensor(nb::object(given[name]).ptr(), "evaluate"));
  return values;
}

nb::list tensor_list(Tensors&& tensors) {
  nb::list list;
  for (Tensor& t : tensors)
    if (t.defined())
      list.append(wrapped(std::move(t)));
    else
      list.append(nb::none());
  return list;
}

/// A function of Python that C++ may hold and let go of on any thread.
struct Callable {
  std::shared_ptr<PyObject> function;
  explicit Callable(nb::object f) : function(f.release().ptr(), release_object) {}
  nb::handle get() const { return function.get(); }
};

Initializer read_initial(nb::object f) {
  if (f.is_none()) return {};
  return [call = Callable(std::move(f))](const InitialCall& initial) {
    nb::gil_scoped_acquire lock;
    OwnPlaces places;
    nb::object made = call.get()(shape_tuple(initial.shape), dtype_object(initial.type),
                                 wrapped(Tensor(initial.key)));
    return read_tensor(made.ptr(), "an initial value");
  };
}

Terminal read_terminal(nb::handle given) {
  Terminal t;
  t.name = nb::cast<std::string>(given.attr("name"));
  t.role = read_role(nb::cast<std::string>(given.attr("role")));
  t.shape = nb::cast<std::string>(given.attr("shape"));
  if (nb::object type = given.attr("type"); !type.is_none()) t.type = read_dtype(type.ptr());
  t.initial = read_initial(given.attr("initial"));
  t.optional = nb::cast<bool>(given.attr("optional"));
  return t;
}

nb::tuple terminal_tuple(const Terminal& t) {
  nb::object type = t.type ? dtype_object(*t.type) : nb::none();
  return nb::make_tuple(t.name, std::string(to_text(t.role)), t.shape, type, t.optional);
}

template <class List>
nb::list terminal_list(const List& terminals) {
  nb::list list;
  for (const Terminal& t : terminals) list.append(terminal_tuple(t));
  return list;
}

/// A block that is computed by Python. It draws never (0), in training (1) or always (2).
Block make_block(std::string kind, nb::list terminals, std::map<std::string, int64_t> sizes,
                 std::string settings, int draws, nb::object compute) {
  BlockDef def{.kind = std::move(kind), .terminals = {}};
  def.sizes = std::move(sizes);
  def.settings = std::move(settings);
  def.draws = static_cast<Draws>(draws);
  for (nb::handle t : terminals) def.terminals.push_back(read_terminal(t));
  def.compute = [call = Callable(std::move(compute))](const BlockCall& block) {
    nb::gil_scoped_acquire lock;
    OwnPlaces places;
    nb::object key = block.key.defined() ? wrapped(Tensor(block.key)) : nb::none();
    nb::object made = call.get()(tensor_list(Tensors(block.in)), block.training, key);
    return read_tensors(made, "a block");
  };
  return def;
}

IOKey read_key(nb::handle given) {
  if (nb::isinstance<nb::str>(given)) return nb::cast<std::string>(given);
  IOKey key(nb::cast<std::string>(given.attr("name")));
  if (nb::object shape = given.attr("shape_text"); !shape.is_none())
    key.shape = nb::cast<std::string>(shape);
  if (nb::object type = given.attr("type"); !type.is_none()) key.type = read_dtype(type.ptr());
  if (nb::object value = given.attr("value"); !value.is_none())
    key.value = read_tensor(value.ptr(), "IOKey");
  if (nb::object expose = given.attr("expose"); !expose.is_none())
    key.expose = nb::cast<bool>(expose);
  return key;
}

void add(Model& model, const Block& block, nb::dict connections, std::string name, bool chained) {
  Connections read;
  for (auto [terminal, key] : connections)
    read.emplace_back(nb::cast<std::string>(terminal), read_key(key));
  Connected connected(block, std::move(read), std::move(name));
  chained ? model += connected : model |= connected;
}

/// What `compile_model` says, by name.
Functions resolve(const Model& model, nb::dict said) {
  auto get = [&](const char* name) { return nb::object(said[name]); };
  auto type = [&](const char* name) {
    nb::object given = get(name);
    return given.is_none() ? std::optional<DType>() : read_dtype(given.ptr());
  };
  auto names = [&](const char* name) { return nb::cast<std::vector<std::string>>(get(name)); };
  InferenceRequest request{.precision = *type("precision"),
                           .static_shapes = nb::cast<bool>(get("static_shapes")),
                           .training = !nb::cast<bool>(get("inference"))};
  request.shapes = nb::cast<std::map<std::string, std::string>>(get("shapes"));
  for (auto [name, given] : nb::cast<nb::dict>(get("types")))
    request.types.emplace(nb::cast<std::string>(name), read_dtype(given.ptr()));
  KeySettings keys{.data = names("data_keys"), .discard = names("discard_keys")};
  for (auto [name, value] : nb::cast<nb::dict>(get("constant_keys")))
    keys.constants.emplace(nb::cast<std::string>(name), read_tensor(value.ptr(), "constant_keys"));
  FunctionSettings settings{.narrow = type("mixed_precision"),
                            .segments = nb::cast<int>(get("checkpoint_segments"))};
  if (!get("trainable_keys").is_none()) settings.trainable = names("trainable_keys");
  return resolved_functions(model, request, keys, settings);
}

/// (name, role, shape, dtype, trainable).
nb::list given_list(const Functions& f) {
  nb::list list;
  for (const Given& g : f.given())
    list.append(nb::make_tuple(g.name, std::string(to_text(g.role)), shape_tuple(g.type->shape),
                               dtype_object(g.type->dtype), g.trainable));
  return list;
}

/// (name, role, shape, dtype) of wires.
nb::list wire_list(const Resolved& model, const std::vector<int>& wires) {
  nb::list list;
  for (int w : wires) {
    const FlatWire& wire = model.flat.wires[w];
    TypeRef type = model.types[w];
    list.append(nb::make_tuple(wire.name, std::string(to_text(wire.role)), shape_tuple(type->shape),
                               dtype_object(type->dtype)));
  }
  return list;
}

std::vector<int> all_wires(const Resolved& model) {
  std::vector<int> all(model.types.size());
  for (size_t w = 0; w < all.size(); ++w) all[w] = static_cast<int>(w);
  return all;
}

/// (path, kind, settings, wires read, wires written, place).
nb::list block_list(const Resolved& model) {
  nb::list list;
  for (const FlatBlock& b : model.flat.blocks)
    list.append(nb::make_tuple(b.path, b.def->kind, b.def->settings, b.in, b.out, to_text(b.loc)));
  return list;
}

/// (parameters, their bytes, bytes written, flops), by block.
nb::list cost_list(const Resolved& model) {
  nb::list list;
  for (const BlockCost& c : costs(model))
    list.append(nb::make_tuple(c.parameters, c.parameter_bytes, c.bytes, c.flops));
  return list;
}

/// The values that open sizes are tried with, by name.
nb::dict tried_sizes(const Resolved& model) {
  nb::dict sizes;
  for (const Binding& b : model.sizes) sizes[to_text(b.symbol).c_str()] = b.value;
  return sizes;
}

/// The shapes of all connections for these values of the open sizes, by name.
nb::dict shapes_at(const Resolved& model, const std::map<std::string, int64_t>& sizes) {
  std::vector<Binding> values = model.sizes;
  for (Binding& b : values)
    if (auto said = sizes.find(to_text(b.symbol)); said != sizes.end()) b.value = said->second;
  nb::dict shapes;
  for (size_t w = 0; w < model.types.size(); ++w) {
    nb::list shape;
    for (Dim d : model.types[w]->shape) shape.append(evaluate(d, values));
    shapes[model.flat.wires[w].name.c_str()] = nb::tuple(shape);
  }
  return shapes;
}

/// The text of a Python file, and the constants that it reads, by name.
nb::tuple python_files(const Functions& functions, std::string_view target, nb::dict fixed,
                       const std::string& constants_file) {
  Values values;
  for (auto [name, value] : fixed)
    values.emplace(nb::cast<std::string>(name), read_tensor(value.ptr(), "source"));
  PythonFile file = python_file(functions, target, values, constants_file);
  nb::dict constants;
  for (auto& [name, value] : file.constants) constants[name.c_str()] = wrapped(Tensor(value));
  return nb::make_tuple(std::move(file.text), constants);
}

/// Values of tensors at some time, whatever becomes of the objects that had them.
struct HeldValues {
  Tensors values;
  bool are(nb::handle others) const {
    Tensors given = read_tensors(others, "a block");
    return std::ranges::equal(
        values, given, [](const Tensor& a, const Tensor& b) { return &slot_of(a) == &slot_of(b); });
  }
};

/// Files are run, not recorded: transforms would miss what they do with these.
void refuse_transforms(nb::handle given) {
  if (std::ranges::any_of(read_tensors(given, "a block"), is_watched))
    fail(Hint{"give output_gradients to evaluate, or compile for CpuBackend"},
         "evaluate: cannot transform a model that was compiled to a file");
}

/// backward() fails where it comes to what a file made from these.
void end_derivatives(nb::handle given, nb::handle results) {
  if (lead_to_leaves(read_tensors(given, "a block")))
    mark_blocked(read_tensors(results, "a block"));
}

/// `state` may be None; `ranges` are (least, best, most) of open sizes by name.
nb::list gather_given(const Functions& f, nb::handle params, nb::handle data, nb::handle state,
                      nb::handle own, nb::dict ranges) {
  Values read[] = {read_values(params, "params"), read_values(data, "data"),
                   state.is_none() ? Values() : read_values(state, "state"),
                   read_values(own, "params")};
  GivenValues given{.params = read[0],
                    .data = read[1],
                    .state = state.is_none() ? nullptr : &read[2],
                    .own = read[3]};
  for (auto [name, range] : ranges)
    given.ranges.emplace(nb::cast<std::string>(name),
                         SizeRange{nb::cast<int64_t>(range[0]), nb::cast<int64_t>(range[2])});
  return tensor_list(gather(f, given));
}

}  // namespace

void bind_models(nb::module_& m) {
  nb::class_<Block>(m, "ModelBlock")
      .def_prop_ro("kind", &Block::kind)
      .def_prop_ro("called", &Block::called)
      .def_prop_ro("terminals", [](const Block& b) { return terminal_list(b.terminals()); });
  // Whether some of the code that is made for these runs on this machine.
  m.def(
      "_runs_here",
      [](const std::vector<std::string>& targets) {
        Target lowest = targets_named(targets, "target_hardware").front();
        return is_for_host(lowest) && runs_here(lowest);
      },
      users_call);
  // Whether they run only where they are asked for, by name.
  m.def("_pass_names", [] {
    std::map<std::string, bool> names;
    for (const Pass& pass : pipeline(1)) names.emplace(pass.name, pass.asked_for);
    return names;
  });
  m.def("_make_block", make_block, users_call);
  m.def("_refuse_transforms", refuse_transforms, users_call);
  m.def("_end_derivatives", end_derivatives, users_call);

  nb::class_<Model>(m, "LogicalModel")
      .def(nb::init<std::string>())
      .def("_add", add, users_call)
      .def("_copy", [](const Model& model) { return model; })
      .def("_keep_ends", [](Model& model) { model.keep_ends(); })
      .def(
          "_merge", [](Model& model, const std::vector<std::string>& names) { model.merge(names); },
          users_call)
      .def(
          "_describe", [](Model& model, nb::handle key) { model.describe(read_key(key)); },
          users_call)
      .def("_block", [](const Model& model) { return Block(model); })
      .def(
          "_find", [](const Model& model, const std::string& name) { return model.find(name); },
          users_call)
      .def("_connection", &Model::connection)
      .def("_key", &Model::key)
      .def_prop_ro("_last_part", &Model::last_block)
      .def("_text", &Model::to_text)
      .def_prop_ro("name", &Model::name)
      .def_prop_ro("_terminals",
                   [](const Model& model) { return terminal_list(model.terminals()); })
      .def("_blocks_text", [](const Model& model) { return blocks_text(flatten(model)); })
      .def("_resolve", resolve, users_call);

  nb::class_<Resolved>(m, "ResolvedModel")
      .def_prop_ro("open", [](const Resolved& r) { return wire_list(r, r.flat.open); })
      .def_prop_ro("outputs", [](const Resolved& r) { return wire_list(r, r.flat.outputs); })
      .def_prop_ro("wires", [](const Resolved& r) { return wire_list(r, all_wires(r)); })
      .def_prop_ro("blocks", block_list)
      .def_prop_ro("costs", cost_list)
      .def_prop_ro("tried_sizes", tried_sizes)
      .def("shapes_at", shapes_at);

  nb::class_<Functions>(m, "ModelFunctions")
      .def_prop_ro("model", &Functions::model, nb::rv_policy::reference_internal)
      .def_prop_ro("given", given_list)
      .def_prop_ro("outputs", &Functions::outputs)
      .def_prop_ro("states", &Functions::states)
      .def_prop_ro("training", [](const Functions& f) { return f.model().training; })
      .def("gather", gather_given, nb::arg("params"), nb::arg("data"), nb::arg("state").none(),
           nb::arg("own"), nb::arg("ranges"), users_call)
      .def(
          "cotangents",
          [](const Functions& f, nb::handle given) {
            return tensor_list(output_cotangents(f, read_values(given, "output_gradients")));
          },
          users_call)
      .def("forward",
           [](const Functions& f, nb::handle given) {
             return tensor_list(f.forward(read_tensors(given, "a block")));
           })
      .def("gradients",
           [](const Functions& f, nb::handle given, nb::handle cotangents) {
             return tensor_list(
                 f.gradients(read_tensors(given, "a block"), read_tensors(cotangents, "a block")));
           })
      .def("first_values",
           [](const Functions& f, nb::handle key) {
             return tensor_list(f.first_values(read_tensor(key.ptr(), "randomize_params")));
           })
      .def("python_file", python_files, users_call)
      .def("text", [](const Functions& f, std::string_view stage) { return f.text(stage); });

  nb::class_<HeldValues>(m, "_HeldValues")
      .def(nb::new_([](nb::handle values) { return HeldValues{read_tensors(values, "a block")}; }))
      .def("are", &HeldValues::are)
      .def("values", [](const HeldValues& held) { return tensor_list(Tensors(held.values)); });
}

}  // namespace tn::python
