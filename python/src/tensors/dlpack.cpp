// DLPack: tensors of other libraries without a copy, both ways.
#include "tensors/dlpack.h"

#include <optional>

#include "base/error.h"
#include "calls/call_spec.h"
#include "core.h"

namespace tn::python {
namespace {

constexpr const char* kNew = "dltensor_versioned";
constexpr const char* kOld = "dltensor";
constexpr const char* kUsedNew = "used_dltensor_versioned";
constexpr const char* kUsedOld = "used_dltensor";

dl::DataType type_to(DType type) {
  constexpr dl::TypeCode kCodes[] = {dl::kBool, dl::kInt, dl::kUInt, dl::kFloat, dl::kComplex};
  dl::TypeCode code = type == DType::bf16     ? dl::kBfloat
                      : type == DType::f8e4m3 ? dl::kFloat8E4M3
                      : type == DType::f8e5m2 ? dl::kFloat8E5M2
                                              : kCodes[static_cast<size_t>(kind_of(type))];
  return {code, static_cast<uint8_t>(size_of(type) * 8), 1};
}

std::optional<DType> type_from(dl::DataType given) {
  for (int i = 0; i < kDTypes; ++i)
    if (type_to(static_cast<DType>(i)) == given) return static_cast<DType>(i);
  return {};
}

/// What an exported capsule keeps alive.
struct Exported {
  Tensor tensor;
  int64_t shape[kMaxRank], strides[kMaxRank];
  union {
    dl::ManagedTensor plain;
    dl::ManagedTensorVersioned versioned;
  };
  Exported() : plain() {}
  ~Exported() {}
};

dl::Tensor describe(Exported& e, const void* data) {
  const Shape& shape = e.tensor.shape();
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    e.shape[i] = shape[i].value(), e.strides[i] = step;
    step *= e.shape[i];
  }
  return {const_cast<void*>(data),
          {dl::kCpu, 0},
          shape.rank(),
          type_to(e.tensor.dtype()),
          e.shape,
          e.strides,
          0};
}

template <class Managed>
void delete_exported(Managed* managed) {
  delete static_cast<Exported*>(managed->manager_ctx);
}

/// A capsule that was not consumed still owns its tensor.
template <class Managed>
void delete_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

nb::object export_capsule(const Tensor& tensor, bool versioned, bool copy) {
  auto made = std::make_unique<Exported>();
  made->tensor = copy ? from_bytes(tensor.data(), tensor.dtype(), tensor.shape()) : tensor;
  dl::Tensor described = describe(*made, made->tensor.data());
  Exported* e = made.release();
  PyObject* capsule;
  if (versioned) {
    uint64_t flags = copy ? dl::kIsCopied : dl::kReadOnly;
    new (&e->versioned) dl::ManagedTensorVersioned{
        {1, 0}, e, delete_exported<dl::ManagedTensorVersioned>, flags, described};
    capsule = PyCapsule_New(&e->versioned, kNew, [](PyObject* c) {
      delete_capsule<dl::ManagedTensorVersioned>(c, kNew);
    });
  } else {
    new (&e->plain) dl::ManagedTensor{described, e, delete_exported<dl::ManagedTensor>};
    capsule = PyCapsule_New(&e->plain, kOld,
                            [](PyObject* c) { delete_capsule<dl::ManagedTensor>(c, kOld); });
  }
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

/// The tensor of a capsule's description; `owner` is called back when its memory is no longer used.
template <class Managed>
Tensor import_managed(Managed* managed, const dl::Tensor& t, bool read_only, Copy copy) {
  std::optional<DType> type = type_from(t.dtype);
  const char* data = static_cast<const char*>(t.data) + t.byte_offset;
  bool readable = t.device.type == dl::kCpu || t.device.type == dl::kCudaHost;
  std::string problem;
  if (!type)
    problem = format("no element type for code {} of {} bits", t.dtype.code, t.dtype.bits);
  else if (!readable)
    problem = format("memory of device type {} cannot be read", t.device.type);
  else if (t.ndim > kMaxRank)
    problem = format("{} axes are more than {}", t.ndim, kMaxRank);
  auto release = [](void* owner) {
    auto* m = static_cast<Managed*>(owner);
    if (m->deleter) m->deleter(m);
  };
  if (!problem.empty()) {
    release(managed);
    fail(Fault::type, "from_dlpack: {}", problem);
  }
  Shape shape(t.shape, t.shape + t.ndim);
  int64_t strides[kMaxRank], step = 1;
  bool contiguous = true;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.strides && t.shape[i] != 1 && t.strides[i] != step) contiguous = false;
    strides[i] = (t.strides ? t.strides[i] : step) * size_of(*type);
    step *= t.shape[i];
  }
  bool aligned = reinterpret_cast<uintptr_t>(data) % 16 == 0;
  bool copies = copy == Copy::always || (copy == Copy::if_writable && !read_only);
  if (contiguous && aligned && !copies && step > 0)
    return from_memory(const_cast<char*>(data), *type, shape, managed, release, true);
  Tensor made = tensor_from_strides(data, *type, shape, strides);
  release(managed);
  if (step > 0) check_may_copy(copy);
  return made;
}

