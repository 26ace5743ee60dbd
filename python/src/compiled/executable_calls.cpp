// Executables: compiled ahead of time by a Python function, and called with trees of arguments.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "base/error.h"
#include "calls/call_spec.h"
#include "compiled/c_files.h"
#include "compiled/call_arguments.h"
#include "compiler/memory_report.h"
#include "eval/eval.h"
#include "functions/executable.h"
#include "ir/offset.h"
#include "slots.h"
#include "tenon/executable.h"
#include "tensors/dims.h"
#include "trees/tensor_tree.h"

namespace tn::python {
namespace {

// Calling ------------------------------------------------------------------------------------

/// A leaf of an argument: an input, or what was constant when the function was traced.
struct ArgumentLeaf {
  enum class Role : uint8_t { tensor, size, constant };
  Role role;
  std::string name;  // "data.b.list[1]"
  nb::object constant = {};
};

struct Parameter {
  nb::object name;  // interned
  bool positional, named;
  std::optional<Structure> tree;  // none: one leaf
  std::vector<ArgumentLeaf> leaves;

  std::string text() const { return nb::cast<std::string>(name); }
};

struct PythonExecutable {
  Executable program;
  std::vector<Parameter> parameters;
  std::vector<std::string> fixed;    // parameters of the function that are constants
  std::optional<Structure> results;  // none: one tensor

  std::string takes() const {
    std::vector<std::string> names;
    bool by_position = true;
    for (const Parameter& p : parameters) {
      if (by_position && !p.positional) names.push_back("*");
      by_position = p.positional;
      names.push_back(p.text());
    }
    return format("it takes ({})", join(names, ", "));
  }
};

bool is_none(PyObject* o) { return o == Py_None; }

/// One call: arguments go to their parameters, then their leaves to tensors and sizes.
class ExecutableCall {
 public:
  explicit ExecutableCall(const PythonExecutable& executable) : exe_(executable) {
    given_.resize(exe_.parameters.size());
  }

  void read(PyObject* args, PyObject* keywords) {
    auto count = static_cast<size_t>(PyTuple_GET_SIZE(args));
    if (count > given_.size() || (count && !exe_.parameters[count - 1].positional))
      fail_many(count);
    for (size_t i = 0; i < count; ++i) given_[i] = PyTuple_GET_ITEM(args, i);
    PyObject *key, *value;
    for (Py_ssize_t at = 0; keywords && PyDict_Next(keywords, &at, &key, &value);)
      read_named(key, value);
    check_missing();
    for (size_t i = 0; i < given_.size(); ++i) add(exe_.parameters[i], given_[i]);
  }

  nb::object run() const {
    Tensors made = exe_.program(tensors_, sizes_);
    if (!exe_.results) return wrapped(std::move(made[0]));
    Leaves leaves;
    leaves.reserve(made.size());
    for (Tensor& t : made) leaves.push_back(wrapped(std::move(t)));
    return exe_.results->build(leaves);
  }

 private:
  const std::string& function() const { return exe_.program.name(); }

  [[noreturn]] void fail_many(size_t count) const {
    auto by_position = std::ranges::count_if(exe_.parameters, &Parameter::positional);
    fail(Fault::type, Hint{exe_.takes()}, "{}(): {} arguments given, {} can have a position",
         function(), count, by_position);
  }

  void read_named(PyObject* key, PyObject* value) {
    const std::vector<Parameter>& all = exe_.parameters;
    auto is_it = [&](const Parameter& p) {
      return p.named && (p.name.ptr() == key || PyUnicode_Compare(p.name.ptr(), key) == 0);
    };
    auto found = std::ranges::find_if(all, is_it);
    std::string name = found == all.end() ? nb::cast<std::string>(nb::handle(key)) : "";
    if (std::ranges::count(exe_.fixed, name))
      fail(Fault::type, Hint{exe_.takes()}, "{}(): argument `{}` was given when it was compiled",
           function(), name);
    if (found == all.end())
      fail(Fault::type, Hint{exe_.takes()}, "{}(): no argument `{}`", function(), name);
    PyObject*& place = given_[static_cast<size_t>(found - all.begin())];
    if (place) fail(Fault::type, "{}(): argument `{}` is given twice", function(), found->text());
    place = value;
  }

