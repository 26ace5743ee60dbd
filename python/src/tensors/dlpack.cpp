// DLPack: tensors of other libraries without a copy, both ways.
#include "tensors/dlpack.h"

#include <optional>

#include "backend/cuda/lending.h"
#include "base/error.h"
#include "calls/call_spec.h"
#include "core.h"
#include "eval/eval.h"
#include "ir/interned.h"
#include "runtime/device.h"

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

/// Whether a device shares its memory. Values of others are copied to the host first.
bool is_gpu(Device device) { return !device.is_host() && runtime_of(device).kind() == "cuda"; }

/// What an exported capsule keeps alive.
struct Exported {
  Tensor tensor;
  int64_t stream = cuda::kNoStream;  // of the consumer, on a GPU
  int64_t shape[kMaxRank], strides[kMaxRank];
  union {
    dl::ManagedTensor plain;
    dl::ManagedTensorVersioned versioned;
  };
  Exported() : plain() {}
  /// The memory may be used again when what the consumer has put on its stream is done.
  ~Exported() {
    if (tensor.defined() && is_gpu(tensor.device())) cuda::wait_for_stream(tensor.device(), stream);
  }
};

dl::Tensor describe(Exported& e, const void* data) {
  Device device = e.tensor.device();
  const Shape& shape = e.tensor.shape();
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    e.shape[i] = shape[i].value(), e.strides[i] = step;
    step *= e.shape[i];
  }
  return {const_cast<void*>(data),
          device.is_host() ? dl::Device{dl::kCpu, 0} : dl::Device{dl::kCuda, device.index},
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

/// A GPU's value in memory of its own.
Tensor copied_there(const Tensor& tensor) {
  Bound value = bound_of(slot_of(tensor));
  RecordScope scope;
  return make_data(cuda::copied(value, tensor.bytes()), 0, type_of(tensor));
}

nb::object export_capsule(const Tensor& tensor, int64_t stream, bool versioned, bool copy) {
  auto made = std::make_unique<Exported>();
  bool on_gpu = !tensor.device().is_host();
  if (!copy)
    made->tensor = tensor;
  else if (on_gpu)
    made->tensor = copied_there(tensor);
  else
    made->tensor = from_bytes(tensor.data(), tensor.dtype(), tensor.shape());
  const void* data = nullptr;
  if (on_gpu) {
    made->stream = stream;
    data = cuda::lend(bound_of(slot_of(made->tensor)), stream);
  } else {
    data = made->tensor.data();
  }
  dl::Tensor described = describe(*made, data);
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

/// A tensor in memory of a GPU that another library owns. `owner` is released in any case.
Tensor tensor_on_gpu(const dl::Tensor& t, DType type, bool contiguous, bool copies, void* owner,
                     void (*release)(void*)) {
  std::string problem;
  std::optional<Device> device;
  try {
    device = Device(format("cuda:{}", t.device.id));
  } catch (const UserError& e) {
    problem = e.what();
  }
  if (problem.empty() && !contiguous) problem = "memory of a GPU must be in row-major order";
  if (!problem.empty()) {
    release(owner);
    fail(Hint{"make it contiguous first, x.contiguous() in PyTorch"}, "from_dlpack: {}", problem);
  }
  RecordScope scope;
  TypeRef its = on_device(intern(type, Shape(t.shape, t.shape + t.ndim)), *device);
  auto bytes = static_cast<size_t>(its->bytes());
  BufferRef memory =
      cuda::borrow(*device, static_cast<char*>(t.data) + t.byte_offset, bytes, owner, release);
  if (copies) memory = cuda::copied({memory, 0}, bytes);
  return make_data(std::move(memory), 0, its);
}

/// The tensor of a capsule's description; `owner` is called back when its memory is no longer used.
template <class Managed>
Tensor import_managed(Managed* managed, const dl::Tensor& t, bool read_only, Copy copy) {
  std::optional<DType> type = type_from(t.dtype);
  const char* data = static_cast<const char*>(t.data) + t.byte_offset;
  bool on_gpu = t.device.type == dl::kCuda || t.device.type == dl::kCudaManaged;
  bool readable = t.device.type == dl::kCpu || t.device.type == dl::kCudaHost || on_gpu;
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
  if (on_gpu && step > 0) return tensor_on_gpu(t, *type, contiguous, copies, managed, release);
  bool is_plain = contiguous && aligned && !other_truth_value(data, *type, step);
  if (is_plain && !copies && step > 0)
    return from_memory(const_cast<char*>(data), *type, shape, managed, release, true);
  Tensor made = tensor_from_strides(data, *type, shape, strides);
  int id = t.device.id;
  release(managed);
  if (on_gpu) return made.to(Device(format("cuda:{}", id)));  // it is empty
  if (step > 0) check_may_copy(copy);
  return made;
}

/// The stream that a producer shall make wait for its work; None where it has no GPU's memory.
nb::object stream_for(nb::handle object) {
  if (!PyObject_HasAttrString(object.ptr(), "__dlpack_device__")) return nb::none();
  nb::object device = object.attr("__dlpack_device__")();
  if (!PyTuple_Check(device.ptr()) || PyTuple_GET_SIZE(device.ptr()) != 2) return nb::none();
  auto kind = nb::cast<int64_t>(nb::int_(device[0])), id = nb::cast<int64_t>(nb::int_(device[1]));
  if (kind != dl::kCuda && kind != dl::kCudaManaged) return nb::none();
  return nb::int_(cuda::stream_of(Device(format("cuda:{}", id))));
}

/// Asks for the current form and takes the old one from producers that know only that.
nb::object ask_capsule(PyObject* object) {
  nb::object method = nb::steal(PyObject_GetAttrString(object, "__dlpack__"));
  if (!method.is_valid()) {
    PyErr_Clear();
    fail(Fault::type, "from_dlpack: {} has no __dlpack__", type_name(object));
  }
  nb::object stream = stream_for(object);
  try {
    return method(nb::arg("stream") = stream, nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
  }
  return stream.is_none() ? method() : method(nb::arg("stream") = stream);
}

/// One of two integers, as in a version or a device.
int64_t one_of_pair(nb::handle pair, int which, std::string_view name) {
  bool fits = PyTuple_Check(pair.ptr()) && PyTuple_GET_SIZE(pair.ptr()) == 2;
  for (Py_ssize_t i = 0; fits && i < 2; ++i) fits = PyIndex_Check(PyTuple_GET_ITEM(pair.ptr(), i));
  if (!fits)
    fail(Fault::type, "__dlpack__: {} is a tuple of two integers, not {}", name,
         nb::repr(pair).c_str());
  return read_int(PyTuple_GET_ITEM(pair.ptr(), which), name);
}

/// The consumer's stream, on a GPU: None is the legacy default stream.
int64_t read_stream(nb::handle stream, Device device) {
  if (stream.is_none()) return cuda::kLegacyStream;
  if (!is_gpu(device))
    fail("__dlpack__: the stream must be None on the CPU: {}", nb::repr(stream).c_str());
  int64_t number = read_int(stream.ptr(), "stream");
  if (number == 0 || number < cuda::kNoStream)
    fail(Hint{"1 is the legacy default stream, 2 that of the thread, -1 asks for no order"},
         "__dlpack__: there is no stream {}", number);
  return number;
}

/// Whether the elements are wanted where they are, in memory of a GPU; else in that of the host.
bool wants_gpu(nb::handle dl_device, Device device) {
  if (dl_device.is_none()) return is_gpu(device);
  int64_t kind = one_of_pair(dl_device, 0, "dl_device");
  if (kind == dl::kCpu) return false;
  if (!is_gpu(device))
    throw_python(PyExc_BufferError, "__dlpack__: tensors live on the CPU, device type 1");
  if (kind != dl::kCuda || one_of_pair(dl_device, 1, "dl_device") != device.index)
    throw_python(PyExc_BufferError, "__dlpack__: the tensor is on {}, device ({}, {})",
                 to_text(device), int{dl::kCuda}, int{device.index});
  return true;
}

nb::object dlpack(nb::handle self, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                  nb::handle copy) {
  UserCall call;
  Tensor tensor = self_tensor(self.ptr());
  int64_t number = read_stream(stream, tensor.device());
  bool on_gpu = wants_gpu(dl_device, tensor.device());
  bool versioned = !max_version.is_none() && one_of_pair(max_version, 0, "max_version") >= 1;
  Copy how = read_copy(copy, Copy::if_needed);
  if (!on_gpu) {
    if (!tensor.device().is_host()) check_may_copy(how);
    tensor = tensor.to(Device());
  }
  check_exportable(tensor);
  if (on_gpu) {
    HostUnlocked unlocked;
    flush(Tensors{tensor});  // the consumer's stream waits for it
  } else {
    evaluate(tensor);
  }
  return export_capsule(tensor, number, versioned, how == Copy::always);
}

nb::object dlpack_device(nb::handle self) {
  Device device = self_tensor(self.ptr()).device();
  if (is_gpu(device)) return nb::make_tuple(int{dl::kCuda}, int{device.index});
  return nb::make_tuple(int{dl::kCpu}, 0);
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
  fail(Fault::type, "from_dlpack: __dlpack__ of {} gave no usable capsule", type_name(object));
}

void add_export(nb::class_<Tensor>& type) {
  type.def("__dlpack__", dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(),
           "The elements as a DLPack capsule, shared and read-only. On a GPU, work that is put on\n"
           "`stream` later waits for them: 1 or None is the legacy default stream, 2 that of the\n"
           "thread, -1 asks for no order.");
  type.def("__dlpack_device__", dlpack_device);
}

}  // namespace tn::python
