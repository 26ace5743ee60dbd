#pragma once
// The bytes of the container that its writer and its reader agree on.
#include <algorithm>
#include <cstddef>

#include "base/text.h"
#include "storage/checksum.h"
#include "storage/tnx.h"

namespace tn::tnx {

constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'X', '\0', '\1'};
constexpr uint16_t kMajor = 1, kMinor = 0;
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kPage = 4096;
// Limits of what a reader takes: they bound what it allocates.
constexpr uint64_t kMostTable = uint64_t{1} << 20;
constexpr uint64_t kMostCompressed = uint64_t{32} << 20;  // when it is not compressed any more
constexpr uint64_t kMostName = 255;
/// In the table's codec: a reader that does not know the kind must reject the file.
constexpr uint32_t kRequired = uint32_t{1} << 31;

struct Header {
  char magic[8];
  uint16_t major, minor;
  uint32_t flags;  // none yet
  uint64_t table_place, table_length, file_length;
  uint64_t check;  // of what comes before
};
static_assert(sizeof(Header) == 48);

/// One of the table; its name follows.
struct Entry {
  Kind kind;
  uint32_t codec;
  uint64_t place, length, raw_length;
  Checksum sum;
  uint64_t name_length;
};
static_assert(sizeof(Entry) == 56);

inline uint64_t header_check(const Header& header) {
  return short_checksum(&header, offsetof(Header, check));
}

/// Names are shown in messages.
inline bool is_name(std::string_view name) {
  return name.size() <= kMostName &&
         std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
}

constexpr uint64_t aligned(uint64_t place, uint64_t to) { return (place + to - 1) / to * to; }
constexpr uint64_t alignment(Kind kind) { return kind == Kind::weights ? kPage : kAlignment; }

constexpr bool is_known(Kind kind) { return kind >= Kind::meta && kind <= Kind::mesh; }

/// "graph", "code x86-64-v4", "kind 12".
inline std::string section_text(Kind kind, std::string_view name) {
  static constexpr const char* kNames[] = {"",     "meta",  "graph", "constants", "weights", "plan",
                                           "code", "debug", "seal",  "sums",      "mesh"};
  auto number = static_cast<uint32_t>(kind);
  std::string text = is_known(kind) ? kNames[number] : format("kind {}", number);
  return name.empty() ? text : format("{} {}", text, name);
}

}  // namespace tn::tnx
