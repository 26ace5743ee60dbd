#include "workers/mpi_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/error.h"

namespace tn::workers {
namespace {

using Handle = MpiLibrary::Handle;

template <class F>
void find(void* library, const MpiLibrary& made, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function) fail("workers: {} has no function {}", made.name, name);
}

void find_functions(void* library, MpiLibrary& m) {
  find(library, m, "MPI_Init_thread", m.init_thread);
  find(library, m, "MPI_Initialized", m.initialized);
  find(library, m, "MPI_Finalized", m.finalized);
  find(library, m, "MPI_Finalize", m.finalize);
  find(library, m, "MPI_Comm_rank", m.comm_rank);
  find(library, m, "MPI_Comm_size", m.comm_size);
  find(library, m, "MPI_Comm_dup", m.comm_dup);
  find(library, m, "MPI_Comm_set_errhandler", m.comm_set_errhandler);
  find(library, m, "MPI_Isend", m.isend);
  find(library, m, "MPI_Irecv", m.irecv);
  find(library, m, "MPI_Test", m.test);
  find(library, m, "MPI_Cancel", m.cancel);
  find(library, m, "MPI_Error_string", m.error_string);
}

/// Open MPI's handles are addresses of its objects; the others' are numbers.
void find_constants(void* library, const std::string& file, MpiLibrary& m) {
  auto address = [&](const char* name) { return reinterpret_cast<Handle>(dlsym(library, name)); };
  if (file.find("libmpi_abi") != file.npos) {
    m.name = format("MPI 5 ({})", file);
    m.world = 0x101, m.byte = 0x247, m.errors_return = 0x143, m.any_source = -1;
    m.serialized = 2048;
  } else if (Handle world = address("ompi_mpi_comm_world")) {
    m.name = format("Open MPI ({})", file);
    m.world = world, m.byte = address("ompi_mpi_byte");
    m.errors_return = address("ompi_mpi_errors_return"), m.any_source = -1, m.serialized = 2;
  } else {
    m.name = format("MPICH ({})", file);
    m.world = 0x44000000, m.byte = 0x4c00010d, m.errors_return = 0x54000001;
    m.any_source = -2, m.serialized = 2;
  }
}

}  // namespace

std::unique_ptr<MpiLibrary> MpiLibrary::load(const std::vector<std::string>& files) {
  const char* given = std::getenv("TENON_MPI_LIBRARY");
  bool is_given = given && *given;
  std::string tried;
  for (const std::string& file : is_given ? std::vector<std::string>{given} : files) {
    // Its plugins look for its symbols among the global ones.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    tried += tried.empty() ? file : ", " + file;
    if (!library) continue;
    auto made = std::make_unique<MpiLibrary>();
    find_constants(library, file, *made);
    find_functions(library, *made);
    return made;
  }
  fail(Hint{"apt install openmpi-bin, or mpich; TENON_MPI_LIBRARY names another library"},
       "workers: the program was started by MPI, but its library is not installed: {}", tried);
}

std::string MpiLibrary::text_of(int code) const {
  char text[8192] = {};
  int length = 0;
  error_string(code, text, &length);
  return text;
}

}  // namespace tn::workers
