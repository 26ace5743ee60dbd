// x[...]: Python's index objects as the library's.
#include "base/error.h"
#include "calls/call_spec.h"
#include "core.h"
#include "ir/node.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "ops/known_values.h"
#include "tenon/backward.h"
#include "tensors/dims.h"

namespace tn::python {
namespace {

bool is_plain_integer(PyObject* o) {
  return PyLong_Check(o) ? !PyBool_Check(o) : PyIndex_Check(o) && !PyObject_CheckBuffer(o);
}

void check_known(const Tensor& bound) {
  if (!Trace::tracing() || !ops::is_unknown(bound)) return;
  ++unknown_values_asked;
  fail(Hint{"tn.dynamic_slice(x, starts, sizes) takes a block of fixed size from any place"},
       "index: a bound of a slice is not known while tracing: {}", *type_of(bound));
}

Maybe<Offset> read_bound(PyObject* o) {
  if (o == Py_None) return {};
  if (Offset size; read_symbolic(o, size)) return size;
  if (Tensor* t = tensor_in(o)) {
    check_known(*t);
    evaluate(*t);
  }
  nb::object number = checked(PyNumber_Index(o));
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow) value = overflow > 0 ? INT64_MAX : INT64_MIN;  // slices clip
  return Offset(value);
}

Index read_slice(PyObject* o) {
  auto* s = reinterpret_cast<PySliceObject*>(o);
  Maybe<Offset> step = read_bound(s->step);
  return Index::slice(read_bound(s->start), read_bound(s->stop),
                      step ? Maybe<int64_t>(step->value()) : Maybe<int64_t>());
}

Index read_index(PyObject* o) {
  if (is_plain_integer(o)) return Index(read_size(o, "index"));
  if (PySlice_Check(o)) return read_slice(o);
  if (o == Py_Ellipsis) return Index(ellipsis);
  if (o == Py_None) return Index(newaxis);
  Tensor t;
  if (Tensor* given = tensor_in(o)) {
    t = *given;
  } else {
    nb::object items = nb::borrow(o);
    if (PyRange_Check(o)) items = nb::steal(PySequence_List(o)), o = items.ptr();
    bool list = PyList_Check(o) || PyTuple_Check(o);
    if (!list && !PyBool_Check(o) && !PyObject_CheckBuffer(o) &&
        !PyObject_HasAttrString(o, "__dlpack__"))
      fail(Fault::type, "index: not an integer, slice, None, Ellipsis or array: {}",
           nb::repr(o).c_str());
    t = tensor_from(o, {}, Copy::always);
    bool empty = list && t.size() == 0;  // [] selects nothing
    if (empty) t = tensor_from(o, DType::i64, Copy::always);
  }
  Kind kind = kind_of(t.dtype());
  if (kind > Kind::natural)
    fail(Fault::type, "index: an index tensor is integer or bool, not {}", name_of(t.dtype()));
  return Index(std::move(t));
}

std::vector<Index> read_indices(PyObject* key) {
  std::vector<Index> indices;
  if (!PyTuple_Check(key)) {
    indices.push_back(read_index(key));
    return indices;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    indices.push_back(read_index(PyTuple_GET_ITEM(key, i)));
  return indices;
}

bool is_lone_flag(const Index& i) {
  return i.kind == Index::Kind::tensor && i.tensor.dtype() == DType::b1 && i.tensor.rank() == 0;
}

/// True, False and masks of rank 0 use up no axis and give one of extent 1 or 0: they become masks
/// of one element over axes that `x` does not have yet.
struct Widening {
  std::vector<Index> widen, narrow;  // add those axes to x, and take them away again
  bool any = false;

  explicit Widening(std::vector<Index>& indices) {
    for (const Index& i : indices) any |= is_lone_flag(i);
    if (!any) return;
    for (Index& i : indices) {
      if (i.kind == Index::Kind::new_axis) continue;
      bool mask = i.kind == Index::Kind::tensor && i.tensor.dtype() == DType::b1;
      if (is_lone_flag(i)) {
        i.tensor = tn::index(i.tensor, {Index(newaxis)});
        widen.push_back(Index(newaxis));
        narrow.push_back(Index(0));
      } else if (i.kind == Index::Kind::all_others) {
        widen.push_back(i);
        narrow.push_back(i);
      } else {
        auto count = static_cast<size_t>(mask ? i.tensor.rank() : 1);
        widen.insert(widen.end(), count, Index::slice());
        narrow.insert(narrow.end(), count, Index::slice());
      }
    }
  }
};

Update read_update(std::string_view how) {
  if (how == "set") return Update::set;
  if (how == "add") return Update::add;
  if (how == "multiply") return Update::multiply;
  if (how == "max") return Update::maximum;
  invariant(how == "min", "index_update: unknown update: {}", how);
  return Update::minimum;
}

Tensor updated(const Tensor& x, PyObject* key, PyObject* value, Update how) {
  DeviceScope there(x.device());  // also of lists
  OperandHolder operand;
  if (!read_operand(value, operand))
    fail(Fault::type, "index: the assigned value is not a tensor or a number: {}",
         type_name(value));
  std::vector<Index> indices = read_indices(key);
  Widening w(indices);
  if (!w.any) return index_update(x, indices, operand.operand, how);
  Tensor wide = tn::index(x, w.widen);
  return tn::index(index_update(wide, indices, operand.operand, how), w.narrow);
}

/// A tensor from outside would hold a tensor of the trace, which has no value when that is over.
/// `compile` warns of all that its functions store.
void warn_of_lost_tensor(const Node& before, const Node& made) {
  const Trace* trace = Trace::tracing();
  if (!trace || trace->by == "compile" || before.traced || !made.traced) return;
  if (before.sequence < trace->start)
    warn(
        format("{}: the function assigns to parts of a tensor from outside, which has no value "
               "afterwards: return the new value, or assign to a copy",
               trace->by));
}

}  // namespace

PyObject* get_item(PyObject* self, PyObject* key) noexcept {
  return for_user<PyObject*>(nullptr, [&] {
    Tensor x = self_tensor(self);   // another thread may rebind the handle meanwhile
    DeviceScope there(x.device());  // also of lists
    std::vector<Index> indices = read_indices(key);
    Widening w(indices);
    return wrap(tn::index(w.any ? tn::index(x, w.widen) : x, indices));
  });
}

int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept {
  return for_user(-1, [&] {
    if (!value)
      fail(Fault::type, Hint{"x = tn.delete(x, indices)"}, "del: tensors have a fixed size");
    // The handle is bound to the new value; tensors made from the old one keep it. A variable stays
    // one.
    Tensor x = self_tensor(self);
    if (is_grad_enabled() && is_variable(*x.node()))
      fail(Hint{"write `with tn.no_grad():` around it, or y = x.at[...].set(value)"},
           "x[...] = value: cannot assign to a tensor that requires a gradient: {}", *type_of(x));
    Tensor made = updated(x, key, value, Update::set);
    warn_of_lost_tensor(*x.node(), *made.node());
    rebind(self_tensor(self), std::move(made));
    return 0;
  });
}

void add_indexing(nb::module_& m) {
  m.def(
      "index_update",
      [](nb::handle x, nb::handle key, nb::handle value, const char* how) {
        return wrapped(updated(read_tensor(x.ptr(), "index_update"), key.ptr(), value.ptr(),
                               read_update(how)));
      },
      users_call, nb::arg("x").none(), nb::arg("index").none(), nb::arg("value").none(),
      nb::arg("how") = "set", "`x` with `x[index]` replaced by, or combined with, `value`.");
}

}  // namespace tn::python