/// Asks for the current form and takes the old one from producers that know only that.
nb::object ask_capsule(PyObject* object) {
  nb::object method = nb::steal(PyObject_GetAttrString(object, "__dlpack__"));
  if (!method.is_valid()) {
    PyErr_Clear();
    fail(Fault::type, "from_dlpack: {} has no __dlpack__", Py_TYPE(object)->tp_name);
  }
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
  }
  return method();
}

/// The first of two integers, as in a version or a device.
int64_t first_of_pair(nb::handle pair, std::string_view name) {
  bool fits = PyTuple_Check(pair.ptr()) && PyTuple_GET_SIZE(pair.ptr()) == 2;
  for (Py_ssize_t i = 0; fits && i < 2; ++i) fits = PyIndex_Check(PyTuple_GET_ITEM(pair.ptr(), i));
  if (!fits)
    fail(Fault::type, "__dlpack__: {} is a tuple of two integers, not {}", name,
         nb::repr(pair).c_str());
  return read_int(PyTuple_GET_ITEM(pair.ptr(), 0), name);
}

nb::object dlpack(nb::handle self, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                  nb::handle copy) {
  UserCall call;
  if (!stream.is_none())
    fail("__dlpack__: the stream must be None on the CPU: {}", nb::repr(stream).c_str());
  if (!dl_device.is_none() && first_of_pair(dl_device, "dl_device") != dl::kCpu)
    throw_python(PyExc_BufferError, "__dlpack__: tensors live on the CPU, device type 1");
  bool versioned = !max_version.is_none() && first_of_pair(max_version, "max_version") >= 1;
  Copy how = read_copy(copy, Copy::if_needed);
  Tensor tensor = self_tensor(self.ptr());
  if (!tensor.device().is_host()) check_may_copy(how);
  tensor = tensor.to(Device());
  check_exportable(tensor);
  evaluate(tensor);
  bool copies = how == Copy::always;
  return export_capsule(tensor, versioned, copies);
}

}  // namespace

Tensor tensor_from_dlpack(PyObject* object, Copy copy) {
  nb::object capsule = ask_capsule(object);
  if (PyCapsule_IsValid(capsule.ptr(), kNew)) {
    auto* m = static_cast<dl::ManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kNew));
    if (m->version.major != 1)
      fail(Fault::type, "from_dlpack: version {}.{} is not known", m->version.major,
           m->version.minor);
    PyCapsule_SetName(capsule.ptr(), kUsedNew);
    return import_managed(m, m->tensor, (m->flags & dl::kReadOnly) != 0, copy);
  }
  if (PyCapsule_IsValid(capsule.ptr(), kOld)) {
    auto* m = static_cast<dl::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kOld));
    PyCapsule_SetName(capsule.ptr(), kUsedOld);
    return import_managed(m, m->tensor, false, copy);
  }
  fail(Fault::type, "from_dlpack: __dlpack__ of {} gave no usable capsule",
       Py_TYPE(object)->tp_name);
}

void add_export(nb::class_<Tensor>& type) {
  type.def("__dlpack__", dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(), "The elements as a DLPack capsule, shared and read-only.");
  type.def("__dlpack_device__", [](nb::handle) { return nb::make_tuple(int{dl::kCpu}, 0); });
}

}  // namespace tn::python
