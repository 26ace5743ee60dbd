#include "cli/launch_hosts.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"

extern char** environ;

namespace tn::workers {
namespace {

std::pair<std::string, int> parse_host(const std::string& text, size_t split) {
  std::string count = split == text.npos ? "1" : text.substr(split + 1);
  int workers = 0;
  auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), workers);
  std::string name = text.substr(0, split);
  bool is_name = !name.empty() && name[0] != '-' && name.find_first_of(" \t=") == name.npos;
  if (error != std::errc() || end != count.data() + count.size() || workers < 1 || !is_name)
    fail(Hint{"write --hosts a:2,b:2"}, "launch: '{}' is not a machine with a number of workers",
         text);
  return {name, workers};
}

enum class Mpi { open_mpi, hydra };

/// Whose mpirun it is, from what it says of itself.
Mpi kind_of(const std::string& mpirun) {
  std::FILE* pipe = popen(format("'{}' --version 2>&1", mpirun).c_str(), "r");
  std::string text;
  char line[512];
  while (pipe && std::fgets(line, sizeof line, pipe)) text += line;
  if (pipe) pclose(pipe);
  if (text.find("Open MPI") != text.npos || text.find("OpenRTE") != text.npos) return Mpi::open_mpi;
  if (text.find("HYDRA") != text.npos || text.find("Intel") != text.npos) return Mpi::hydra;
  fail(Hint{"apt install openmpi-bin, or mpich; TENON_MPIRUN names another program"},
       "launch: several machines need MPI, but there is no mpirun: {}", mpirun);
}

std::vector<std::string> command_of(const LaunchRequest& request, int size) {
  const char* given = std::getenv("TENON_MPIRUN");
  std::string mpirun = given && *given ? given : "mpirun";
  Mpi kind = kind_of(mpirun);
  std::string hosts;
  for (const auto& [name, workers] : request.hosts)
    hosts += format("{}{}:{}", hosts.empty() ? "" : ",", name, workers);
  std::vector<std::string> words = {mpirun, "-n", format("{}", size)};
  words.push_back(kind == Mpi::open_mpi ? "--host" : "-hosts");
  words.push_back(hosts);
  if (kind == Mpi::open_mpi) {
    words.insert(words.end(), {"--bind-to", "none"});  // workers have threads
    // It passes on what it is told to; Hydra passes on all.
    for (char** entry = environ; *entry; ++entry) {
      std::string_view name = std::string_view(*entry).substr(0, std::strcspn(*entry, "="));
      bool is_own = name.starts_with("TENON_") || name.starts_with("PYTHON") || name == "PATH" ||
                    name == "LD_LIBRARY_PATH";
      if (name == "TENON_WORKER_PROCESS") continue;  // of the launcher's parent
      if (is_own) words.insert(words.end(), {"-x", std::string(name)});
    }
  }
  words.insert(words.end(), request.command.begin(), request.command.end());
  return words;
}

int run(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  pid_t child = fork();
  if (child < 0) fail("launch: cannot start {}: {}", words[0], std::strerror(errno));
  if (child == 0) {
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::vector<std::pair<std::string, int>> parse_hosts(const std::string& text) {
  std::vector<std::pair<std::string, int>> hosts;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    std::string word = text.substr(at, end - at);
    hosts.push_back(parse_host(word, word.find(':')));
    at = end + 1;
  }
  return hosts;
}

std::vector<std::pair<std::string, int>> read_hosts(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail("launch: cannot read {}: {}", path, std::strerror(errno));
  std::vector<std::pair<std::string, int>> hosts;
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (line.empty()) continue;
    if (size_t slots = line.find(" slots="); slots != line.npos)
      line = format("{}:{}", line.substr(0, slots), line.substr(slots + 7));
    hosts.push_back(parse_host(line, line.find(':')));
  }
  if (hosts.empty()) fail("launch: {} names no machines", path);
  return hosts;
}

int launch_hosts(const LaunchRequest& request, void (*report)(const std::string&)) {
  int size = 0;
  for (const auto& [name, workers] : request.hosts) size += workers;
  if (request.threads) setenv("TENON_NUM_THREADS", format("{}", request.threads).c_str(), 1);
  for (int restart = 0;; ++restart) {
    setenv("TENON_RESTART", format("{}", restart).c_str(), 1);
    int code = run(command_of(request, size));
    bool may_restart = code != 0 && code != 127 && code != 128 + SIGINT && code != 128 + SIGTERM;
    if (restart == request.restarts || !may_restart) return code;
    report(format("restart {} of {}, with {} workers", restart + 1, request.restarts, size));
  }
}

}  // namespace tn::workers
