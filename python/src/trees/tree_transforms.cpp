// grad, vjp, jvp and vmap of Python functions whose arguments and results are trees.
#include <nanobind/stl/string.h>

#include "base/error.h"
#include "calls/list_function.h"
#include "core.h"
#include "ir/dtype.h"
#include "trees/module_stand_ins.h"
#include "trees/tensor_tree.h"

namespace tn::python {

namespace {

/// A call of a Python function under a transform: the tree of arguments that are transformed, and
/// the tree of results once it has run.
struct TreeCall {
  std::string_view transform;
  nb::object f;
  TensorTree in;          // of a list or tuple of arguments
  nb::object parameters;  // which of the parameters of `f` those are; invalid: the first ones
  std::optional<TensorTree> out = {};

  nb::object run(nb::handle args, nb::handle kwargs = {}) const {
    OwnPlaces own;
    return checked(PyObject_Call(f.ptr(), args.ptr(), kwargs.ptr()));
  }
  /// `f` of the arguments with the given tensors in them.
  Tensors operator()(const Tensors& tensors, nb::handle kwargs = {}) {
    StandIns stand_ins(in.modules);
    nb::object args = in.arguments(tensors, stand_ins);
    return read(run(checked(PySequence_Tuple(args.ptr())), kwargs));
  }
  /// The tensors of a result that has nothing else.
  Tensors read(const nb::object& result) {
    out.emplace(result.ptr(), Numbers::are_tensors);
    out->check_whole(transform, [this](size_t leaf) { return result_name(leaf); });
    return out->tensors;
  }

  std::string argument_name(size_t leaf) const {
    nb::object which = parameters.is_valid() ? parameters : nb::none();
    nb::module_ package = nb::module_::import_("tenon.transforms");
    std::vector<std::string> names;
    for (nb::handle name :
         package.attr("_argument_names")(f, which, in.structure.nodes()[0].children))
      names.push_back(nb::cast<std::string>(name));
    return in.structure.path(leaf, names);
  }
  std::string result_name(size_t leaf) const {
    std::string path = out->structure.path(leaf);
    return path.empty() ? "the result" : "result" + path;
  }
  flat::Names names() const {
    return {transform, [this](size_t k) { return argument_name(in.at[k]); },
            [this](size_t k) { return result_name(out->at[k]); }};
  }
};

std::vector<int> numbers_up_to(size_t count) {
  std::vector<int> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<int>(i);
  return all;
}

// grad ---------------------------------------------------------------------------------------

/// The arguments that are differentiated: positions among `args`, and keywords.
struct Selection {
  nb::tuple args;
  nb::dict kwargs;
  nb::tuple keys;  // ints and strs

