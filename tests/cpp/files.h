#pragma once
// Folders, files and processes of tests.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tn {

namespace fs = std::filesystem;

/// A directory that lives as long as the test.
struct Folder {
  Folder() {
    std::string name = fs::temp_directory_path() / "tenon-XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
}

/// Runs `work` in a child process.
template <class Work>
pid_t spawn(const Work& work) {
  pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  return child;
}

inline int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace tn
