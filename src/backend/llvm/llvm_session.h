#pragma once
// Calling LLVM so that running out of memory in it is an error.
//
// LLVM is compiled without exceptions: one that passes through its frames runs no destructors
// there. What it was changing may be inconsistent afterwards, so objects of LLVM are leaked then,
// never destroyed. What LLVM keeps for the whole process it makes during the first session, under
// its own locks; when memory runs out in that one, LLVM is not entered again.
#include <exception>
#include <memory>

#include "base/function_ref.h"

namespace tn::codegen {

/// Deletes an object of LLVM, unless an exception is passing by.
struct LeakOnError {
  int outer = std::uncaught_exceptions();
  template <class T>
  void operator()(T* object) const {
    if (std::uncaught_exceptions() <= outer) delete object;
  }
};
template <class T>
using LlvmPtr = std::unique_ptr<T, LeakOnError>;

/// Whether LLVM can be entered: false for the life of the process when memory ran out while it
/// started.
bool llvm_is_usable();

/// Called when code was generated: what LLVM keeps for the whole process is there.
void llvm_has_started();

/// Calls `work`, which calls LLVM. Fails with Fault::memory before it enters LLVM where little
/// memory is left, and where memory runs out inside.
void in_llvm(FunctionRef<void()> work);

}  // namespace tn::codegen
