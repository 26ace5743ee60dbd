#include "storage/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <vector>

#include "base/error.h"
#include "storage/checksum.h"
#include "storage/file_handle.h"

namespace tn {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr char kMagic[8] = {'t', 'e', 'n', 'o', 'n', 'c', 'a', kFormat};
constexpr int64_t kMostEntry = int64_t{1} << 30;
constexpr int kFolders = 256;
constexpr time_t kHour = 3600;
constexpr std::string_view kTemporary = "tmp.";

/// The file: this, the key, the value.
struct Head {
  char magic[8];
  uint64_t key_bytes;
  uint64_t check[2];
};

/// `rest`: key and value.
Head head_of(std::string_view rest, size_t key_bytes) {
  Checksum check = checksum(rest, key_bytes);
  Head head{{}, key_bytes, {check.low, check.high}};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  return head;
}

FileHandle open_file(const std::string& path, int flags) {
  return FileHandle(open(path.c_str(), flags | O_CLOEXEC, 0600));
}

bool only_ours(const struct stat& s) {
  return s.st_uid == geteuid() && !(s.st_mode & (S_IWGRP | S_IWOTH));
}

/// Why entries of the folder are not to be trusted, or could not be written.
std::string folder_fault(const std::string& folder) {
  struct stat s;
  if (stat(folder.c_str(), &s) != 0) return format("{}: {}", folder, std::strerror(errno));
  if (!S_ISDIR(s.st_mode)) return format("{} is not a directory", folder);
  if (!only_ours(s)) return format("{} belongs to or is writable for other users", folder);
  return "";
}

/// The whole of a file of ours; nothing when there is none, empty when it is not to be trusted.
std::optional<std::string> read_ours(const std::string& path) {
  FileHandle file = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file) return std::nullopt;
  struct stat s;
  if (fstat(file.fd(), &s) != 0 || !S_ISREG(s.st_mode) || !only_ours(s) || s.st_size > kMostEntry)
    return "";
  std::string bytes(static_cast<size_t>(s.st_size), '\0');
  for (size_t at = 0; at < bytes.size();) {
    ssize_t got = read(file.fd(), bytes.data() + at, bytes.size() - at);
    if (got <= 0) return "";
    at += static_cast<size_t>(got);
  }
  if (time(nullptr) - s.st_mtime > kHour) futimens(file.fd(), nullptr);
  return bytes;
}

/// The value in the bytes of an entry, when they are what was written under `key`.
std::optional<std::string> value_in(std::string bytes, std::string_view key) {
  size_t before = sizeof(Head) + key.size();
  if (bytes.size() < before || bytes.compare(sizeof(Head), key.size(), key) != 0)
    return std::nullopt;
  Head right = head_of(std::string_view(bytes).substr(sizeof(Head)), key.size());
  if (std::memcmp(bytes.data(), &right, sizeof right) != 0) return std::nullopt;
  return bytes.substr(before);
}

bool is_entry_name(std::string_view name) {
  return name.size() == 30 && name.find_first_not_of("0123456789abcdef") == name.npos;
}

const char* variable(const char* name) {
  const char* text = std::getenv(name);
  return text && *text ? text : nullptr;
}

std::string directory_from_environment() {
  const char* wanted = variable("TENON_CACHE");
  if (wanted && std::string_view(wanted) == "0") return "";
  if (const char* own = variable("TENON_CACHE_DIR")) return own;
  const char* caches = variable("XDG_CACHE_HOME");
  if (caches && *caches == '/') return format("{}/tenon", caches);
  const char* home = variable("HOME");
  return home ? format("{}/.cache/tenon", home) : "";
}

int64_t bytes_from_environment() {
  const char* text = variable("TENON_CACHE_SIZE");
  return text ? parse_bytes("TENON_CACHE_SIZE", text) : DiskCache::kDefaultBytes;
}

struct Aged {
  timespec used;
  int64_t bytes;
  std::string path;
};

/// Adds the entries in `folder`; temporary files that no process can still be writing are removed.
void list_entries(const std::string& folder, std::vector<Aged>& entries) {
  time_t now = time(nullptr);
  for_each_name_in(folder.c_str(), [&](std::string_view name) {
    bool temporary = name.starts_with(kTemporary);
    std::string path = format("{}/{}", folder, name);
    struct stat s;
    if ((!temporary && !is_entry_name(name)) || lstat(path.c_str(), &s) != 0) return;
    if (!temporary)
      entries.push_back({s.st_mtim, int64_t{s.st_blocks} * 512, std::move(path)});
    else if (now - s.st_mtime > kHour)
      unlink(path.c_str());
  });
}

/// Those of a whole cache.
std::vector<Aged> all_entries(const std::string& folder) {
  std::vector<Aged> entries;
  for (int k = 0; k < kFolders; ++k) list_entries(format("{}/{:02x}", folder, k), entries);
  return entries;
}

int64_t bytes_of(const std::vector<Aged>& entries) {
  int64_t bytes = 0;
  for (const Aged& entry : entries) bytes += entry.bytes;
  return bytes;
}

}  // namespace

int64_t parse_bytes(std::string_view what, const std::string& text) {
  char* end = nullptr;
  double size = std::strtod(text.c_str(), &end);
  std::string_view unit = end;
  if (unit == "K") size *= 1 << 10;
  if (unit == "M") size *= 1 << 20;
  if (unit == "G") size *= 1 << 30;
  bool known = unit.empty() || unit == "K" || unit == "M" || unit == "G";
  if (end == text.c_str() || !known || !(size >= 0) || size > 1e18)
    fail(Hint{"write bytes, or a number with K, M or G"}, "{}: not a size: {}", what, text);
  return static_cast<int64_t>(size);
}

