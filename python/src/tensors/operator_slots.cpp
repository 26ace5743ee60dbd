// Python's operators on tensors, as plain C slots: they are the most frequent calls of all.
#include "base/error.h"
#include "core.h"
#include "ir/emit.h"
#include "ir/known_call.h"
#include "ir/number.h"
#include "ir/trace.h"
#include "ir/watch.h"
#include "slots.h"
#include "tenon/backward.h"
#include "tenon/debug.h"

namespace tn::python {
namespace {

// The op behind each operator, found by its symbol when the module is loaded.
enum Symbol {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kRemainder,
  kPower,
  kMatmul,
  kAnd,
  kOr,
  kXor,
  kLeftShift,
  kRightShift,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kBinaryCount,
  kNegative = kBinaryCount,
  kPositive,
  kInvert,
  kAbsolute,
  kSymbols
};
constexpr std::string_view kTexts[kSymbols] = {
    "+",  "-", "*",  "/",  "//", "%", "**", "@", "&", "|", "^",  "<<",
    ">>", "<", "<=", "==", "!=", ">", ">=", "-", "+", "~", "abs"};
const OpDef* found_ops[kSymbols];

const OpDef& op_of(Symbol symbol) {
  const OpDef* op = found_ops[symbol];
  invariant(op, "operator {}: no op has this symbol", kTexts[symbol]);
  return *op;
}

/// Numbers of which some are given at run time are computed with as Python does.
Tensor apply(Symbol symbol, std::span<const Operand* const> in) {
  bool given = false, numbers = true;
  for (const Operand* x : in) {
    given |= x->tensor && is_given_number(*x->tensor);
    numbers &= !x->tensor || is_number(*x->tensor);
  }
  if (!given || !numbers) return call_one(op_of(symbol), in, nullptr);
  Tensors list;
  for (const Operand* x : in)
    list.push_back(x->tensor ? *x->tensor
                             : make_scalar(x->scalar, default_dtype(x->scalar.kind), true));
  bool divides = symbol == kDivide || symbol == kFloorDivide || symbol == kRemainder;
  if (divides && is_given_number(list[1]))
    check(settled(number_op(op_of(kNotEqual), {list[1], make_scalar(Scalar(0), DType::i32, true)})),
          "division by zero");
  return number_op(op_of(symbol), std::move(list));
}

template <Symbol kSymbol>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  return for_user<PyObject*>(nullptr, [&]() -> PyObject* {
    const Tensor *left = tensor_in(a), *right = tensor_in(b);
    if (left && right)
      if (Tensor made = call_known(op_of(kSymbol), *left, right); made.defined())
        return wrap(std::move(made));
    OperandHolder x, y;
    if (!read_operand(a, x, b) || !read_operand(b, y, a)) return not_implemented();
    const Operand* in[] = {&x.operand, &y.operand};
    return wrap(apply(kSymbol, in));
  });
}

/// Whether it is a variable, or a parameter of a module to which backward() gave a gradient.
bool is_trained(const Node& node) {
  constexpr uint8_t kGiven = kLeaf | kHasGrad;
  return is_variable(node) || (watch_bits(node) & kGiven) == kGiven;
}

/// `w -= step` where gradients are not wanted, as in a training loop without optimizer: what is
/// trained stays so and has another value. Other tensors stay what they are, and the name is bound
/// anew.
template <Symbol kSymbol>
PyObject* in_place(PyObject* a, PyObject* b) noexcept {
  nb::object made = nb::steal(binary<kSymbol>(a, b));
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Tensor* result = made.is_valid() ? tensor_in(made.ptr()) : nullptr;
    Tensor& variable = *tensor_in(a);
    if (!result || is_grad_enabled() || !is_trained(*variable.node())) return made.release().ptr();
    UserCall call;
    rebind(variable, *result);
    return nb::borrow(a).release().ptr();
  });
}

