#include "storage/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/function_ref.h"

namespace tn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartEnd = ".tnx-part";
constexpr size_t kRandomDigits = 16;
constexpr size_t kMostOfName = 200;  // of 255, the longest that file systems take
constexpr int kMostLinks = 40;       // as the system itself

std::string part_begin(const std::string& target) {
  return format(".{}.", target.substr(0, kMostOfName));
}

bool is_part_of(std::string_view name, std::string_view begin) {
  return name.size() == begin.size() + kRandomDigits + kPartEnd.size() && name.starts_with(begin) &&
         name.ends_with(kPartEnd);
}

/// Where links lead, also when nothing is there yet.
fs::path follow_links(const std::string& path) {
  fs::path at = path;
  for (int k = 0; k < kMostLinks; ++k) {
    std::error_code error;
    fs::path next = fs::read_symlink(at, error);
    if (error) return at;
    at = at.parent_path() / next;  // an absolute one replaces the folder
  }
  fail("save: {} is a circular symbolic link", path);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, uint64_t bytes) : path_(path) {
  fs::path target = follow_links(path);
  target_ = target.filename();
  std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  folder_ = FileHandle(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) fail("save: cannot write {}: folder {}: {}", path, folder, std::strerror(errno));
  struct stat old;
  bool replaces = fstatat(folder_.fd(), target_.c_str(), &old, 0) == 0;
  if (target_.empty() || (replaces && S_ISDIR(old.st_mode)))
    fail(Hint{"give the name of a file in it"}, "save: {} is a directory", path);
  if (replaces && !S_ISREG(old.st_mode)) fail("save: {} is not a regular file", path);
  if (replaces && faccessat(folder_.fd(), target_.c_str(), W_OK, AT_EACCESS) != 0)
    fail_because(errno);
  if (!may_write(bytes)) fail_because(EFBIG);
  remove_old_parts(folder);
  open_part(folder, replaces ? old.st_mode & 0777 : 0666);
  if (replaces) fchmod(file_.fd(), old.st_mode & 0777);  // what the umask took
}

AtomicFile::~AtomicFile() {
  if (!part_.empty()) unlinkat(folder_.fd(), part_.c_str(), 0);
}

void AtomicFile::fail_because(int error) const {
  fail("save: cannot write {}: {}", path_, std::strerror(error));
}

/// The lock says that the writer lives.
void AtomicFile::open_part(const std::string& folder, mode_t mode) {
  std::random_device random;
  do {
    part_ = format("{}{:08x}{:08x}{}", part_begin(target_), random(), random(), kPartEnd);
    file_ = FileHandle(
        openat(folder_.fd(), part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file_ && errno != EEXIST) {
      part_.clear();
      fail("save: cannot write {}: folder {}: {}", path_, folder, std::strerror(errno));
    }
  } while (!file_ || !take_part());
}

/// False when another writer took it for one that was left behind, before it was locked.
bool AtomicFile::take_part() {
  struct stat s;
  if (flock(file_.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return fstat(file_.fd(), &s) == 0 && s.st_nlink > 0;
}

void AtomicFile::remove_old_parts(const std::string& folder) const {
  std::string begin = part_begin(target_);
  for_each_name_in(folder.c_str(), [&](std::string_view name) {
    if (!is_part_of(name, begin)) return;
    FileHandle part(
        openat(folder_.fd(), name.data(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (part && flock(part.fd(), LOCK_EX | LOCK_NB) == 0) unlinkat(folder_.fd(), name.data(), 0);
  });
}

/// `write_some` returns how many bytes the system took.
static int write_all(const void* data, size_t bytes,
                     FunctionRef<ssize_t(const char*, size_t)> write_some) {
  constexpr size_t kMost = size_t{1} << 30;  // the system takes 2 GiB at once
  for (auto* from = static_cast<const char*>(data); bytes > 0;) {
    ssize_t written = write_some(from, std::min(bytes, kMost));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    from += written;
    bytes -= static_cast<size_t>(written);
  }
  return 0;
}

void AtomicFile::write(const void* data, size_t bytes) {
  auto append = [&](const char* from, size_t count) { return ::write(file_.fd(), from, count); };
  if (int error = write_all(data, bytes, append)) fail_because(error);
}

void AtomicFile::write_at(uint64_t place, const void* data, size_t bytes) {
  auto replace = [&](const char* from, size_t count) {
    auto begin = static_cast<off_t>(place) + (from - static_cast<const char*>(data));
    return pwrite(file_.fd(), from, count, begin);
  };
  if (int error = write_all(data, bytes, replace)) fail_because(error);
}

void AtomicFile::commit() {
  if (fsync(file_.fd()) != 0) fail_because(errno);
  if (renameat(folder_.fd(), part_.c_str(), folder_.fd(), target_.c_str()) != 0)
    fail_because(errno);
  part_.clear();
  if (fsync(folder_.fd()) != 0 && errno != EINVAL) fail_because(errno);  // EINVAL: it cannot be
}

}  // namespace tn
