#pragma once
// Atomic replacement of a file: its name refers to the whole old or the whole new contents.
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "storage/file_handle.h"

namespace tn {

/// Written under another name in the same folder, made durable, renamed. Links are followed, the
/// permissions of a file that is replaced are kept. Errors say what cannot be done with `path`, and
/// leave everything as it was. What writers of the same file that were killed left is removed.
class AtomicFile {
 public:
  /// `bytes`: how many will be written.
  AtomicFile(const std::string& path, uint64_t bytes);
  /// Without `commit` nothing has happened.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  /// In the place of bytes that are written.
  void write_at(uint64_t place, const void* data, size_t bytes);
  void commit();

 private:
  void open_part(const std::string& folder, mode_t mode);
  bool take_part();
  void remove_old_parts(const std::string& folder) const;
  [[noreturn]] void fail_because(int error) const;

  std::string path_;    // as the caller wrote it
  std::string target_;  // its name in the folder, links followed
  std::string part_;    // the other name; "" when there is no such file
  FileHandle folder_, file_;
};

}  // namespace tn