  Py_ssize_t position(nb::handle key, std::string_view transform) const {
    Py_ssize_t count = static_cast<Py_ssize_t>(args.size());
    Py_ssize_t i = PyLong_AsSsize_t(key.ptr());
    if (PyErr_Occurred()) {  // beyond any number of arguments
      PyErr_Clear();
      i = PY_SSIZE_T_MAX;
    }
    if (i < -count || i >= count)
      fail(Fault::index,
           Hint{kwargs.size() ? "argnames differentiates arguments given by name" : ""},
           "{}: no argument {} among the {} given by position", transform, nb::repr(key).c_str(),
           count);
    return i < 0 ? i + count : i;
  }
  nb::tuple chosen(std::string_view transform) const {
    nb::list made;
    nb::set seen;
    for (nb::handle key : keys) {
      bool by_position = PyLong_Check(key.ptr());
      nb::object which =
          by_position ? nb::object(nb::int_(position(key, transform))) : nb::borrow(key);
      if (seen.contains(which))
        fail("{}: argument {} is chosen twice", transform, nb::repr(which).c_str());
      seen.add(which);
      if (by_position)
        made.append(nb::handle(args)[which]);
      else if (kwargs.contains(key))
        made.append(kwargs[key]);
      else
        fail(Fault::type, Hint{"pass it by name, or give its position in argnums"},
             "{}: argument {} of argnames was not given by name", transform, nb::repr(key).c_str());
    }
    return nb::tuple(made);
  }
  /// An integer inside a tree is a setting, such as a number of layers. One that is an argument by
  /// itself is a number like others.
  void refuse_settings(const TreeCall& call) const {
    size_t first = 0;
    for (nb::handle argument : chosen(call.transform)) {
      Leaves leaves = leaves_of(argument.ptr());
      for (size_t i = 0; i < leaves.size(); ++i)
        if (PyLong_CheckExact(leaves[i].ptr()) && !leaves[i].is(argument))
          fail(Fault::type,
               Hint{"make it a float, pass it apart, or make it a static field of a dataclass"},
               "{}: {} is an int: derivatives exist for floating and complex values only",
               call.transform, call.argument_name(first + i));
      first += leaves.size();
    }
  }
  TreeCall call(std::string_view transform, nb::object f) const {
    TreeCall made{transform, std::move(f),
                  TensorTree(chosen(transform).ptr(), Numbers::are_tensors), keys};
    made.in.check_whole(transform, [&](size_t leaf) { return made.argument_name(leaf); });
    refuse_settings(made);
    return made;
  }
  /// What the function returns for the same arguments with other tensors in the chosen ones.
  nb::object run(const TreeCall& call, const Tensors& tensors) const {
    StandIns stand_ins(call.in.modules);
    nb::object values = call.in.arguments(tensors, stand_ins);
    nb::list positional(args);
    nb::dict named(kwargs);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (PyLong_Check(keys[i].ptr()))
        positional[static_cast<size_t>(position(keys[i], call.transform))] = values[i];
      else
        named[keys[i]] = values[i];
    }
    return call.run(nb::tuple(positional), named);
  }
};

/// Fails unless `result` is a scalar, or a tuple or list that starts with one.
void check_loss(PyObject* result, bool has_aux, std::string_view transform) {
  bool several = PyTuple_Check(result) || PyList_Check(result);
  if (has_aux && (!several || PySequence_Fast_GET_SIZE(result) != 2))
    fail(Fault::type, "{}: with has_aux the function must return a scalar and one more value",
         transform);
  if (several && PySequence_Fast_GET_SIZE(result) == 0)
    fail("{}: the function must return a scalar first, not an empty {}", transform,
         type_name(result));
  PyObject* loss = several ? PySequence_Fast_GET_ITEM(result, 0) : result;
  if (PyFloat_Check(loss) || PyLong_Check(loss))
    fail(Fault::type, Hint{"return the tensor itself; item() and float() end recording"},
         "{}: the function returned a Python number, {}, which has no gradient", transform,
         nb::repr(loss).c_str());
  if (!is_tensor(loss))
    fail(Fault::type, "{}: the function must return a scalar first, not {}", transform,
         loss == Py_None ? "None" : type_name(loss));
}

nb::object value_and_grad(nb::object f, nb::tuple args, nb::dict kwargs, nb::tuple keys,
                          bool has_aux, size_t lists) {
  UserCall place;
  constexpr std::string_view transform = "grad";
  Selection selection{args, kwargs, keys};
  TreeCall call = selection.call(transform, std::move(f));
  auto run = [&](const Tensors& tensors) {
    nb::object result = selection.run(call, tensors);
    check_loss(result.ptr(), has_aux, transform);
    call.out.emplace(result.ptr(), Numbers::first);
    return call.out->tensors;
  };
  flat::Derivatives made = flat::value_and_grad(run, numbers_up_to(call.in.tensors.size()),
                                                call.names(), lists)(call.in.tensors);
  return nb::make_tuple(call.out->with(made.values), call.in.with(made.derivatives));
}

/// A tree like the results, with trees like the chosen arguments for leaves.
nb::object jacobian(nb::object f, nb::tuple args, nb::dict kwargs, nb::tuple keys, bool single,
                    bool reverse) {
  std::string_view transform = reverse ? "jacrev" : "jacfwd";
  Selection selection{args, kwargs, keys};
  TreeCall call = selection.call(transform, std::move(f));
  auto run = [&](const Tensors& tensors) { return call.read(selection.run(call, tensors)); };
  std::vector<int> argnums = numbers_up_to(call.in.tensors.size());
  Function jacobian_of = (reverse ? flat::jacrev : flat::jacfwd)(run, argnums, call.names());
  Tensors made = jacobian_of(call.in.tensors);
  Leaves leaves;
  auto columns = static_cast<ptrdiff_t>(argnums.size());  // none of arguments without tensors
  auto from = made.begin();
  for (size_t i = 0; i < call.out->tensors.size(); ++i, from += columns) {
    nb::object row = call.in.with({from, from + columns});
    leaves.push_back(single ? nb::object(row[0]) : row);
  }
  return call.out->structure.build(leaves);
}

// vjp and jvp --------------------------------------------------------------------------------

void check_primals(nb::handle primals, std::string_view transform) {
  if (!PyTuple_Check(primals.ptr()) && !PyList_Check(primals.ptr()))
    fail(Fault::type, Hint{format("{}(f, [x], ...) for one argument", transform)},
         "{}: primals must be a list or tuple of the arguments, not {}", transform,
         type_name(primals.ptr()));
}

/// Cotangents of the arguments from those of the results, as often as wanted.
class TreePullback {
 public:
  TreePullback(nb::object f, nb::handle primals)
      : call_(
            new TreeCall{"vjp", std::move(f), TensorTree(primals.ptr(), Numbers::are_tensors), {}}),
        pullback_([this](const Tensors& tensors) { return (*call_)(tensors); }, call_->in.tensors,
                  inexact(call_->in.tensors), call_->names()) {
    // Python's garbage collector cannot see what is kept here: no more than tensors.
    call_->f.reset();
    for (Leaves* leaves : {&call_->in.leaves, &call_->out->leaves})
      leaves->assign(leaves->size(), nb::none());
  }

