#pragma once
// Workers on several machines, which mpirun starts.
#include "cli/launch_workers.h"

namespace tn::workers {

/// "a:2,b:2": machines and their numbers of workers, 1 where there is none.
std::vector<std::pair<std::string, int>> parse_hosts(const std::string& text);
/// A file with one machine a line: "a", "a:2" or "a slots=2"; "#" begins a comment.
std::vector<std::pair<std::string, int>> read_hosts(const std::string& path);

/// Runs mpirun, and returns its exit code.
int launch_hosts(const LaunchRequest& request, void (*report)(const std::string& line));

}  // namespace tn::workers
