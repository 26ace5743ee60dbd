#pragma once
// A file that is being read, or bytes in memory in its place.
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "runtime/buffer.h"
#include "storage/file_handle.h"

namespace tn {

/// Errors name the file.
class InputFile {
 public:
  static InputFile open(const std::string& path);
  /// Over a copy of `bytes`; `name` for messages.
  static InputFile over(std::string_view bytes, std::string name);

  const std::string& name() const { return name_; }
  uint64_t bytes() const { return bytes_; }

  /// Copies, so that a file truncated by another process is an error; access to a mapped page that
  /// is gone would end the process.
  void copy(uint64_t place, void* to, size_t length) const;
  std::string copy(uint64_t place, uint64_t length) const;

  /// Called before `memory`.
  void map();
  /// [place, place + bytes), which must be inside, as read-only memory that keeps the file mapped.
  BufferRef memory(uint64_t place, uint64_t bytes) const;

  template <class... A>
  [[noreturn]] void damaged(ErrorText<A...> text, A&&... args) const {
    damaged_at(text.site, format(text.text, std::forward<A>(args)...));
  }
  [[noreturn]] void damaged_at(ErrorSite site, std::string_view what) const;

 private:
  InputFile() = default;

  std::string name_;
  uint64_t bytes_ = 0;
  FileHandle file_;               // absent: the bytes are in `memory_`
  std::shared_ptr<void> memory_;  // the mapped file, or what `over` was given
};

}  // namespace tn
