// Tensors in files.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>

#include "base/error.h"
#include "core.h"
#include "files/safetensors.h"
#include "storage/atomic_file.h"
#include "tenon/files.h"

namespace tn::python {
namespace {

NamedTensors read_named(const nb::dict& tensors) {
  NamedTensors named;
  for (auto [name, tensor] : tensors)
    named.emplace_back(nb::cast<std::string>(name), self_tensor(tensor.ptr()));
  return named;
}

nb::tuple objects_of(TensorFile file) {
  nb::dict tensors;
  for (auto& [name, x] : file.tensors)
    tensors[nb::str(name.data(), name.size())] = wrapped(std::move(x));
  return nb::make_tuple(std::move(tensors), std::move(file.metadata));
}

std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

/// For what Python writes itself: an object with `write`, as zipfile wants, which appears under its
/// name when it is committed.
class PythonFile {
 public:
  explicit PythonFile(const std::filesystem::path& path) {
    UserCall place;
    file_ = std::make_unique<AtomicFile>(path.string(), 0);
  }
  size_t write(nb::handle data) {
    UserCall place;
    Py_buffer view;
    if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> held(&view, PyBuffer_Release);
    auto bytes = static_cast<size_t>(view.len);
    nb::gil_scoped_release unlocked;
    file_->write(view.buf, bytes);
    return bytes;
  }
  void commit() {
    UserCall place;
    file_->commit();
  }
  void close() { file_.reset(); }

 private:
  std::unique_ptr<AtomicFile> file_;
};

}  // namespace

void bind_files(nb::module_& m) {
  m.def(
      "_save_safetensors",
      [](const std::filesystem::path& path, const nb::dict& tensors, const Metadata& metadata) {
        save_safetensors(path.string(), read_named(tensors), metadata);
      },
      users_call);
  m.def(
      "_safetensors_bytes",
      [](const nb::dict& tensors, const Metadata& metadata) {
        std::string made = safetensors_bytes(read_named(tensors), metadata);
        return nb::bytes(made.data(), made.size());
      },
      users_call);
  m.def(
      "_load_safetensors",
      [](const std::filesystem::path& path, std::optional<bool> verify) {
        return objects_of(load_safetensors(path.string(), verify));
      },
      users_call);
  m.def(
      "_parse_safetensors",
      [](const nb::bytes& bytes, const std::string& name, std::optional<bool> verify) {
        return objects_of(parse_safetensors(view_of(bytes), name, verify));
      },
      users_call);
  m.attr("_checksum_hint") = kChecksumHint;
  nb::class_<PythonFile>(m, "_AtomicFile")
      .def(nb::init<const std::filesystem::path&>())
      .def("write", &PythonFile::write)
      .def("flush", [](PythonFile&) {})
      .def("commit", &PythonFile::commit)
      .def("close", &PythonFile::close);
}

}  // namespace tn::python