DiskCache::DiskCache(const std::string& directory, int64_t most_bytes) : most_bytes_(most_bytes) {
  if (directory.empty()) {
    fault_ = "it is switched off";
    return;
  }
  std::error_code ignored;
  base_ = fs::absolute(directory, ignored);
  folder_ = format("{}/v{}", base_, kFormat);
  fs::create_directories(fs::path(base_).parent_path(), ignored);
  make_folder(folder_);
  fault_ = folder_fault(base_);
  if (fault_.empty()) fault_ = folder_fault(folder_);
}

DiskCache& DiskCache::shared() {
  static DiskCache& only = *[] {
    auto* made = new DiskCache(directory_from_environment(), bytes_from_environment());
    if (variable("TENON_DEBUG") && !made->fault().empty())
      std::fputs(format("tenon: no disk cache: {}\n", made->fault()).c_str(), stderr);
    return made;
  }();
  return only;
}

/// Also when the whole cache was removed since.
bool DiskCache::make_folder(const std::string& folder) const {
  mkdir(base_.c_str(), 0700);
  mkdir(folder_.c_str(), 0700);
  return mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
}

std::string DiskCache::path(std::string_view key) const {
  Checksum name = checksum(key);
  std::string hex = format("{:016x}{:016x}", name.high, name.low);
  return format("{}/{}/{}", folder_, hex.substr(0, 2), hex.substr(2));
}

std::optional<std::string> DiskCache::get(std::string_view key) {
  if (!fault_.empty()) return std::nullopt;
  std::string place = path(key);
  std::optional<std::string> bytes = read_ours(place);
  std::optional<std::string> value;
  if (bytes) value = value_in(std::move(*bytes), key);
  ++(value ? hits_ : misses_);
  if (bytes && !value) remove(key);
  return value;
}

void DiskCache::remove(std::string_view key) {
  if (fault_.empty() && unlink(path(key).c_str()) == 0) ++removed_;
}

void DiskCache::put(std::string_view key, std::string_view value) {
  size_t bytes = sizeof(Head) + key.size() + value.size();
  int64_t most = std::min(most_bytes_, kMostEntry);
  if (!fault_.empty() || bytes > static_cast<size_t>(most) || !may_write(bytes)) return;
  std::string entry(sizeof(Head), '\0');
  entry.append(key).append(value);
  Head head = head_of(std::string_view(entry).substr(sizeof head), key.size());
  std::memcpy(entry.data(), &head, sizeof head);
  std::string place = path(key);
  if (!write(place, entry)) return;
  ++written_;
  if (std::random_device()() % 64 == 0 && looks_full(fs::path(place).parent_path())) trim();
}

/// Names are hashes, so one folder tells about the others.
bool DiskCache::looks_full(const std::string& folder) const {
  std::vector<Aged> entries;
  list_entries(folder, entries);
  return bytes_of(entries) > most_bytes_ / kFolders / 4 * 3;
}

bool DiskCache::write(const std::string& path, std::string_view entry) const {
  std::string folder = fs::path(path).parent_path();
  std::random_device random;
  std::string temporary =
      format("{}/{}{}.{:08x}{:08x}", folder, kTemporary, getpid(), random(), random());
  bool whole;
  {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL;
    FileHandle file = open_file(temporary, kFlags);
    if (!file && errno == ENOENT && make_folder(folder)) file = open_file(temporary, kFlags);
    if (!file) return false;
    ssize_t written = ::write(file.fd(), entry.data(), entry.size());
    whole = written == static_cast<ssize_t>(entry.size());
  }
  whole = whole && rename(temporary.c_str(), path.c_str()) == 0;
  if (!whole) unlink(temporary.c_str());
  return whole;
}

void DiskCache::trim() {
  if (!fault_.empty()) return;
  FileHandle lock = open_file(folder_ + "/lock", O_RDWR | O_CREAT | O_NOFOLLOW);
  if (!lock || flock(lock.fd(), LOCK_EX | LOCK_NB) != 0) return;  // another process does it
  std::vector<Aged> entries = all_entries(folder_);
  int64_t bytes = bytes_of(entries);
  if (bytes <= most_bytes_) return;
  std::ranges::sort(entries, {}, [](const Aged& entry) {
    return std::pair(entry.used.tv_sec, entry.used.tv_nsec);
  });
  for (const Aged& entry : entries) {
    if (bytes <= most_bytes_ / 4 * 3) return;
    if (unlink(entry.path.c_str()) == 0) bytes -= entry.bytes;
  }
}

int64_t DiskCache::clear() {
  if (!fault_.empty()) return 0;
  int64_t removed = 0;
  for (const Aged& entry : all_entries(folder_)) removed += unlink(entry.path.c_str()) == 0;
  return removed;
}

DiskCache::Usage DiskCache::usage() const {
  if (!fault_.empty()) return {};
  std::vector<Aged> entries = all_entries(folder_);
  return {static_cast<int64_t>(entries.size()), bytes_of(entries)};
}

DiskCache::Stats DiskCache::stats() const { return {hits_, misses_, written_, removed_}; }

}  // namespace tn
