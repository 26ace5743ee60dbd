#include "storage/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

namespace tn {

InputFile InputFile::open(const std::string& path) {
  InputFile opened;
  opened.name_ = path;
  // Without O_NONBLOCK a FIFO would be waited for.
  opened.file_ = FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat s;
  if (!opened.file_ || fstat(opened.file_.fd(), &s) != 0)
    fail("load: cannot open {}: {}", path, std::strerror(errno));
  if (S_ISDIR(s.st_mode)) fail("load: {} is a directory", path);
  if (!S_ISREG(s.st_mode)) fail("load: {} is not a regular file", path);
  opened.bytes_ = static_cast<uint64_t>(s.st_size);
  if (opened.bytes_ == 0) fail("load: {} is empty", path);
  return opened;
}

InputFile InputFile::over(std::string_view bytes, std::string name) {
  InputFile opened;
  opened.name_ = std::move(name);
  opened.bytes_ = bytes.size();
  if (bytes.empty()) fail("load: {} is empty", opened.name_);
  BufferRef copied = allocate(bytes.size());  // aligned, as a mapped file is
  std::memcpy(copied.data(), bytes.data(), bytes.size());
  void* data = copied.data();
  opened.memory_ = {data, [copied](void*) {}};
  return opened;
}

void InputFile::copy(uint64_t place, void* to, size_t length) const {
  if (!file_) {
    std::memcpy(to, static_cast<char*>(memory_.get()) + place, length);
    return;
  }
  for (size_t done = 0; done < length;) {
    ssize_t got = pread(file_.fd(), static_cast<char*>(to) + done, length - done,
                        static_cast<off_t>(place + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("load: cannot read {}: {}", name_, std::strerror(errno));
    if (got == 0) damaged("it was cut off while it was read");
    done += static_cast<size_t>(got);
  }
}

std::string InputFile::copy(uint64_t place, uint64_t length) const {
  std::string copied(length, '\0');
  copy(place, copied.data(), length);
  return copied;
}

void InputFile::map() {
  if (memory_) return;
  size_t bytes = bytes_;
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_.fd(), 0);
  if (data == MAP_FAILED) fail("load: cannot map {}: {}", name_, std::strerror(errno));
  memory_ = {data, [bytes](void* mapped) { munmap(mapped, bytes); }};
}

BufferRef InputFile::memory(uint64_t place, uint64_t bytes) const {
  auto* keep = new std::shared_ptr<void>(memory_);
  auto release = [](void* kept) { delete static_cast<std::shared_ptr<void>*>(kept); };
  return adopt(static_cast<char*>(memory_.get()) + place, bytes, keep, release, true);
}

void InputFile::damaged_at(ErrorSite site, std::string_view what) const {
  throw_user(site, Fault::value, format("load: {} is damaged: {}", name_, what), {});
}

}  // namespace tn
