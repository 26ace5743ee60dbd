#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/interrupt.h"
#include "storage/atomic_file.h"
#include "storage/tnx_format.h"

namespace tn::tnx {
namespace {

constexpr int kLevel = 6;  // of compression: above it, files grow smaller by 2 % only
constexpr size_t kChunk = size_t{1} << 20;

std::string compressed(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation) throw std::bad_alloc();
  invariant(!ZSTD_isError(size), "tnx: zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

/// Knows where the next byte goes, and the checksum of those since `begin_sum`.
class Output {
 public:
  explicit Output(FunctionRef<void(const void*, size_t)> sink) : sink_(sink) {}

  void put(const void* data, size_t bytes) {
    for (auto* from = static_cast<const char*>(data); bytes > 0;) {
      stop_if_asked();
      size_t part = std::min(bytes, kChunk);  // summed and written while it is in the cache
      if (blocks_) blocks_->add(from, part);
      summing_.add(from, part);
      sink_(from, part);
      from += part;
      bytes -= part;
      place_ += part;
    }
  }
  /// What comes next, until `end_blocks`, is summed by blocks as well.
  void begin_blocks() { blocks_.emplace(); }
  std::vector<Checksum> end_blocks() {
    std::vector<Checksum> sums = blocks_->finish();
    blocks_.reset();
    return sums;
  }
  void zeros_until(uint64_t place) {
    static constexpr char kZeros[kPage] = {};
    put(kZeros, place - place_);
  }
  void begin_sum() { summing_ = {}; }
  Checksum sum() const { return summing_.sum(); }

 private:
  FunctionRef<void(const void*, size_t)> sink_;
  uint64_t place_ = 0;
  Summing summing_;
  std::optional<BlockSumming> blocks_;
};

void append_entry(std::string& table, const SectionInfo& info, const Checksum& sum) {
  uint32_t codec = static_cast<uint32_t>(info.codec) | (info.required ? kRequired : 0);
  Entry entry{info.kind, codec, info.place, info.length, info.raw_length, sum, info.name.size()};
  table.append(reinterpret_cast<const char*>(&entry), sizeof entry).append(info.name);
}

}  // namespace

void Writer::add(Kind kind, std::string_view name, std::string bytes, Codec codec, bool required) {
  SectionInfo info{.kind = kind, .name = std::string(name), .raw_length = bytes.size()};
  info.required = required;
  if (codec == Codec::zstd && bytes.size() <= kMostCompressed) {
    info.codec = Codec::zstd;
    bytes = compressed(bytes);
  }
  info.length = bytes.size();
  append({std::move(info), std::move(bytes), {}});
}

std::vector<uint64_t> Writer::add_weights(std::vector<Piece> pieces) {
  std::vector<uint64_t> places;
  uint64_t length = 0;
  for (const Piece& piece : pieces) {
    places.push_back(aligned(length, kPage));
    length = places.back() + piece.bytes;
  }
  SectionInfo info{.kind = Kind::weights, .name = "", .length = length, .raw_length = length};
  append({std::move(info), "", std::move(pieces)});
  if (uint64_t blocks = (length + kSumBlock - 1) / kSumBlock; blocks > 1) {
    uint64_t bytes = blocks * sizeof(Checksum);  // which are known when the weights are written
    append({{.kind = Kind::sums, .name = "", .length = bytes, .raw_length = bytes}, "", {}});
  }
  return places;
}

void Writer::append(Section section) {
  SectionInfo& info = section.info;
  invariant(is_name(info.name), "tnx: not the name of a section: {}", info.name);
  for (const Section& other : sections_)
    invariant(other.info.kind != info.kind || other.info.name != info.name, "tnx: two sections {}",
              section_text(info.kind, info.name));
  info.place = aligned(header().table_place, alignment(info.kind));
  sections_.push_back(std::move(section));
}

Header Writer::header() const {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.major = kMajor;
  header.minor = kMinor;
  uint64_t end = sizeof header;
  header.table_length = sizeof(Checksum);
  for (const Section& section : sections_) {
    end = section.info.place + section.info.length;
    header.table_length += sizeof(Entry) + section.info.name.size();
  }
  header.table_place = aligned(end, kAlignment);
  header.file_length = header.table_place + header.table_length;
  header.check = header_check(header);
  return header;
}

void Writer::write(FunctionRef<void(const void*, size_t)> sink) const {
  Output out(sink);
  Header head = header();
  out.put(&head, sizeof head);
  std::string table;
  std::vector<Checksum> sums;  // of the blocks of weights
  for (const Section& section : sections_) {
    uint64_t at = section.info.place;
    bool is_weights = section.info.kind == Kind::weights;
    out.zeros_until(at);
    out.begin_sum();
    if (is_weights) out.begin_blocks();
    out.put(section.bytes.data(), section.bytes.size());
    if (section.info.kind == Kind::sums) out.put(sums.data(), sums.size() * sizeof(Checksum));
    for (const Piece& piece : section.pieces) {
      at = aligned(at, kPage);
      out.zeros_until(at);
      out.put(piece.data, piece.bytes);
      at += piece.bytes;
    }
    if (is_weights) sums = out.end_blocks();
    append_entry(table, section.info, out.sum());
  }
  Checksum sum = checksum(table);
  table.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  out.zeros_until(head.table_place);
  out.put(table.data(), table.size());
}

void Writer::save(const std::string& path) const {
  AtomicFile file(path, header().file_length);
  write([&](const void* data, size_t bytes) { file.write(data, bytes); });
  file.commit();
}

std::string Writer::bytes() const {
  std::string all;
  write([&](const void* data, size_t bytes) { all.append(static_cast<const char*>(data), bytes); });
  return all;
}

}  // namespace tn::tnx
