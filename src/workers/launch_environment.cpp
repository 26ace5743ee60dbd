#include "workers/launch_environment.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace tn::workers {
namespace {

/// -1: it is not set.
int number_variable(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return -1;
  int value = -1;
  const char* end = text + std::strlen(text);
  auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stopped != end || value < 0)
    fail("workers: {} is not a number: {}", variable, text);
  return value;
}

const std::vector<std::string> kOpenMpi = {"libmpi.so.40", "libmpi.so"};
const std::vector<std::string> kMpich = {"libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1",
                                         "libmpi_abi.so"};

struct MpiLauncher {
  const char *rank, *size, *local;  // `local`: set if this is really a launcher; null: no question
  bool is_open_mpi, is_mpich;
};
// Shells in an allocation of Slurm have SLURM_NTASKS, so that says nothing; only steps have
// SLURM_STEP_NUM_TASKS.
constexpr MpiLauncher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr, true, false},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", false, true},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, true, true},
};

LaunchEnvironment by_tenon(int rank, int size) {
  int file = number_variable("TENON_WORLD_MEMORY");
  if (rank < 0 || size < 1 || rank >= size || file < 0)
    fail(Hint{"start the program with `tenon launch -n 4 program.py`"},
         "workers: the environment is incomplete: TENON_RANK={}, TENON_SIZE={}, "
         "TENON_WORLD_MEMORY={}",
         rank, size, file);
  return {LaunchEnvironment::By::tenon, rank, size, file, {}, {}};
}

LaunchEnvironment named_launch() {
  int rank = number_variable("TENON_RANK"), size = number_variable("TENON_SIZE");
  if (rank >= 0 || size >= 0) return by_tenon(rank, size);
  for (const MpiLauncher& launcher : kLaunchers) {
    rank = number_variable(launcher.rank), size = number_variable(launcher.size);
    if (rank < 0 || size < 0 || (launcher.local && number_variable(launcher.local) < 0)) continue;
    if (size == 1) return {};
    std::vector<std::string> libraries;
    if (launcher.is_open_mpi) libraries = kOpenMpi;
    if (launcher.is_mpich) libraries.insert(libraries.end(), kMpich.begin(), kMpich.end());
    return {LaunchEnvironment::By::mpi, rank, size, -1, launcher.size, std::move(libraries)};
  }
  rank = number_variable("RANK"), size = number_variable("WORLD_SIZE");
  if (rank >= 0 && size > 1)
    fail(Hint{"start the program with `tenon launch -n 4 program.py`, or with mpirun"},
         "workers: RANK={} and WORLD_SIZE={} name several workers, but this launcher gives them no "
         "way to exchange tensors",
         rank, size);
  return {};
}

}  // namespace

/// What a worker starts inherits its variables, and would make its calls a second time.
LaunchEnvironment find_launch() {
  LaunchEnvironment launch = named_launch();
  if (launch.by == LaunchEnvironment::By::nobody) return launch;
  int owner = number_variable("TENON_WORKER_PROCESS"), self = getpid();
  if (owner >= 0 && owner != self) return {};
  if (owner < 0) setenv("TENON_WORKER_PROCESS", format("{}", self).c_str(), 1);
  return launch;
}

}  // namespace tn::workers