template <Symbol kSymbol>
PyObject* unary(PyObject* a) noexcept {
  return for_user<PyObject*>(nullptr, [&] {
    if (Tensor made = call_known(op_of(kSymbol), *tensor_in(a), nullptr); made.defined())
      return wrap(std::move(made));
    OperandHolder x;
    read_operand(a, x);
    const Operand* in[] = {&x.operand};
    return wrap(apply(kSymbol, in));
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  if (modulus != Py_None) return not_implemented();
  return binary<kPower>(a, b);
}

PyObject* divide_both(PyObject* a, PyObject* b) noexcept {
  nb::object quotient = nb::steal(binary<kFloorDivide>(a, b));
  if (!quotient.is_valid() || quotient.ptr() == Py_NotImplemented) return quotient.release().ptr();
  nb::object rest = nb::steal(binary<kRemainder>(a, b));
  if (!rest.is_valid()) return nullptr;
  return PyTuple_Pack(2, quotient.ptr(), rest.ptr());
}

PyObject* compare(PyObject* a, PyObject* b, int how) noexcept {
  switch (how) {
    case Py_LT:
      return binary<kLess>(a, b);
    case Py_LE:
      return binary<kLessEqual>(a, b);
    case Py_EQ:
      return binary<kEqual>(a, b);
    case Py_NE:
      return binary<kNotEqual>(a, b);
    case Py_GT:
      return binary<kGreater>(a, b);
    default:
      return binary<kGreaterEqual>(a, b);
  }
}

const Tensor& self_of(PyObject* o) { return *tensor_in(o); }

/// The one element of a tensor, for float(x) and the like.
Scalar only_element(PyObject* self, const char* what) {
  const Tensor& t = self_of(self);
  if (t.size() != 1)
    fail(Fault::type, Hint{"reduce it first, as with .sum(), .any() or .all()"},
         "{}: needs a tensor of one element: {}", what, to_text(*type_of(t)));
  evaluate(t);
  return item_of(t);
}

int truth(PyObject* self) noexcept {
  return for_user(-1, [&] {
    Scalar s = only_element(self, "bool");
    return static_cast<int>(s.is_integral() ? s.integer != 0 : s.real != 0 || s.imag != 0);
  });
}

[[noreturn]] void refuse_complex(const char* what) {
  fail(Fault::type, Hint{"take .real or abs(x)"}, "{}: the element is complex", what);
}

PyObject* to_float(PyObject* self) noexcept {
  return for_user<PyObject*>(nullptr, [&] {
    Scalar s = only_element(self, "float");
    if (s.kind == Kind::complex) refuse_complex("float");
    return PyFloat_FromDouble(s.real);
  });
}

PyObject* integer_object(const Scalar& s) {
  if (s.kind == Kind::natural) return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(s.integer));
  return s.is_integral() ? PyLong_FromLongLong(s.integer) : PyLong_FromDouble(s.real);
}

PyObject* to_int(PyObject* self) noexcept {
  return for_user<PyObject*>(nullptr, [&] {
    Scalar s = only_element(self, "int");
    if (s.kind == Kind::complex) refuse_complex("int");
    return integer_object(s);
  });
}

PyObject* to_index(PyObject* self) noexcept {
  return for_user<PyObject*>(nullptr, [&] {
    Kind kind = kind_of(self_of(self).dtype());
    if (kind != Kind::integer && kind != Kind::natural)
      fail(Fault::type, "index: only integer tensors are indices: {}",
           to_text(*type_of(self_of(self))));
    return integer_object(only_element(self, "index"));
  });
}

/// Tensors are equal element by element, so they hash by identity. The hash of a number is its
/// value's.
Py_hash_t hash(PyObject* self) noexcept {
  return for_user<Py_hash_t>(-1, [&] {
    if (is_given_number(*tensor_in(self))) fail_unknown_value();
    return PyBaseObject_Type.tp_hash(self);
  });
}

struct HeldBuffer {
  Tensor tensor;  // the handle in Python may be rebound while the view lives
  Py_ssize_t shape[kMaxRank], strides[kMaxRank];
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  return for_user(-1, [&] {
    Tensor t = self_of(self).to(Device());
    const char* form = buffer_format(t.dtype());
    if (flags & PyBUF_WRITABLE) throw_python(PyExc_BufferError, "tensors are read-only");
    if (!form)
      throw_python(PyExc_BufferError, "{} has no buffer format; astype float32 first",
                   name_of(t.dtype()));
    check_exportable(t);
    evaluate(t);
    auto held = std::make_unique<HeldBuffer>();
    held->tensor = t;
    const Shape& shape = t.shape();
    int64_t step = size_of(t.dtype());
    for (int i = shape.rank() - 1; i >= 0; --i) {
      held->shape[i] = shape[i].value(), held->strides[i] = step;
      step *= shape[i].value();
    }
    view->buf = const_cast<void*>(t.data());
    view->len = t.bytes(), view->itemsize = size_of(t.dtype()), view->readonly = 1;
    view->ndim = shape.rank();
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(form) : nullptr;
    view->shape = flags & PyBUF_ND ? held->shape : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? held->strides : nullptr;
    view->suboffsets = nullptr;
    view->internal = held.release();
    view->obj = Py_NewRef(self);
    return 0;
  });
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<HeldBuffer*>(view->internal);
}

Py_ssize_t length(PyObject* self) noexcept {
  return for_user<Py_ssize_t>(-1, [&]() -> Py_ssize_t {
    const Tensor& t = self_of(self);
    if (t.rank() == 0) fail(Fault::type, "len: a tensor of rank 0 has no length");
    return t.dim(0);
  });
}

int contains(PyObject* self, PyObject* value) noexcept {
  nb::object found = nb::steal(binary<kEqual>(self, value));
  if (!found.is_valid()) return -1;
  if (found.ptr() == Py_NotImplemented) return 0;
  return for_user(-1, [&] {
    Tensor any = call_op("any", {self_of(found.ptr())});
    evaluate(any);
    return static_cast<int>(item_of(any).integer);
  });
}

}  // namespace

