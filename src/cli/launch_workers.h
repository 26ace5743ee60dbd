#pragma once
// Starts the workers of a program on this machine, and ends them together.
#include <string>
#include <utility>
#include <vector>

namespace tn::workers {

struct LaunchRequest {
  int size = 1;
  std::vector<std::string> command;
  int threads = 0;   // of each worker; 0: the cores, shared evenly
  int least = 1;     // workers that are enough after a failure
  int restarts = 0;  // after failures, of all workers that are left
  /// Machines and their numbers of workers, which mpirun starts; none: this machine.
  std::vector<std::pair<std::string, int>> hosts = {};
};

/// Returns when every worker has ended: 0, or the exit code of the first one that failed. `report`
/// is called with a line about it, and about each restart.
int launch(const LaunchRequest& request, void (*report)(const std::string& line));

}  // namespace tn::workers