  void check_missing() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < given_.size(); ++i)
      if (!given_[i]) names.push_back(format("`{}`", exe_.parameters[i].text()));
    if (!names.empty())
      fail(Fault::type, Hint{exe_.takes()}, "{}(): missing argument{} {}", function(),
           names.size() > 1 ? "s" : "", join(names, ", "));
  }

  void add(const Parameter& p, PyObject* given) {
    if (!p.tree) return add_leaf(p.leaves[0], given);
    std::string subject =
        format("{}(): argument `{}` and what it was compiled for differ", function(), p.text());
    Leaves leaves = p.tree->match(given, is_none, subject);
    for (size_t i = 0; i < leaves.size(); ++i) add_leaf(p.leaves[i], leaves[i].ptr());
  }

  void add_leaf(const ArgumentLeaf& leaf, PyObject* given) {
    switch (leaf.role) {
      case ArgumentLeaf::Role::tensor:
        if (Tensor* t = tensor_in(given))
          tensors_.push_back(*t);
        else
          tensors_.push_back(converted(leaf, given));
        return;
      case ArgumentLeaf::Role::size:
        sizes_.push_back(size(leaf, given));
        return;
      case ArgumentLeaf::Role::constant:
        return check_constant(leaf, given);
    }
  }

  Tensor converted(const ArgumentLeaf& leaf, PyObject* given) const {
    if (!PyLong_Check(given) && is_array(given)) return tensor_from(given, {}, Copy::always);
    Hint hint{PyNumber_Check(given) ? "give a tensor: tn.array(x, dtype=...)" : ""};
    fail(Fault::type, hint, "{}(): argument `{}` is not a tensor: {}", function(), leaf.name,
         type_name(given));
  }

  int64_t size(const ArgumentLeaf& leaf, PyObject* given) const {
    if (!PyBool_Check(given) && PyIndex_Check(given))
      return read_int(given, format("{}(): argument `{}`", function(), leaf.name));
    fail(Fault::type, "{}(): argument `{}` is a size, not a {}", function(), leaf.name,
         type_name(given));
  }

  /// Tensors are compared by identity: looking at values would cost a run.
  void check_constant(const ArgumentLeaf& leaf, PyObject* given) const {
    PyObject* known = leaf.constant.ptr();
    if (given == known || given == Py_None) return;
    bool comparable = !is_tensor(given) && !is_tensor(known) && !is_array(given);
    if (comparable && same_object(given, known)) return;
    fail(Hint{"give None for it, or compile with an InputInfo in its place"},
         "{}(): `{}` is a constant of the executable: {}, not {}", function(), leaf.name,
         nb::repr(known).c_str(), nb::repr(given).c_str());
  }

  const PythonExecutable& exe_;
  std::vector<PyObject*> given_;  // by parameter
  Tensors tensors_;
  std::vector<int64_t> sizes_;
};

PyObject* call(PyObject* self, PyObject* args, PyObject* keywords) noexcept {
  return for_user<PyObject*>(nullptr, [&] {
    if (!nb::inst_ready(self)) fail(Fault::type, "Executable: it was never initialised");
    ExecutableCall call(*nb::inst_ptr<PythonExecutable>(self));
    call.read(args, keywords);
    return call.run().release().ptr();
  });
}

PyType_Slot executable_slots[] = {{Py_tp_call, slot(call)}, {0, nullptr}};

// Making -------------------------------------------------------------------------------------

