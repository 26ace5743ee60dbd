// Foreign memory through the buffer protocol, both ways.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/at_fork.h"
#include "base/error.h"
#include "core.h"
#include "python_interpreter.h"

namespace tn::python {
namespace {

/// Objects dropped by threads without Python's lock, until the interpreter gets to them.
struct Dropped {
  std::mutex mutex;
  std::vector<PyObject*> objects;
};

Dropped& dropped() {
  static auto& only = guarded_for_process<Dropped>(kInnermost);
  return only;
}

int drop_pending(void*) {
  release_dropped_now();
  return 0;
}

/// The element type of a buffer's format and size; false when there is none.
bool read_format(const char* format, Py_ssize_t size, DType& out) {
  if (!format) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  bool complex = *format == 'Z';
  char code = complex ? format[1] : format[0];
  if (format[complex ? 2 : 1] != 0) return false;
  constexpr std::pair<std::string_view, Kind> kCodes[] = {{"?", Kind::boolean},
                                                          {"bhilqn", Kind::integer},
                                                          {"BHILQN", Kind::natural},
                                                          {"efd", Kind::floating}};
  auto found = std::ranges::find_if(
      kCodes, [&](const auto& row) { return row.first.find(code) != row.first.npos; });
  if (found == std::end(kCodes)) return false;
  Kind kind = complex ? Kind::complex : found->second;
  for (int i = 0; i < kDTypes; ++i) {
    out = static_cast<DType>(i);
    if (kind_of(out) == kind && size_of(out) == size && buffer_format(out)) return true;
  }
  return false;
}

bool is_contiguous(const Py_buffer& view) {
  int64_t step = view.itemsize;
  for (int i = view.ndim - 1; i >= 0; --i) {
    if (view.shape[i] != 1 && view.strides && view.strides[i] != step) return false;
    step *= view.shape[i];
  }
  return true;
}

struct BufferGuard {
  Py_buffer view{};
  bool held = false;
  ~BufferGuard() {
    if (held) PyBuffer_Release(&view);
  }
};

/// Foreign memory is shared when kernels can read it as it is.
Tensor share(BufferGuard& guard, DType type, const Shape& shape) {
  auto* owner = new Py_buffer(guard.view);
  guard.held = false;
  // The object is kept by the view; releasing the view needs Python's lock, as a capsule does.
  PyObject* capsule = PyCapsule_New(owner, "tenon.buffer", [](PyObject* c) {
    auto* view = static_cast<Py_buffer*>(PyCapsule_GetPointer(c, "tenon.buffer"));
    PyBuffer_Release(view);
    delete view;
  });
  if (!capsule) throw nb::python_error();
  return from_memory(owner->buf, type, shape, capsule, release_object, true);
}

}  // namespace

std::atomic<bool> has_dropped = false;

void release_dropped_now() noexcept {
  std::vector<PyObject*> objects;
  {
    std::lock_guard lock(dropped().mutex);
    objects.swap(dropped().objects);
    has_dropped.store(false, std::memory_order_relaxed);
  }
  nb::error_scope keep;  // destructors may run Python code
  for (PyObject* o : objects) Py_DECREF(o);
}

void release_object(void* object) {
  if (!may_enter_python()) return;  // the object ends with the process
  auto* o = static_cast<PyObject*>(object);
  if (PyGILState_Check()) return Py_DECREF(o);
  bool first;
  {
    std::lock_guard lock(dropped().mutex);
    first = dropped().objects.empty();
    dropped().objects.push_back(o);
    has_dropped.store(true, std::memory_order_relaxed);
  }
  // Pending calls run on the main thread only, which may be blocked, and their queue may be full:
  // then the next thread that takes Python's lock releases the objects.
  if (first) Py_AddPendingCall(drop_pending, nullptr);
}

const char* buffer_format(DType type) {
  constexpr const char* kFormats[kDTypes] = {"?",     "b", "h", "i",     "q",     "B",
                                             "H",     "I", "Q", nullptr, nullptr, "e",
                                             nullptr, "f", "d", "Zf",    "Zd"};
  return kFormats[static_cast<size_t>(type)];
}

const unsigned char* other_truth_value(const void* data, DType type, int64_t elements) {
  constexpr int64_t kBlock = 4096;  // vectorised, as a search for the first is not
  const auto* at = static_cast<const unsigned char*>(data);
  if (type != DType::b1) return nullptr;
  for (const auto* end = at + elements; at < end;) {
    const auto* block_end = at + std::min<int64_t>(kBlock, end - at);
    unsigned char all = 0;
    for (const auto* byte = at; byte < block_end; ++byte) all |= *byte;
    if (all > 1) return std::find_if(at, block_end, [](unsigned char byte) { return byte > 1; });
    at = block_end;
  }
  return nullptr;
}

Tensor tensor_from_strides(const void* data, DType dtype, const Shape& shape,
                           const int64_t* strides) {
  int64_t count = shape.elements().value(), item = size_of(dtype);
  std::vector<char> packed(static_cast<size_t>(count * item));
  std::array<int64_t, kMaxRank> at{};
  const char* from = static_cast<const char*>(data);
  for (int64_t n = 0; n < count; ++n) {
    std::memcpy(packed.data() + n * item, from, static_cast<size_t>(item));
    for (int d = shape.rank() - 1; d >= 0; --d) {
      auto place = static_cast<size_t>(d);
      from += strides[d];
      if (++at[place] < shape[d].raw) break;
      from -= strides[d] * at[place];
      at[place] = 0;
    }
  }
  if (dtype == DType::b1)
    for (char& truth : packed) truth = truth != 0;
  return from_bytes(packed.data(), dtype, shape);
}

Copy read_copy(nb::handle copy, Copy absent) {
  if (copy.is_none()) return absent;
  int truth = PyObject_IsTrue(copy.ptr());
  if (truth < 0) throw nb::python_error();
  return truth ? Copy::always : Copy::never;
}

void check_may_copy(Copy copy) {
  if (copy != Copy::never) return;
  fail(Hint{"leave copy out"}, "asarray: the data cannot be shared, and copy=False forbids a copy");
}

/// Whether the memory of a buffer never changes. That a view is read-only does not say so: what it
/// is a view of may be writable, as an array behind a read-only view of it.
static bool is_immutable(const Py_buffer& view) {
  PyObject* exporter = view.obj;
  while (exporter && PyMemoryView_Check(exporter)) exporter = PyMemoryView_GET_BASE(exporter);
  return exporter && (PyBytes_CheckExact(exporter) || PyObject_TypeCheck(exporter, tensor_type));
}

Tensor tensor_from_bytes(PyObject* object, DType type, const Shape& shape, size_t bytes) {
  BufferGuard guard;
  if (PyObject_GetBuffer(object, &guard.view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  guard.held = true;
  const Py_buffer& view = guard.view;
  if (static_cast<size_t>(view.len) != bytes)
    fail("pickle: {} bytes for {}, which has {}", view.len, to_text(Type{type, shape}), bytes);
  if (const unsigned char* other = other_truth_value(view.buf, type, view.len))
    fail("pickle: {} is not a bool, at byte {} of {}", *other,
         other - static_cast<const unsigned char*>(view.buf), view.len);
  bool aligned = reinterpret_cast<uintptr_t>(view.buf) % 16 == 0;
  return aligned && is_immutable(view) ? share(guard, type, shape)
                                       : from_bytes(view.buf, type, shape);
}

Tensor tensor_from_buffer(PyObject* object, Copy copy) {
  BufferGuard guard;
  if (PyObject_GetBuffer(object, &guard.view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return {};
  }
  guard.held = true;
  const Py_buffer& view = guard.view;
  DType type;
  if (!read_format(view.format, view.itemsize, type)) return {};
  if (view.ndim > kMaxRank)
    fail("asarray: {} axes are more than {}: {}", view.ndim, kMaxRank, type_name(object));
  Shape shape(view.shape, view.shape + view.ndim);
  bool aligned = reinterpret_cast<uintptr_t>(view.buf) % 16 == 0;
  bool is_plain = is_contiguous(view) && !other_truth_value(view.buf, type, view.len);
  if (!aligned || !is_plain) check_may_copy(copy);
  if (!is_plain) return tensor_from_strides(view.buf, type, shape, view.strides);
  bool copies = copy == Copy::always || (copy == Copy::if_writable && !view.readonly);
  if (copies || !aligned) return from_bytes(view.buf, type, shape);
  return share(guard, type, shape);
}

}  // namespace tn::python
