#pragma once
// A file descriptor that is closed by its owner, and the names in a folder.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace tn {

class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileHandle() {
    if (fd_ >= 0) close(fd_);
  }

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

/// Calls `f` with the name of everything in a folder; with nothing for one that cannot be read. The
/// standard library's iterator ends the process where there is no memory for a name.
template <class F>
void for_each_name_in(const char* folder, F&& f) {
  struct Close {
    void operator()(DIR* opened) const { closedir(opened); }
  };
  std::unique_ptr<DIR, Close> opened(opendir(folder));
  while (const dirent* entry = opened ? readdir(opened.get()) : nullptr)
    f(std::string_view(entry->d_name));
}

/// Writing past the limit of the process would be a signal that ends it, not an error.
inline bool may_write(uint64_t bytes) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

}  // namespace tn
