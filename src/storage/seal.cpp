#include "storage/seal.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "storage/file_handle.h"

namespace tn {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKeyBytes = 32;

/// "" where there is no place for it.
std::string key_path() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data && *data == '/') return format("{}/tenon/key", data);
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? format("{}/.local/share/tenon/key", home) : "";
}

/// The key, if only this user could have read or written it.
std::string read_key(const std::string& path) {
  FileHandle file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat s;
  if (!file || fstat(file.fd(), &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() ||
      (s.st_mode & 077) != 0)
    return "";
  std::string key(kKeyBytes + 1, '\0');
  key.resize(static_cast<size_t>(std::max<ssize_t>(0, read(file.fd(), key.data(), key.size()))));
  return key.size() == kKeyBytes ? key : "";
}

/// Whole or not at all; another process may be first.
void make_key(const std::string& path) {
  char key[kKeyBytes], name[8];
  if (getrandom(key, sizeof key, 0) != sizeof key || getrandom(name, sizeof name, 0) != sizeof name)
    return;
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  uint64_t number;
  std::memcpy(&number, name, sizeof number);
  std::string part = format("{}.{:016x}", path, number);
  FileHandle file(open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return;
  if (write(file.fd(), key, sizeof key) == sizeof key && fsync(file.fd()) == 0)
    (void)!link(part.c_str(), path.c_str());
  unlink(part.c_str());
}

}  // namespace

std::string seal_of(std::string_view bytes) {
  std::string path = key_path();
  struct stat s;
  if (!path.empty() && lstat(path.c_str(), &s) != 0) make_key(path);
  std::string key = read_key(path);
  return key.empty() ? "" : hmac_sha256(key, bytes);
}

bool seal_fits(std::string_view bytes, std::string_view seal) {
  std::string key = read_key(key_path());
  std::string right = hmac_sha256(key, bytes);
  if (key.empty() || right.size() != seal.size()) return false;
  unsigned char differs = 0;  // looks at all of it, so that time tells nothing
  for (size_t i = 0; i < right.size(); ++i)
    differs |= static_cast<unsigned char>(right[i] ^ seal[i]);
  return differs == 0;
}

}  // namespace tn
