#pragma once
// The functions of MPI that Tenon calls, from a library that is loaded at run time. MPI has three
// binary interfaces, which differ in handles and constants: Open MPI's, MPICH's and that of MPI 5.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tn::workers {

struct MpiLibrary {
  /// A pointer, or an integer in its lower half: both are passed in one register.
  using Handle = intptr_t;
  /// Large enough for a status of each of them.
  struct alignas(8) Status {
    char bytes[64];
  };

  std::string name;  // "Open MPI (libmpi.so.40)"
  Handle world, byte, errors_return;
  int any_source, serialized;

  int (*init_thread)(int* argc, char*** argv, int required, int* provided);
  int (*initialized)(int* flag);
  int (*finalized)(int* flag);
  int (*finalize)();
  int (*comm_rank)(Handle comm, int* rank);
  int (*comm_size)(Handle comm, int* size);
  int (*comm_dup)(Handle comm, Handle* made);
  int (*comm_set_errhandler)(Handle comm, Handle errhandler);
  int (*isend)(const void* data, int count, Handle type, int to, int tag, Handle comm,
               Handle* request);
  int (*irecv)(void* data, int count, Handle type, int from, int tag, Handle comm, Handle* request);
  int (*test)(Handle* request, int* flag, Status* status);
  int (*cancel)(Handle* request);
  int (*error_string)(int code, char* text, int* length);

  /// Loads the first of `files` that is there, or what TENON_MPI_LIBRARY names. Fails with one
  /// sentence that says what to install.
  static std::unique_ptr<MpiLibrary> load(const std::vector<std::string>& files);

  std::string text_of(int code) const;
};

}  // namespace tn::workers
