#pragma once
// DiskCache: bytes by key that outlive the process. Processes share a directory without locks.
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tn {

/// "500M" as bytes; K and G too. An error says `what` it should be.
int64_t parse_bytes(std::string_view what, const std::string& text);

/// An entry is one file, written under a temporary name and renamed, so readers never see a part of
/// one. It holds its whole key and a checksum: whatever is wrong with it makes it a miss, and it is
/// removed. Whatever is wrong with the directory makes every `get` a miss and every `put` a no-op.
///
/// Entries may be machine code, so what others could have written is not read: the directory must
/// belong to the user and be writable by no other user, and so must every entry.
class DiskCache {
 public:
  static constexpr int64_t kDefaultBytes = int64_t{2} << 30;

  /// In `directory`, which is made when absent; off without a name.
  explicit DiskCache(const std::string& directory, int64_t most_bytes = kDefaultBytes);

  /// The current user's cache: in TENON_CACHE_DIR, $XDG_CACHE_HOME/tenon or ~/.cache/tenon, of at
  /// most TENON_CACHE_SIZE bytes (K, M, G may follow); off with TENON_CACHE=0.
  static DiskCache& shared();

  std::optional<std::string> get(std::string_view key);
  void put(std::string_view key, std::string_view value);
  /// Removes an entry that its reader could not parse.
  void remove(std::string_view key);
  /// Removes the least recently used entries until the rest is well within the size, and the files
  /// of killed writers. One `put` in 64 checks whether it is due.
  void trim();
  /// Removes all entries; returns how many. Concurrent users of the cache are not disturbed.
  int64_t clear();

  /// Where it is; "" when it is off.
  const std::string& directory() const { return base_; }
  int64_t most_bytes() const { return most_bytes_; }
  /// What it holds now.
  struct Usage {
    int64_t entries = 0, bytes = 0;
  };
  Usage usage() const;

  /// Why nothing is kept; empty when all is well.
  const std::string& fault() const { return fault_; }
  /// Where the entry of `key` is or would be.
  std::string path(std::string_view key) const;

  struct Stats {
    int64_t hits = 0, misses = 0, written = 0, removed = 0;  // removed: as damaged
  };
  Stats stats() const;

 private:
  bool make_folder(const std::string& folder) const;
  bool looks_full(const std::string& folder) const;
  bool write(const std::string& path, std::string_view entry) const;

  std::string base_, folder_;  // folder_: of this version of the format
  int64_t most_bytes_;
  std::string fault_;
  std::atomic<int64_t> hits_{0}, misses_{0}, written_{0}, removed_{0};
};

}  // namespace tn
