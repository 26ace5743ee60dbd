#include <zstd.h>
#include <zstd_errors.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "storage/input_file.h"
#include "storage/tnx_format.h"

namespace tn::tnx {
namespace {

// A fuzzer cannot guess checksums, and what lies behind them must stand without them.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
constexpr bool kSumsCount = false;
#else
constexpr bool kSumsCount = true;
#endif

const Hint kUpdate{"load it with a newer tenon, or save it again with this one"};

}  // namespace

struct File::State {
  explicit State(InputFile opened) : input(std::move(opened)) {
    Header head = header();
    read_table(head);
    check_gaps(head);
  }

  InputFile input;
  std::vector<SectionInfo> sections;
  std::vector<Checksum> sums;  // by section

  Header header() const;
  void read_table(const Header& header);
  void add(const Entry& entry, std::string name, uint64_t until);
  void check_section(const SectionInfo& info, uint64_t from, uint64_t until) const;
  void check_gaps(const Header& header) const;
  void check_sum(const SectionInfo& info, const Checksum& sum) const;
  void check_blocks(const SectionInfo& info) const;
  Checksum sum_of(const SectionInfo& info) const;
  const SectionInfo& section(Kind kind, std::string_view name) const;
  std::string read(const SectionInfo& info) const;
};

Header File::State::header() const {
  const std::string& name = input.name();
  uint64_t bytes = input.bytes();
  Header header{};
  input.copy(0, &header, std::min<uint64_t>(bytes, sizeof header));
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    fail("load: {} is not an executable of tenon: wrong magic number", name);
  if (bytes < sizeof header) input.damaged("it is cut off: it has {} bytes", bytes);
  if (header.major != kMajor)
    fail(kUpdate, "load: {} has format {}.{}, and this tenon reads {}.x", name, header.major,
         header.minor, kMajor);
  if (kSumsCount && header.check != header_check(header))
    input.damaged("the checksum of its header");
  if (bytes < header.file_length)
    input.damaged("it is cut off: it has {} of {} bytes", bytes, header.file_length);
  if (bytes > header.file_length)
    input.damaged("it has {} bytes, expected {}", bytes, header.file_length);
  if (header.table_length < sizeof(Checksum) || header.table_length > kMostTable ||
      header.table_place < sizeof header || header.table_place > bytes ||
      header.table_length != bytes - header.table_place)
    input.damaged("its table of {} bytes at {} does not fit in {} bytes", header.table_length,
                  header.table_place, bytes);
  return header;
}

void File::State::read_table(const Header& header) {
  std::string table = input.copy(header.table_place, header.table_length);
  std::string_view rest(table.data(), table.size() - sizeof(Checksum));
  Checksum right;
  std::memcpy(&right, rest.data() + rest.size(), sizeof right);
  if (kSumsCount && checksum(rest) != right) input.damaged("the checksum of its table");
  while (!rest.empty()) {
    Entry entry;
    if (rest.size() < sizeof entry) input.damaged("its table ends too early");
    std::memcpy(&entry, rest.data(), sizeof entry);
    rest.remove_prefix(sizeof entry);
    if (entry.name_length > rest.size() || !is_name(rest.substr(0, entry.name_length)))
      input.damaged("the name of its section {}", sections.size());
    add(entry, std::string(rest.substr(0, entry.name_length)), header.table_place);
    rest.remove_prefix(entry.name_length);
  }
  std::set<std::pair<Kind, std::string_view>> seen;
  for (const SectionInfo& info : sections)
    if (!seen.emplace(info.kind, info.name).second)
      input.damaged("it has two sections {}", section_text(info.kind, info.name));
}

void File::State::add(const Entry& entry, std::string section, uint64_t until) {
  SectionInfo info{entry.kind,
                   std::move(section),
                   static_cast<Codec>(entry.codec & ~kRequired),
                   entry.place,
                   entry.length,
                   entry.raw_length,
                   (entry.codec & kRequired) != 0};
  uint64_t from = sizeof(Header);
  if (!sections.empty()) from = sections.back().place + sections.back().length;
  check_section(info, from, until);
  sections.push_back(std::move(info));
  sums.push_back(entry.sum);
}

void File::State::check_section(const SectionInfo& info, uint64_t from, uint64_t until) const {
  std::string text = section_text(info.kind, info.name);
  if (info.place < from || info.place > until || info.length > until - info.place)
    input.damaged("section {}: {} bytes at {} are not between {} and {}", text, info.length,
                  info.place, from, until);
  if (!is_known(info.kind)) {
    if (info.required)
      fail(kUpdate, "load: {} has a section that this tenon does not know", input.name());
    return;
  }
  if (info.place % alignment(info.kind) != 0)
    input.damaged("section {} is at {}, not a multiple of {}", text, info.place,
                  alignment(info.kind));
  bool compressed = info.codec == Codec::zstd;
  if ((!compressed && info.codec != Codec::raw) || (compressed && info.kind == Kind::weights))
    input.damaged("section {}: codec {}", text, static_cast<uint32_t>(info.codec));
  if (!compressed && info.raw_length != info.length)
    input.damaged("section {} has {} bytes, expected {}", text, info.length, info.raw_length);
  if (compressed && info.raw_length > kMostCompressed)
    input.damaged("section {} is compressed from {} bytes, the maximum is {}", text,
                  info.raw_length, kMostCompressed);
}

/// No checksum covers what lies between sections: it is zero.
void File::State::check_gaps(const Header& header) const {
  uint64_t end = sizeof header;
  auto check = [&](uint64_t next) {
    if (next - end >= kPage) input.damaged("bytes {} to {} belong to no section", end, next);
    if (kSumsCount && input.copy(end, next - end).find_first_not_of('\0') != std::string::npos)
      input.damaged("the bytes {} to {} between its sections are not zero", end, next);
  };
  for (const SectionInfo& info : sections) {
    check(info.place);
    end = info.place + info.length;
  }
  check(header.table_place);
}

void File::State::check_sum(const SectionInfo& info, const Checksum& sum) const {
  const Checksum& right = sums[static_cast<size_t>(&info - sections.data())];
  if (kSumsCount && sum != right)
    input.damaged("the checksum of section {}", section_text(info.kind, info.name));
}

/// Weights are mapped; everything else is copied.
Checksum File::State::sum_of(const SectionInfo& info) const {
  if (info.kind != Kind::weights || info.length == 0)
    return checksum(input.copy(info.place, info.length));
  BufferRef held = input.memory(info.place, info.length);
  return checksum({held.data<char>(), info.length});
}

/// Of weights that have a checksum for each block.
void File::State::check_blocks(const SectionInfo& info) const {
  std::string right = read(section(Kind::sums, {}));
  BufferRef held = input.memory(info.place, info.length);
  std::vector<Checksum> sums = block_sums({held.data<char>(), info.length});
  if (right.size() != sums.size() * sizeof(Checksum))
    input.damaged("{} bytes of checksums for {} bytes of weights", right.size(), info.length);
  for (size_t i = 0; kSumsCount && i < sums.size(); ++i)
    if (std::memcmp(&sums[i], right.data() + i * sizeof sums[i], sizeof sums[i]) != 0)
      input.damaged("the checksum of section weights, from byte {} on", i * kSumBlock);
}

const SectionInfo& File::State::section(Kind kind, std::string_view name) const {
  for (const SectionInfo& info : sections)
    if (is_known(kind) && info.kind == kind && info.name == name) return info;
  fail("load: {} has no section {}", input.name(), section_text(kind, name));
}

std::string File::State::read(const SectionInfo& info) const {
  std::string stored = input.copy(info.place, info.length);
  check_sum(info, checksum(stored));
  if (info.codec == Codec::raw) return stored;
  // One frame, of the size that the table says: then nothing beyond it is allocated or written.
  if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != info.raw_length ||
      ZSTD_findFrameCompressedSize(stored.data(), stored.size()) != stored.size())
    input.damaged("section {} does not decompress to {} bytes", section_text(info.kind, info.name),
                  info.raw_length);
  std::string raw(info.raw_length, '\0');
  size_t size = ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation) throw std::bad_alloc();
  if (ZSTD_isError(size) || size != raw.size())
    input.damaged("section {} does not decompress", section_text(info.kind, info.name));
  return raw;
}

