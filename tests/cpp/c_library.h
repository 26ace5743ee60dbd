#pragma once
// C text compiled into a shared object and loaded, by the compilers that are installed.
#include <string>
#include <vector>

#include "loop/kernel.h"

namespace tn {

/// What kernels look like from outside: arguments are the bits of their element types.
using KernelEntry = void(void* const* buffers, const uint64_t* arguments);
/// A file with the functions entry_0, entry_1, ... for the kernels in order.
std::string kernels_c(const std::vector<loop::Kernel>& kernels);

/// Commands of the installed ones among gcc and clang.
std::vector<std::string> c_compilers();

class CLibrary {
 public:
  /// Compiles with the documented flags and every warning an error; `flags` come last. What the
  /// compiler says goes into the exception.
  CLibrary(const std::string& compiler, const std::string& source, const std::string& flags = "");
  ~CLibrary();
  CLibrary(const CLibrary&) = delete;
  CLibrary& operator=(const CLibrary&) = delete;

  template <class F>
  F* find(const std::string& name) const {
    return reinterpret_cast<F*>(symbol(name));
  }

 private:
  void* symbol(const std::string& name) const;
  void* handle_ = nullptr;
};

}  // namespace tn
