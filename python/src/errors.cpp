// Errors of the library as Python exceptions: tenon.Error mixed with the builtin that fits.
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <new>
#include <typeinfo>

#include "base/error.h"
#include "core.h"
#include "ir/named_calls.h"
#include "ir/opdef.h"
#include "tenon/distributed.h"
#include "tenon/error.h"

namespace tn::python {

PyObject* out_of_range;

namespace {

PyObject *error, *invalid_value, *invalid_type, *invalid_index, *out_of_memory, *unsupported,
    *internal_error, *worker_failed;

PyObject* make_error(nb::module_& m, const char* name, const char* doc, PyObject* builtin) {
  nb::object bases = error ? nb::object(nb::make_tuple(nb::borrow(error), nb::borrow(builtin)))
                           : nb::borrow(builtin);
  std::string full = std::string("tenon.") + name;
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
  if (!made) throw nb::python_error();
  m.attr(name) = nb::borrow(made);
  return made;
}

PyObject* python_type(Fault fault) {
  switch (fault) {
    case Fault::value:
      return invalid_value;
    case Fault::type:
      return invalid_type;
    case Fault::index:
      return invalid_index;
    case Fault::memory:
      return out_of_memory;
  }
  return invalid_value;
}

/// The text of an error by the name of the function that was called, in place of that of an op
/// which the function calls.
std::string as_called(const std::exception& e) noexcept {
  std::string text = e.what();
  try {
    size_t colon = text.find(':');
    if (dynamic_cast<const RecordedError*>(&e) || colon == text.npos ||
        !find_op(text.substr(0, colon)))
      return text;
    if (std::string called = called_function(); !called.empty()) text.replace(0, colon, called);
  } catch (...) {  // why a name is not known does not matter
    PyErr_Clear();
  }
  return text;
}

/// Texts that quote a damaged file need not be UTF-8.
void set_error(PyObject* type, std::string_view text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (!decoded) return;  // and that is the error
  PyErr_SetObject(type, decoded);
  Py_DECREF(decoded);
}

/// The line of the package's own code that raises an error.
void log_python_site() {
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  if (!frame || !std::getenv("TENON_ERROR_SITES")) return;
  auto code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  std::string path = nb::cast<std::string>(code.attr("co_filename"));
  log_error_site(format("{}:{}", path, PyFrame_GetLineNumber(frame)));
}

}  // namespace

void bind_errors(nb::module_& m) {
  error = make_error(m, "Error", "Base of every error of the library.", PyExc_Exception);
  invalid_value = make_error(m, "InvalidValue", "Wrong shapes, sizes or values.", PyExc_ValueError);
  invalid_type = make_error(m, "InvalidType", "Wrong element types or arguments.", PyExc_TypeError);
  invalid_index = make_error(m, "InvalidIndex", "An index or axis out of range.", PyExc_IndexError);
  out_of_memory = make_error(m, "OutOfMemory", "More memory than there is.", PyExc_MemoryError);
  out_of_range = make_error(m, "OutOfRange", "A number that does not fit.", PyExc_OverflowError);
  unsupported = make_error(m, "Unsupported", "Valid, but not implemented; the text says what is.",
                           PyExc_NotImplementedError);
  internal_error = make_error(m, "InternalError", "A defect of the library.", PyExc_RuntimeError);
  worker_failed = make_error(
      m, "WorkerFailed", "Another worker of the program ended, hangs or errs.", PyExc_RuntimeError);
  m.def(
      "_fail",
      [](const std::string& fault, const std::string& text, const std::string& hint) {
        log_python_site();
        fail(fault == "type"    ? Fault::type
             : fault == "index" ? Fault::index
                                : Fault::value,
             Hint{hint}, "{}", text);
      },
      users_call, nb::arg("fault"), nb::arg("text"), nb::arg("hint") = "",
      "Raises an error of the library's own Python code, with the user's place.");
  nb::register_exception_translator(
      [](const std::exception_ptr& e, void*) {
        try {
          std::rethrow_exception(e);
        } catch (const tn::Error&) {
          raise_current();
        } catch (const std::bad_cast&) {
          raise_current();
        } catch (const std::bad_alloc&) {
          raise_current();
        }
      },
      nullptr);
}

void raise_current() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const UserError& e) {
    set_error(python_type(e.fault()), as_called(e));
  } catch (const Unsupported& e) {
    set_error(unsupported, as_called(e));
  } catch (const InternalError& e) {
    set_error(internal_error, e.what());
  } catch (const WorkerFailed& e) {
    set_error(worker_failed, e.what());
  } catch (const std::bad_alloc&) {
    set_error(out_of_memory, "out of memory");
  } catch (const std::bad_cast&) {  // nanobind's, of a part of an argument
    set_error(invalid_type, "an argument, or a part of one, is of the wrong type");
  } catch (const std::exception& e) {
    set_error(internal_error, e.what());
  } catch (...) {
    set_error(internal_error, "an exception of unknown type");
  }
}

void warn(const std::string& text, int frames) {
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), frames) < 0) throw nb::python_error();
}

void throw_python_at(ErrorSite site, PyObject* type, const std::string& text) {
  try {
    throw_user(site, Fault::value, text, {});
  } catch (const UserError& e) {  // it has the user's place by now
    set_error(type, e.what());
  }
  throw nb::python_error();
}

}  // namespace tn::python
