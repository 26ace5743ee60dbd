#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/text.h"
#include "files.h"
#include "storage/disk_cache.h"

using namespace tn;
namespace fs = std::filesystem;

namespace {

/// Entries and temporary files; not the lock.
size_t count_files(const std::string& folder, std::string_view prefix = "") {
  size_t count = 0;
  for (const auto& at : fs::recursive_directory_iterator(folder)) {
    std::string name = at.path().filename();
    count += at.is_regular_file() && name != "lock" && name.starts_with(prefix);
  }
  return count;
}

std::string key_of(int k) { return format("kernel {}", k); }

/// Of a size and with bytes that follow from the key.
std::string value_of(int k) {
  std::mt19937 random(static_cast<unsigned>(k));
  std::string value(random() % 40000, '\0');
  for (char& c : value) c = static_cast<char>(random());
  return value;
}

}  // namespace

TEST_CASE("disk cache: what is put is found, by this cache and by the next") {
  Folder folder;
  std::string key("a\0b", 3), value("\0\xff\0", 3);
  {
    DiskCache cache(folder.path);
    REQUIRE(cache.fault() == "");
    CHECK(!cache.get(key));
    cache.put(key, value);
    cache.put("", "empty key");
    cache.put("empty value", "");
    CHECK(cache.get(key) == value);
  }
  DiskCache cache(folder.path);
  CHECK(cache.get(key) == value);
  CHECK(cache.get("") == "empty key");
  CHECK(cache.get("empty value") == "");
  CHECK(!cache.get("a"));
  cache.put(key, "another");
  CHECK(cache.get(key) == "another");
  CHECK(cache.stats().hits == 4);
  CHECK(cache.stats().misses == 1);
  CHECK(cache.stats().written == 1);
  CHECK(count_files(folder.path) == 3);
  struct stat s;
  REQUIRE(stat(cache.path(key).c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
}

TEST_CASE("disk cache: a damaged entry is a miss, is removed, and can be written again") {
  Folder folder;
  DiskCache cache(folder.path);
  std::string place = cache.path("key"), value = "0123456789";
  cache.put("key", value);
  std::string whole = slurp(place);
  int64_t removed = 0;
  auto check = [&](std::string_view bytes) {
    spill(place, bytes);
    CHECK(!cache.get("key"));
    CHECK(!fs::exists(place));
    CHECK(cache.stats().removed == ++removed);
    cache.put("key", value);
    CHECK(cache.get("key") == value);
  };
  for (size_t length = 0; length < whole.size(); ++length) check(whole.substr(0, length));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    check(flipped);
  }
  check(whole + whole);
  check(std::string(whole.size(), '\0'));
  cache.put("another", value);
  check(slurp(cache.path("another")));  // whole, but in the wrong place
}

TEST_CASE("disk cache: entries that others could have written are not read") {
  Folder folder;
  DiskCache cache(folder.path);
  std::string place = cache.path("key");
  cache.put("key", "value");
  chmod(place.c_str(), 0620);
  CHECK(!cache.get("key"));
  cache.put("key", "value");
  fs::rename(place, folder.path + "/aside");
  fs::create_symlink(folder.path + "/aside", place);
  CHECK(!cache.get("key"));
  cache.put("key", "value");
  CHECK(cache.get("key") == "value");
  if (geteuid() == 0) {
    REQUIRE(chown(place.c_str(), 12345, 12345) == 0);
    CHECK(!cache.get("key"));
  }
  fs::remove(place);
  fs::create_directory(place);
  CHECK(!cache.get("key"));
  cache.put("key", "value");
  CHECK(!cache.get("key"));
  for (const char* open : {"", "/v1"}) {
    chmod((folder.path + open).c_str(), 0770);
    CHECK(DiskCache(folder.path).fault().find("writable for other users") != std::string::npos);
    chmod((folder.path + open).c_str(), 0700);
  }
  CHECK(DiskCache(folder.path).fault() == "");
}

TEST_CASE("disk cache: without a usable directory nothing is kept and nothing fails") {
  Folder folder;
  spill(folder.path + "/file", "");
  for (std::string path : {std::string(), folder.path + "/file", folder.path + "/file/below",
                           std::string("/proc/self/tenon")}) {
    DiskCache cache(path);
    CHECK(cache.fault() != "");
    cache.put("key", "value");
    CHECK(!cache.get("key"));
    cache.trim();
  }
  DiskCache cache(folder.path + "/made/on/the/way");
  cache.put("key", "value");
  CHECK(cache.get("key") == "value");
  fs::remove_all(folder.path + "/made");
  CHECK(!cache.get("key"));
  cache.put("key", "value");  // its parent is gone too
  CHECK(!cache.get("key"));
}

TEST_CASE("disk cache: a full disk keeps nothing") {
  Folder folder;
  pid_t child = spawn([&] {
    rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    DiskCache cache(folder.path);
    cache.put("large", std::string(2000, 'x'));
    cache.put("small", "x");
    _exit(cache.get("large") || cache.get("small") != "x" ? 1 : 0);
  });
  CHECK(status_of(child) == 0);
  CHECK(count_files(folder.path) == 1);
}

TEST_CASE("disk cache: kept to its size, what was used longest ago goes first") {
  Folder folder;
  constexpr int64_t kMost = 64 << 10;
  DiskCache filled(folder.path), cache(folder.path, kMost);
  std::string value(4000, 'x');  // a block of 4096 bytes with its key
  for (int k = 0; k < 32; ++k) {
    filled.put(key_of(k), value);
    timespec used[2] = {{1000 + k, 0}, {1000 + k, 0}};
    utimensat(AT_FDCWD, cache.path(key_of(k)).c_str(), used, 0);
  }
  CHECK(cache.get(key_of(0)));  // now the latest
  spill(folder.path + "/v1/00left", "not ours");
  std::string stale = fs::path(cache.path(key_of(1))).parent_path() / "tmp.1.0";
  spill(stale, "of a writer that was killed");
  timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  utimensat(AT_FDCWD, stale.c_str(), long_ago, 0);
  cache.trim();
  CHECK(!fs::exists(stale));
  CHECK(fs::exists(folder.path + "/v1/00left"));
  CHECK(cache.get(key_of(0)));
  CHECK(!cache.get(key_of(1)));
  CHECK(cache.get(key_of(31)));
  int kept = 0;
  for (int k = 0; k < 32; ++k) kept += cache.get(key_of(k)).has_value();
  CHECK(kept >= 8);
  CHECK(kept <= 12);  // three quarters, by blocks of the file system
  for (int k = 0; k < 2000; ++k) cache.put(key_of(k), value);
  CHECK(count_files(folder.path) < 1000);  // by itself, now and then
  cache.put("too large", std::string(kMost + 1, 'x'));
  CHECK(!cache.get("too large"));
}

TEST_CASE("disk cache: threads and processes share one directory") {
  Folder folder;
  constexpr int kKeys = 40;
  auto hammer = [&](DiskCache& cache, unsigned seed) {
    std::mt19937 random(seed);
    int wrong = 0;
    for (int i = 0; i < 400; ++i) {
      int k = static_cast<int>(random() % kKeys);
      std::optional<std::string> found = cache.get(key_of(k));
      if (found) wrong += *found != value_of(k);
      if (!found || random() % 8 == 0) cache.put(key_of(k), value_of(k));
      if (random() % 64 == 0) cache.trim();
      if (random() % 64 == 0) cache.remove(key_of(k));
    }
    return wrong;
  };
  std::vector<pid_t> children;
  for (unsigned seed = 0; seed < 8; ++seed)
    children.push_back(spawn([&] {
      DiskCache cache(folder.path, 300 << 10);
      _exit(hammer(cache, seed) + static_cast<int>(cache.stats().removed > 400));
    }));
  DiskCache cache(folder.path, 300 << 10);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 100; seed < 104; ++seed)
    threads.emplace_back([&, seed] { wrong += hammer(cache, seed); });
  for (std::thread& thread : threads) thread.join();
  for (pid_t child : children) CHECK(status_of(child) == 0);
  CHECK(wrong == 0);
  CHECK(count_files(folder.path, "tmp.") == 0);
}

TEST_CASE("disk cache: writers killed at any moment leave whole entries") {
  Folder folder;
  std::mt19937 random(1);
  int found = 0;
  for (int round = 0; round < 100; ++round) {
    pid_t child = spawn([&] {
      DiskCache writer(folder.path);
      for (int k = round;; ++k) writer.put(key_of(k % 100), value_of(k % 100));
    });
    usleep(random() % 5000);
    kill(child, SIGKILL);
    status_of(child);
    DiskCache cache(folder.path);
    for (int k = round; k < round + 10; ++k)
      if (auto value = cache.get(key_of(k % 100))) found += *value == value_of(k % 100);
    CHECK(cache.stats().removed == 0);
    CHECK(cache.stats().hits + cache.stats().misses == 10);
  }
  DiskCache cache(folder.path);
  int64_t whole = 0;
  for (int k = 0; k < 100; ++k) {
    std::optional<std::string> value = cache.get(key_of(k));
    whole += value.has_value();
    if (value) CHECK(*value == value_of(k));
  }
  CHECK(found > 0);
  CHECK(whole + static_cast<int64_t>(count_files(folder.path, "tmp.")) ==
        static_cast<int64_t>(count_files(folder.path)));
}
