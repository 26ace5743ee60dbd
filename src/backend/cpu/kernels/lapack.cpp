#include "backend/cpu/kernels/lapack.h"

#include <dlfcn.h>

#include "base/error.h"

namespace tn::lapack {
namespace {

/// OpenBLAS first. It runs one thread per call: the pool shares out the matrices of a batch, and
/// bits do not depend on the number of CPUs.
void* open_library() {
  for (const char* name : {"libopenblas.so.0", "liblapack.so.3"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    if (void* set = dlsym(library, "openblas_set_num_threads"))
      reinterpret_cast<void (*)(int)>(set)(1);
    return library;
  }
  unsupported({"install OpenBLAS: apt-get install libopenblas0-pthread"},
              "linalg: no LAPACK library (libopenblas.so.0 or liblapack.so.3) on this machine");
}

}  // namespace

void* find(const char* name) {
  static void* const library = open_library();
  void* function = dlsym(library, name);
  if (!function)
    unsupported({"install OpenBLAS: apt-get install libopenblas0-pthread"},
                "linalg: the LAPACK library of this machine has no function {}", name);
  return function;
}

}  // namespace tn::lapack