std::shared_ptr<const File> File::open(const std::string& path) {
  auto state = std::make_unique<State>(InputFile::open(path));
  bool has_weights = std::ranges::any_of(state->sections, [](const SectionInfo& info) {
    return info.kind == Kind::weights && info.length > 0;
  });
  if (has_weights) state->input.map();
  return std::shared_ptr<const File>(new File(std::move(state)));
}

std::shared_ptr<const File> File::over(std::string_view bytes, std::string name) {
  auto state = std::make_unique<State>(InputFile::over(bytes, std::move(name)));
  return std::shared_ptr<const File>(new File(std::move(state)));
}

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}
File::~File() = default;
const std::string& File::name() const { return state_->input.name(); }
uint64_t File::bytes() const { return state_->input.bytes(); }
const std::vector<SectionInfo>& File::sections() const { return state_->sections; }

bool File::has(Kind kind, std::string_view name) const {
  return std::ranges::any_of(state_->sections, [&](const SectionInfo& info) {
    return info.kind == kind && info.name == name;
  });
}

std::string File::read(Kind kind, std::string_view name) const {
  return state_->read(state_->section(kind, name));
}

BufferRef File::weights(uint64_t place, uint64_t bytes) const {
  const SectionInfo& info = state_->section(Kind::weights, {});
  if (place > info.length || bytes > info.length - place || place % kAlignment != 0)
    state_->input.damaged("a constant of {} bytes at {} is outside of {} bytes of weights", bytes,
                          place, info.length);
  return state_->input.memory(info.place + place, bytes);
}

void File::verify() const {
  bool has_blocks = has(Kind::sums);
  for (const SectionInfo& info : state_->sections) {
    if (info.kind == Kind::weights && has_blocks) {
      state_->check_blocks(info);
      continue;
    }
    state_->check_sum(info, state_->sum_of(info));
    if (info.codec == Codec::zstd && is_known(info.kind)) state_->read(info);
  }
}

}  // namespace tn::tnx
