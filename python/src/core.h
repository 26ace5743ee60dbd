#pragma once
// What the files of the bindings share: wrapping tensors, errors, and the user's place in Python.
#include <nanobind/nanobind.h>
#include <structmember.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "ir/opdef.h"
#include "ir/place.h"
#include "tenon/tensor.h"

namespace tn::python {

namespace nb = nanobind;

// Tensors ------------------------------------------------------------------------------------

extern PyTypeObject* tensor_type;
extern PyTypeObject* module_type;  // tenon.nn.Module, null before that is imported
extern PyTypeObject* number_type;  // of numbers that are given when a traced function runs
void make_number_type();

/// The tensor inside `object`, or null when it is none. Throws when it was never initialised.
Tensor* tensor_in(PyObject* object);
/// The tensor inside `self`. Throws when it is none, as in `Tensor.item(3)`.
Tensor& self_tensor(PyObject* self);
inline Tensor& self_tensor(nb::handle self) { return self_tensor(self.ptr()); }
inline bool is_tensor(PyObject* object) { return tensor_in(object) != nullptr; }
/// A new Python object that holds `tensor`.
PyObject* wrap(Tensor&& tensor);
inline nb::object wrapped(Tensor&& tensor) { return nb::steal(wrap(std::move(tensor))); }
/// The name of an object's type, for messages. From Python 3.12 on it has our module before it.
inline const char* type_name(PyObject* object) {
  const char* name = Py_TYPE(object)->tp_name;
  return std::strncmp(name, "tenon.", 6) == 0 ? std::strrchr(name, '.') + 1 : name;
}
inline nb::str as_str(std::string_view s) { return nb::str(s.data(), s.size()); }
/// What a function of Python's interface for C made; its error where that is null.
inline nb::object checked(PyObject* made) {
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

/// Computes the value without holding Python's lock.
void evaluate(const Tensor& tensor);
void evaluate(const Tensors& tensors);
/// Fails for a tensor that a derivative under way flows through: an array of another library would
/// be a constant to it.
void check_exportable(const Tensor& tensor);

// Errors -------------------------------------------------------------------------------------

void bind_errors(nb::module_& m);
/// Sets Python's error from the C++ exception in flight: slots call it in `catch (...)`.
void raise_current() noexcept;
/// Throws an exception of a type that Python's protocols ask for, with the user's place.
[[noreturn]] void throw_python_at(ErrorSite site, PyObject* type, const std::string& text);
template <class... A>
[[noreturn]] void throw_python(PyObject* type, ErrorText<A...> text, A&&... args) {
  throw_python_at(text.site, type, format(text.text, std::forward<A>(args)...));
}
extern PyObject* out_of_range;  // tenon.OutOfRange, an OverflowError

/// Runs `body` in a slot: no C++ exception leaves it.
template <class R, class F>
R guarded(R failure, F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    raise_current();
    return failure;
  }
}

/// A UserWarning at the user's line, so many frames up.
void warn(const std::string& text, int frames = 1);

// Places -------------------------------------------------------------------------------------

/// The innermost frame outside this package, as a place that is cheap to remember.
Loc python_place() noexcept;
void install_places();
/// The function of the package that the user called and that is running, by its public name; or "".
std::string called_function();
void install_host_lock();
/// Code of files in `folder` is the package's own, not the user's.
void set_package_folder(const std::string& folder);

// Foreign objects ----------------------------------------------------------------------------

/// Lets go of a Python object from any thread, with or without Python's lock.
void release_object(void* object);
/// Lets go of what threads without Python's lock dropped. The caller holds the lock.
extern std::atomic<bool> has_dropped;
void release_dropped_now() noexcept;
inline void release_dropped() noexcept {
  if (has_dropped.load(std::memory_order_relaxed)) release_dropped_now();
}

/// Marks what is recorded inside as made by the calling Python code.
struct UserCall : LocScope {
  UserCall() : LocScope((release_dropped(), python_place())) {}
};

/// Of functions that are bound: they are the user's calls.
inline constexpr nb::call_guard<UserCall> users_call;
/// The same for slots of types: `f` is the user's call, and its exceptions become Python's.
template <class T, class F>
T for_user(T failure, F&& f) noexcept {
  return guarded<T>(failure, [&]() -> T {
    UserCall call;
    return f();
  });
}

/// What Python code does inside is its own call, not a part of the one being served.
struct OwnPlaces {
  Loc outer = std::exchange(current_loc, {});
  ~OwnPlaces() { current_loc = outer; }
};

// Values -------------------------------------------------------------------------------------

/// A number of Python's own types, exactly; false when it is something else. An integer beyond 64
/// bits is a float when the operand `beside` it is a floating tensor, and refused otherwise.
bool read_number(PyObject* object, Scalar& out, PyObject* beside = nullptr);
/// Whether it is an array or a scalar of NumPy: these have an element type.
bool is_numpy(PyObject* object);
/// An operand of an op: the tensor of a Python object, or one made from it.
struct OperandHolder {
  Tensor made;
  Operand operand{nullptr};
};
/// False when `object` is nothing a tensor can be made of. Foreign memory is copied: it may change
/// before the op runs.
bool read_operand(PyObject* object, OperandHolder& out, PyObject* beside = nullptr);
/// Where lists and arrays beside a tensor go. Nothing for single values of the host, which travel.
std::optional<Device> leading_device(PyObject* object);
/// The same as a tensor; numbers become weak scalars. Throws when it cannot be.
Tensor read_tensor(PyObject* object, std::string_view what);

/// When foreign memory is copied. Ops run lazily, so memory that other code may write to is shared
/// only on request.
enum class Copy { never, always, if_writable, if_needed };
/// Python's `copy` argument; None is `absent`.
Copy read_copy(nb::handle copy, Copy absent);
/// A tensor from data: numbers, nested lists, tensors, buffers, DLPack objects.
Tensor tensor_from(PyObject* object, Maybe<DType> dtype, Copy copy);
/// From an object with the buffer protocol; a null tensor when it has none that fits.
Tensor tensor_from_buffer(PyObject* object, Copy copy);
Tensor tensor_from_dlpack(PyObject* object, Copy copy);
/// From the bytes of its elements. They are shared if they are read-only.
Tensor tensor_from_bytes(PyObject* object, DType type, const Shape& shape, size_t bytes);
/// Fails when memory that cannot be shared must not be copied.
void check_may_copy(Copy copy);
/// The first element of contiguous memory that is a bool whose byte is neither 0 nor 1, or null:
/// NumPy has them, kernels do not.
const unsigned char* other_truth_value(const void* data, DType type, int64_t elements);
/// A copy of strided elements (strides in bytes) as a tensor. Every bool becomes 0 or 1.
Tensor tensor_from_strides(const void* data, DType dtype, const Shape& shape,
                           const int64_t* strides);

DType read_dtype(PyObject* object);
bool try_read_dtype(PyObject* object, DType& out);
nb::object dtype_object(DType type);
/// The value of an attribute as Python writes it; None when it is left out.
nb::object field_object(const Field& field);
nb::object shape_tuple(const Shape& shape);
/// None is the default device.
Device read_device(PyObject* object);
nb::object device_object(Device device);

/// Python's value of one element.
nb::object number_object(const Scalar& number);
nb::object element_object(DType type, const void* at);
/// "f" for float32: the buffer protocol's name, null where there is none.
const char* buffer_format(DType type);

// The parts of the module ----------------------------------------------------------------------

void bind_distributed(nb::module_& m);
void bind_meshes(nb::module_& m);
void bind_dtypes(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_ops(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_creation(nb::module_& m);
void bind_samples(nb::module_& m);
void bind_trees(nb::module_& m);
void bind_tree_transforms(nb::module_& m);
void bind_stand_ins(nb::module_& m);
void bind_backward(nb::module_& m);
void bind_parameters(nb::module_& m);
void bind_compile(nb::module_& m);
void bind_executable(nb::module_& m);
void bind_files(nb::module_& m);
void bind_explain(nb::module_& m);
void bind_random(nb::module_& m);
void bind_control_flow(nb::module_& m);
void bind_models(nb::module_& m);
void bind_model_blocks(nb::module_& m);
void bind_optimizer_rules(nb::module_& m);
void bind_modes(nb::module_& m);
void add_export(nb::class_<Tensor>& type);
void add_gradients(nb::class_<Tensor>& type);
void add_pickling(nb::module_& m, nb::class_<Tensor>& type);
void add_indexing(nb::module_& m);
/// Slots of the Tensor type: numbers, comparison, indexing, buffers, hash.
extern PyType_Slot tensor_slots[];
/// Calls an op of the table from C++ code of the bindings.
Tensor call_op(std::string_view name, std::initializer_list<Tensor> in);

}  // namespace tn::python
