#pragma once
// Who started this process as one of several workers: the variables that launchers set.
#include <string>
#include <vector>

namespace tn::workers {

struct LaunchEnvironment {
  enum class By { nobody, tenon, mpi };
  By by = By::nobody;
  int rank = 0, size = 1;
  int memory = -1;                     // by `tenon launch`: the file of the shared memory
  std::string variable;                // by MPI: the one that says the size
  std::vector<std::string> libraries;  // by MPI: what may be loaded, the most likely one first
};

/// In this order: TENON_RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, RANK. Fails where a
/// launcher has started several workers and Tenon knows no way between them. The process that asks
/// first is the worker; those that it starts are not, which TENON_WORKER_PROCESS tells them.
LaunchEnvironment find_launch();

}  // namespace tn::workers
