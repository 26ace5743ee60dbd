// Gradients by backward(): what tensors say of them, and where they are wanted.
#include "base/error.h"
#include "core.h"
#include "ir/watch.h"
#include "tenon/ops.h"
#include "transforms/backward.h"
#include "trees/trees.h"

namespace tn::python {
namespace {

/// The handle stays valid whatever other threads bind it to meanwhile.
Tensor value_of(nb::handle self) { return self_tensor(self); }

void set_requires_grad(nb::handle self, bool wanted) {
  UserCall call;
  require_grad(self_tensor(self), wanted);
}

nb::object gradient_of(nb::handle self) {
  Tensor found = grad(value_of(self));
  return found.defined() ? wrapped(std::move(found)) : nb::none();
}

void set_gradient(nb::handle self, nb::handle gradient) {
  UserCall call;
  set_grad(value_of(self), gradient.is_none() ? Tensor() : read_tensor(gradient.ptr(), "grad"));
}

void go_back(nb::handle self, nb::handle gradient, bool retain_graph, bool create_graph) {
  if (create_graph)
    fail(Hint{"tn.grad(f) can be differentiated again, also by backward() of what uses it"},
         "backward: create_graph is not supported: accumulated gradients have no derivatives");
  backward(value_of(self), gradient.is_none() ? Tensor() : read_tensor(gradient.ptr(), "backward"),
           retain_graph);
}

void watch_tree(nb::handle tree) {
  for (const nb::object& leaf : leaves_of(tree.ptr()))
    if (Tensor* t = tensor_in(leaf.ptr())) watch(*t);
}

/// Parameters that are frozen: an earlier call of their module wanted their gradients.
void unwatch_tree(nb::handle tree) {
  for (const nb::object& leaf : leaves_of(tree.ptr())) {
    Tensor* t = tensor_in(leaf.ptr());
    if (!t || !(watch_bits(*t->node()) & kLeaf)) continue;
    if (is_variable(*t->node()))
      require_grad(*t, false);
    else
      *t = stop_gradient(*t);
  }
}

/// For copy.copy and deepcopy. Elements are never written, so that only gradients, which belong to
/// nodes, ask for a node of its own. What leads to leaves goes on doing so.
nb::object copied(nb::handle self) {
  UserCall call;
  Tensor x = value_of(self);
  uint8_t bits = watch_bits(*x.node());
  bool leads = bits & kOnPath && !(bits & kLeaf);
  if (leads || !is_inexact(x.dtype())) return wrapped(std::move(x));
  NoGrad off;
  Tensor own = tn::copy(x);
  set_watch_bits(*own.node(), bits & kRefused);
  return wrapped(bits & kLeaf ? as_variable(own, grad(x), bits & kKept) : own);
}

bool set_grad_enabled(bool enabled) {
  bool before = is_grad_enabled();
  enable_grad(enabled);
  return before;
}

}  // namespace

void add_gradients(nb::class_<Tensor>& type) {
  type.def_prop_rw(
          "requires_grad", [](nb::handle s) { return requires_grad(value_of(s)); },
          set_requires_grad,
          "Whether backward() has a gradient for the tensor, or for what it was computed from.")
      .def(
          "requires_grad_",
          [](nb::handle s, bool wanted) {
            set_requires_grad(s, wanted);
            return nb::borrow(s);
          },
          nb::arg("requires_grad") = true, "Sets `requires_grad` and returns the tensor.")
      .def_prop_ro(
          "is_leaf", [](nb::handle s) { return is_leaf(value_of(s)); },
          "Whether the tensor was not computed from others that require gradients.")
      .def_prop_rw("grad", gradient_of, set_gradient, nb::for_setter(nb::arg("gradient").none()),
                   "The sum of the derivatives that backward() left here, or None.")
      .def("__copy__", copied)
      .def("__deepcopy__", [](nb::handle self, nb::handle) { return copied(self); })
      .def(
          "backward", go_back, users_call, nb::arg("gradient") = nb::none(),
          nb::arg("retain_graph") = false, nb::arg("create_graph") = false,
          "Adds the derivatives of this tensor to `grad` of those that require it.\n\n"
          "A tensor of more than one element needs a `gradient` of its own type: what the\n"
          "derivatives of its elements are weighted with. What was kept for derivatives is let go\n"
          "of, unless `retain_graph` says that there will be another call. `create_graph` is "
          "refused:\n"
          "derivatives of derivatives are those of `tn.grad`.");
}

void bind_backward(nb::module_& m) {
  m.def("is_grad_enabled", &tn::is_grad_enabled,
        "Whether what this thread records leads back to tensors that require gradients.");
  m.def("_set_grad_enabled", set_grad_enabled, nb::arg("enabled"));
  m.def("_watch", watch_tree, users_call, nb::arg("tree"));
  m.def("_unwatch", unwatch_tree, users_call, nb::arg("tree"));
  m.def("_refuses_grad",
        [](nb::handle x) { return (watch_bits(*value_of(x).node()) & kRefused) != 0; });
  m.def(
      "_rebind",
      [](nb::handle tensor, nb::handle value) { rebind(self_tensor(tensor), value_of(value)); },
      users_call);
}

}  // namespace tn::python
