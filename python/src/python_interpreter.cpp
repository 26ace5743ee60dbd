// What the library needs of the interpreter: its lock, its signals, and its end.
#include "python_interpreter.h"

#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <ctime>

#include "base/at_fork.h"
#include "base/interrupt.h"
#include "eval/background.h"
#include "eval/eval.h"

#if PY_VERSION_HEX < 0x030D0000
#define Py_IsFinalizing _Py_IsFinalizing
#endif

namespace tn::python {
namespace {

unsigned long main_thread;  // the one that signals interrupt
std::atomic<bool> ending = false;

bool is_main_thread() { return PyThread_get_thread_ident() == main_thread; }

/// The main thread looks for signals after so much time without Python's lock, of which another
/// thread may make it wait for milliseconds. Python itself looks when a call is over.
class Looks {
 public:
  void postpone() { next_ = 0; }  // asks no clock: every call does this
  bool is_due() {
    int64_t time = now();
    bool due = next_ && time >= next_;
    if (due || !next_) next_ = time + kEvery;
    return due;
  }

 private:
  static constexpr int64_t kEvery = 50'000'000;  // ns
  static int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  }
  int64_t next_ = 0;  // 0: so much after the next question
} looks;              // the main thread's

void* leave_python() {
  if (!Py_IsInitialized() || !PyGILState_Check()) return nullptr;
  if (is_main_thread()) looks.postpone();
  return PyEval_SaveThread();
}

void enter_python(void* state) {
  if (!state) return;
  PyEval_RestoreThread(static_cast<PyThreadState*>(state));
  release_dropped();
}

bool is_due() { return is_main_thread() && looks.is_due(); }

/// Ctrl-C only: of other signals there is no telling without running their handlers.
bool is_stopped() {
  nb::gil_scoped_acquire lock;
  if (!PyOS_InterruptOccurred()) return false;
  PyErr_SetInterrupt();  // asking has cleared it
  return true;
}

void handle_signals() {
  nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals()) throw nb::python_error();
}

}  // namespace

bool may_enter_python() {
  return Py_IsInitialized() && (is_main_thread() || !(ending || Py_IsFinalizing()));
}

void install_host_lock() {
  host_lock = {leave_python, enter_python};
  main_thread = PyThread_get_thread_ident();
  nb::dict loaded = nb::borrow<nb::dict>(PyImport_GetModuleDict());
  if (loaded.contains("threading"))  // else there is no other thread
    main_thread = nb::cast<unsigned long>(loaded["threading"].attr("main_thread")().attr("ident"));
  in_child_after_fork([] { main_thread = PyThread_get_thread_ident(); });
  host_signals = {is_due, is_stopped, handle_signals};
  nb::object at_exit = nb::module_::import_("atexit").attr("register");
  at_exit(nb::cpp_function([] {
    ending = true;
    HostUnlocked unlocked;
    stop_background();
  }));
}

}  // namespace tn::python

extern "C" {

using Personality = _Unwind_Reason_Code(int, _Unwind_Action, _Unwind_Exception_Class,
                                        _Unwind_Exception*, _Unwind_Context*);
Personality __real___gxx_personality_v0;
Personality __wrap___gxx_personality_v0 __attribute__((visibility("hidden")));

/// How exceptions pass the functions of this module. A daemon thread that wants Python's lock when
/// the interpreter ends is ended by pthread_exit, wherever it is: that is an exception that
/// must not be caught and that calls destructors which need the lock. The thread stays where it is
/// instead, as all do from Python 3.14 on; the process ends without it.
_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context) {
  while ((actions & _UA_FORCE_UNWIND) && (!Py_IsInitialized() || Py_IsFinalizing())) pause();
  return __real___gxx_personality_v0(version, actions, kind, exception, context);
}
}
