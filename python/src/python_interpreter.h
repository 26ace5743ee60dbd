#pragma once
// Python's lock for C++ code that runs without it, while the interpreter may be ending.
#include "core.h"
#include "eval/eval.h"

namespace tn::python {

/// Whether this thread may take Python's lock and get it. When the interpreter ends, the main
/// thread may; the others would block permanently, with the locks they hold.
bool may_enter_python();

/// Python's lock, on any thread, from construction to destruction; not held where the interpreter
/// ends. For what can be left out then.
class PythonLock {
 public:
  PythonLock() {
    if (may_enter_python()) lock_.emplace();
  }
  explicit operator bool() const { return lock_.has_value(); }

 private:
  std::optional<nb::gil_scoped_acquire> lock_;
};

}  // namespace tn::python
