#pragma once
// Waiting for another thread of Python's.
#include <chrono>
#include <mutex>

#include "core.h"

namespace tn::python {

/// Waits without Python's lock, which whoever traces needs, and lets the user interrupt.
template <class Mutex>
void lock_without_python(std::unique_lock<Mutex>& lock) {
  if (lock.try_lock()) return;
  while (!lock) {
    {
      nb::gil_scoped_release unlocked;
      (void)lock.try_lock_for(std::chrono::milliseconds(100));
    }
    if (!lock && PyErr_CheckSignals()) throw nb::python_error();
  }
}

}  // namespace tn::python