/// (name, "tensor"), (name, "size") or (name, (constant,))
ArgumentLeaf read_leaf(nb::handle row) {
  auto name = nb::cast<std::string>(row[0]);
  nb::object role = row[1];
  if (PyTuple_Check(role.ptr())) return {ArgumentLeaf::Role::constant, name, role[0]};
  bool size = nb::cast<std::string>(role) == "size";
  return {size ? ArgumentLeaf::Role::size : ArgumentLeaf::Role::tensor, name};
}

using ParameterRow = std::tuple<nb::str, int, Structure, nb::list>;

Parameter read_parameter(const ParameterRow& row) {
  const auto& [name, kind, structure, leaves] = row;
  PyObject* interned = nb::object(name).release().ptr();
  PyUnicode_InternInPlace(&interned);
  // The kinds of inspect.Parameter: 0 by position only, 1 both, 3 by name only.
  Parameter made{nb::steal(interned), kind <= 1, kind >= 1, {}, {}};
  if (structure.nodes().size() > 1) made.tree = structure;
  for (nb::handle leaf : leaves) made.leaves.push_back(read_leaf(leaf));
  return made;
}

void init(PythonExecutable* self, const Executable& program, const std::vector<ParameterRow>& rows,
          std::vector<std::string> fixed, nb::object results) {
  new (self) PythonExecutable{program, {}, std::move(fixed), {}};
  for (const ParameterRow& row : rows) self->parameters.push_back(read_parameter(row));
  if (!results.is_none()) self->results = nb::cast<Structure>(results);
}

// Compiling ----------------------------------------------------------------------------------

using Dimension = std::tuple<int64_t, int64_t, int64_t, std::string>;

InputInfo make_input(std::string name, const std::vector<Dimension>& shape, nb::object dtype,
                     std::string place) {
  InputInfo made{
      .shape = {}, .name = std::move(name), .is_size = dtype.is_none(), .place = std::move(place)};
  for (const auto& [min, opt, max, named] : shape) made.shape.emplace_back(min, opt, max, named);
  if (!made.is_size) made.dtype = read_dtype(dtype.ptr());
  return made;
}

nb::list dimensions(const InputInfo& info) {
  nb::list made;
  for (const DimensionInfo& d : info.shape)
    made.append(nb::make_tuple(d.min, d.opt, d.max, d.name));
  return made;
}

/// `f` takes a list of tensors and one of sizes, and gives a list of tensors.
Tensors trace(nb::handle f, const Tensors& args, const std::vector<Dim>& sizes) {
  OwnPlaces own;
  nb::list tensors, dims;
  for (const Tensor& t : args) tensors.append(wrapped(Tensor(t)));
  for (Dim size : sizes) dims.append(size_object(Offset(size)));
  Tensors made;
  for (nb::handle t : f(tensors, dims)) made.push_back(self_tensor(t.ptr()));
  return made;
}

using NamedTensor = std::pair<std::string, nb::object>;

Executable compile_ahead(nb::object f, std::vector<InputInfo> inputs, std::string name, int level,
                         int64_t memory_limit, PlanSettings plan,
                         const std::vector<NamedTensor>& constants, std::string_view mesh,
                         nb::object surface) {
  AheadSettings settings{.optimization_level = level, .name = std::move(name)};
  if (!mesh.empty()) settings.mesh = mesh_of(device_named(mesh, "compile"));
  settings.memory_limit = memory_limit;
  settings.plan = std::move(plan);
  for (const auto& [called, tensor] : constants)
    settings.constants.emplace_back(called, self_tensor(tensor.ptr()));
  settings.surface = [&] {
    auto [text, names] = nb::cast<std::pair<std::string, std::vector<std::string>>>(surface());
    return Surface{std::move(text), std::move(names)};
  };
  auto run = [&](const Tensors& args, const std::vector<Dim>& sizes) {
    return trace(f, args, sizes);
  };
  return flat::compile_ahead_sized(run, inputs, settings);
}