  nb::object outputs() const { return call_->out->with(pullback_.outputs()); }

  nb::object operator()(nb::handle cotangents) const {
    const TensorTree& out = *call_->out;
    nb::object given = nb::borrow(cotangents);
    bool listed = PyList_Check(given.ptr()) || PyTuple_Check(given.ptr());
    if (listed && out.structure.nodes().size() == 1 && nb::len(given) == 1) given = given[0];
    Tensors cts = out.matching(given.ptr(), "vjp: cotangents and results differ in structure");
    Tensors back = pullback_(cts), all(call_->in.tensors.size());
    std::vector<int> which = inexact(call_->in.tensors);
    for (size_t i = 0; i < which.size(); ++i) all[static_cast<size_t>(which[i])] = back[i];
    return call_->in.derivatives(all);
  }

 private:
  static std::vector<int> inexact(const Tensors& tensors) {
    std::vector<int> made;
    for (int i : numbers_up_to(tensors.size()))
      if (is_inexact(tensors[static_cast<size_t>(i)].dtype())) made.push_back(i);
    return made;
  }

  std::unique_ptr<TreeCall> call_;  // what errors are worded with stays where it is
  flat::Pullback pullback_;
};

nb::object vjp(nb::object f, nb::handle primals, nb::handle cotangents) {
  UserCall place;
  check_primals(primals, "vjp");
  TreePullback pullback(std::move(f), primals);
  nb::object outputs = pullback.outputs();
  return nb::make_tuple(
      outputs, cotangents.is_none() ? nb::cast(std::move(pullback)) : pullback(cotangents));
}

nb::object jvp(nb::object f, nb::handle primals, nb::handle tangents) {
  UserCall place;
  check_primals(primals, "jvp");
  TreeCall call{"jvp", std::move(f), TensorTree(primals.ptr(), Numbers::are_tensors), {}};
  Tensors given = call.in.matching(tangents.ptr(), "jvp: tangents and primals differ in structure");
  flat::Derivatives made = flat::jvp(std::ref(call), call.in.tensors, given, call.names());
  return nb::make_tuple(call.out->with(made.values), call.out->with(made.derivatives));
}

// vmap ---------------------------------------------------------------------------------------

bool is_axis(PyObject* o) { return o == Py_None || (PyLong_Check(o) && !PyBool_Check(o)); }

/// The axis of each tensor in `tree`, from a tree in which one axis may stand for many.
flat::BatchAxes axes_of(const TensorTree& tree, nb::handle given, std::string_view what) {
  Leaves leaves =
      tree.structure.match(given.ptr(), is_axis, format("vmap: {} differ in structure", what));
  flat::BatchAxes axes;
  for (size_t leaf : tree.at) {
    PyObject* o = leaves[leaf].ptr();
    if (!is_axis(o))
      fail(Fault::type, "vmap: an axis must be an integer or None, not {}", type_name(o));
    axes.push_back(o == Py_None ? Maybe<int>() : Maybe<int>(read_axis(leaves[leaf])));
  }
  return axes;
}

nb::object call_mapped_tree(nb::object f, nb::tuple args, nb::dict kwargs, nb::handle in_axes,
                            nb::handle out_axes) {
  TreeCall call{"vmap", std::move(f), TensorTree(args.ptr(), Numbers::stay), {}};
  flat::BatchAxes axes = axes_of(call.in, in_axes, "in_axes and arguments");
  Tensors made = flat::call_mapped(
      [&](const Tensors& tensors) { return call(tensors, kwargs); }, call.in.tensors, axes,
      [&] { return axes_of(*call.out, out_axes, "out_axes and results"); }, call.names());
  return call.out->with(made);
}

/// `leaves` of `tree` with other values at the places of its tensors.
Leaves placed(const TensorTree& tree, Leaves leaves, nb::handle values) {
  size_t k = 0;
  for (nb::handle value : values)
    if (k < tree.at.size()) leaves[tree.at[k++]] = nb::borrow(value);
  invariant(k == tree.at.size(), "a tree of {} tensors got {}", tree.at.size(), k);
  return leaves;
}

/// The function of arguments like those in `tree`: a list, or a list and a dict.
nb::object call_with(const TensorTree& tree, nb::handle f, nb::handle values, bool has_keywords) {
  StandIns stand_ins(tree.modules);
  nb::object args = tree.structure.build(placed(tree, tree.leaves, values), &stand_ins), kwargs;
  if (has_keywords) kwargs = args[1], args = args[0];
  return checked(PyObject_Call(f.ptr(), checked(PySequence_Tuple(args.ptr())).ptr(), kwargs.ptr()));
}

/// What flat bindings need of trees.
void bind_tensor_tree(nb::module_& m) {
  nb::class_<TensorTree>(m, "_TensorTree")
      .def(
          "__init__",
          [](TensorTree* self, nb::handle tree, bool numbers) {
            new (self) TensorTree(tree.ptr(), numbers ? Numbers::are_tensors : Numbers::stay);
          },
          nb::arg("tree").none(), nb::arg("numbers") = false)
      .def_prop_ro("tensors", [](const TensorTree& tree) { return tensor_list(tree.tensors); })
      .def_ro("structure", &TensorTree::structure)
      .def("with_tensors",
           [](const TensorTree& tree, nb::handle values) {
             return tree.structure.build(placed(tree, tree.leaves, values));
           })
      .def("call", call_with)
      .def("derivatives",
           [](const TensorTree& tree, nb::handle values) {
             return tree.structure.build(
                 placed(tree, Leaves(tree.leaves.size(), nb::none()), values));
           })
      .def(
          "matching",
          [](const TensorTree& tree, nb::handle given, const std::string& subject) {
            return tensor_list(tree.matching(given.ptr(), subject));
          },
          users_call, nb::arg("tree").none(), nb::arg("subject"))
      .def(
          "axes",
          [](const TensorTree& tree, nb::handle given, const std::string& what) {
            nb::list made;
            for (Maybe<int> axis : axes_of(tree, given, what))
              made.append(axis ? nb::object(nb::int_(*axis)) : nb::none());
            return made;
          },
          users_call, nb::arg("tree").none(), nb::arg("what"))
      .def(
          "check_whole",
          [](const TensorTree& tree, const std::string& transform) {
            tree.check_whole(transform,
                             [&](size_t leaf) { return "result" + tree.structure.path(leaf); });
          },
          users_call);
}

}  // namespace

void bind_tree_transforms(nb::module_& m) {
  bind_tensor_tree(m);
  nb::class_<TreePullback>(m, "Pullback", "The cotangents of arguments from those of results.")
      .def(
          "__call__",
          [](const TreePullback& pullback, nb::handle cotangents) { return pullback(cotangents); },
          users_call, nb::arg("cotangents").none());
  m.def("_call_value_and_grad", value_and_grad, nb::arg("f"), nb::arg("args"), nb::arg("kwargs"),
        nb::arg("keys"), nb::arg("has_aux"), nb::arg("lists") = 1);
  m.def("_call_jacobian", jacobian, users_call);
  m.def("_call_vjp", vjp, nb::arg("f"), nb::arg("primals").none(), nb::arg("cotangents").none());
  m.def("_call_jvp", jvp, nb::arg("f"), nb::arg("primals").none(), nb::arg("tangents").none());
  m.def("_call_vmap", call_mapped_tree, users_call, nb::arg("f"), nb::arg("args"),
        nb::arg("kwargs"), nb::arg("in_axes").none(), nb::arg("out_axes").none());
}

}  // namespace tn::python