// Defined in index_objects.cpp.
PyObject* get_item(PyObject* self, PyObject* key) noexcept;
int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept;

PyType_Slot tensor_slots[] = {
    {Py_nb_add, slot(binary<kAdd>)},
    {Py_nb_subtract, slot(binary<kSubtract>)},
    {Py_nb_multiply, slot(binary<kMultiply>)},
    {Py_nb_true_divide, slot(binary<kDivide>)},
    {Py_nb_inplace_add, slot(in_place<kAdd>)},
    {Py_nb_inplace_subtract, slot(in_place<kSubtract>)},
    {Py_nb_inplace_multiply, slot(in_place<kMultiply>)},
    {Py_nb_inplace_true_divide, slot(in_place<kDivide>)},
    {Py_nb_floor_divide, slot(binary<kFloorDivide>)},
    {Py_nb_remainder, slot(binary<kRemainder>)},
    {Py_nb_divmod, slot(divide_both)},
    {Py_nb_power, slot(power)},
    {Py_nb_matrix_multiply, slot(binary<kMatmul>)},
    {Py_nb_and, slot(binary<kAnd>)},
    {Py_nb_or, slot(binary<kOr>)},
    {Py_nb_xor, slot(binary<kXor>)},
    {Py_nb_lshift, slot(binary<kLeftShift>)},
    {Py_nb_rshift, slot(binary<kRightShift>)},
    {Py_nb_negative, slot(unary<kNegative>)},
    {Py_nb_positive, slot(unary<kPositive>)},
    {Py_nb_invert, slot(unary<kInvert>)},
    {Py_nb_absolute, slot(unary<kAbsolute>)},
    {Py_nb_bool, slot(truth)},
    {Py_nb_int, slot(to_int)},
    {Py_nb_float, slot(to_float)},
    {Py_nb_index, slot(to_index)},
    {Py_tp_richcompare, slot(compare)},
    {Py_tp_hash, slot(hash)},
    {Py_sq_contains, slot(contains)},
    {Py_mp_length, slot(length)},
    {Py_mp_subscript, slot(get_item)},
    {Py_mp_ass_subscript, slot(set_item)},
    {Py_bf_getbuffer, slot(get_buffer)},
    {Py_bf_releasebuffer, slot(release_buffer)},
    {0, nullptr},
};

void find_operators() {
  for (const OpDef* op : surface_ops())
    for (int s = 0; s < kSymbols; ++s) {
      bool unary = s >= kBinaryCount;
      if (op->symbol == kTexts[s] && (op->args.size() == 1) == unary) found_ops[s] = op;
    }
  found_ops[kAbsolute] = find_op("abs");
}

}  // namespace tn::python