void save(const Executable& program, const std::filesystem::path& path,
          std::vector<std::string> targets, bool debug) {
  program.save(path.string(), {std::move(targets), debug});
}

Executable load(const std::filesystem::path& path, bool trust, std::optional<bool> verify) {
  return Executable::load(path.string(), {.trust = trust, .verify = verify});
}

MemoryReport memory_of(const Executable& program) {
  HostUnlocked unlocked;
  const Program& inner = *program.state()->program;
  return memory_report(*inner.plan(inner.signature().opt));
}

std::string user_place() {
  Place at = resolve(python_place());
  return at.file.empty() ? "" : format("{}:{}", at.file, at.line);
}

void bind_executable_stats(nb::module_& m) {
  using Stats = ExecutableStats;
  nb::class_<Stats>(m, "ExecutableStats", "The contents and the statistics of an executable.")
      .def_ro("calls", &Stats::calls)
      .def_ro("plans", &Stats::plans, "Made, for different sizes.")
      .def_ro("kernels", &Stats::kernels)
      .def_ro("interpreted", &Stats::interpreted, "Kernels without machine code.")
      .def_ro("kernels_compiled", &Stats::kernels_compiled, "Since it was made or loaded.")
      .def_ro("target", &Stats::target, "The CPU level of the code that runs.")
      .def_ro("origin", &Stats::origin, "\"compiled\", \"loaded\", or \"rebuilt\" and why.")
      .def_ro("mesh", &Stats::mesh, "The workers it is for, \"data=2, model=4\"; \"\": one device.")
      .def("__repr__", [](const Stats& s) {
        return format(
            "ExecutableStats(calls={}, plans={}, kernels={}, interpreted={}, "
            "kernels_compiled={}, target='{}', origin='{}', mesh='{}')",
            s.calls, s.plans, s.kernels, s.interpreted, s.kernels_compiled, s.target, s.origin,
            s.mesh);
      });
}

void bind_program(nb::module_& m) {
  nb::class_<Executable>(m, "_Program")
      .def_prop_ro("name", [](const Executable& e) { return e.name(); })
      .def_prop_ro("inputs", [](const Executable& e) { return e.inputs(); })
      .def_prop_ro("num_outputs", [](const Executable& e) { return e.outputs().size(); })
      .def_prop_ro("surface", [](const Executable& e) { return e.surface(); })
      .def_prop_ro("peak_bytes", &Executable::peak_bytes, users_call)
      .def("memory", memory_of, users_call)
      .def("source", &Executable::source, users_call)
      .def("show", &Executable::show, users_call)
      .def("stats", &Executable::stats)
      .def("save", save, users_call)
      .def_static("load", load, users_call)
      .def("__str__", &Executable::to_text);
}

}  // namespace

void bind_executable(nb::module_& m) {
  bind_executable_stats(m);
  nb::class_<InputInfo>(m, "_InputInfo")
      .def(nb::new_(&make_input), nb::arg("name"), nb::arg("shape"), nb::arg("dtype").none(),
           nb::arg("place"))
      .def_ro("name", &InputInfo::name)
      .def_ro("place", &InputInfo::place)
      .def_prop_ro("shape", dimensions)
      .def_prop_ro("dtype", [](const InputInfo& info) {
        return info.is_size ? nb::none() : dtype_object(info.dtype);
      });
  bind_program(m);
  nb::class_<PythonExecutable>(m, "_Executable", nb::type_slots(executable_slots))
      .def("__init__", init, nb::arg("program"), nb::arg("parameters"), nb::arg("fixed"),
           nb::arg("results").none())
      .def_ro("_program", &PythonExecutable::program);
  m.attr("_largest_size") = Dim::kLargestSymbol;
  m.def("_compile_ahead", compile_ahead, users_call);
  bind_c_files(m);
  m.def("_user_place", user_place, "The user's call under way, as \"file:line\".");
}

}  // namespace tn::python
