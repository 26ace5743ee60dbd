#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zstd.h>

#include <cstring>
#include <random>

#include "errors.h"
#include "files.h"
#include "storage/input_file.h"
#include "storage/tnx_format.h"

using namespace tn;
using namespace tn::tnx;

namespace {

const std::string kText(5000, 'x');
const std::string kCode =
    "\x7f"
    "ELF and so on";

/// One of everything; weights of 5000 and 3 bytes.
Writer sample() {
  Writer writer;
  writer.add(Kind::meta, "", "names and types", Codec::raw);
  writer.add(Kind::graph, "", kText);
  std::vector<uint64_t> places = writer.add_weights({{kText.data(), 5000}, {kText.data(), 3}});
  REQUIRE(places == std::vector<uint64_t>{0, 8192});
  writer.add(Kind::code, "x86-64-v3", kCode, Codec::raw);
  writer.add(Kind::code, "x86-64-v4", "", Codec::raw);
  writer.add(Kind::debug, "", "");
  return writer;
}

std::shared_ptr<const File> opened(std::string bytes) { return File::over(std::move(bytes), "f"); }

/// All that a reader can see.
std::string everything(const File& file) {
  std::string all;
  for (const SectionInfo& info : file.sections()) {
    all += format("{} {}\n", section_text(info.kind, info.name), info.raw_length);
    if (info.kind == Kind::weights) {
      BufferRef bytes = file.weights(0, info.length);
      all.append(bytes.data<char>(), bytes.bytes());
    } else {
      all += file.read(info.kind, info.name);
    }
  }
  file.verify();
  return all;
}

std::string error_of(const std::string& bytes) {
  return error_in([&] { everything(*opened(bytes)); });
}

/// A file whose table somebody changed, with checksums that are right.
struct Forgery {
  struct Named : Entry {
    std::string name;
  };
  Header header;
  std::vector<Named> entries;
  std::string body;

  explicit Forgery(const std::string& bytes) {
    std::memcpy(&header, bytes.data(), sizeof header);
    body = bytes.substr(sizeof header, header.table_place - sizeof header);
    for (uint64_t at = header.table_place; at + sizeof(Checksum) < bytes.size();) {
      Named& named = entries.emplace_back();
      std::memcpy(static_cast<Entry*>(&named), bytes.data() + at, sizeof(Entry));
      named.name = bytes.substr(at + sizeof(Entry), named.name_length);
      at += sizeof(Entry) + named.name_length;
    }
  }
  Named& section(Kind kind) {
    return *std::ranges::find_if(entries, [&](const Entry& entry) { return entry.kind == kind; });
  }
  std::string& stored(Kind kind, std::string bytes) {
    Named& entry = section(kind);
    REQUIRE(bytes.size() <= entry.length);
    std::string filled = bytes + std::string(entry.length - bytes.size(), '\0');
    body.replace(entry.place - sizeof header, filled.size(), filled);
    entry.length = bytes.size();
    entry.sum = checksum(bytes);
    if (&entry == &entries.back()) {  // nothing but the table stands behind it
      header.table_place = aligned(entry.place + entry.length, kAlignment);
      header.file_length = header.table_place + header.table_length;
      body.resize(header.table_place - sizeof header);
    }
    return body;
  }
  std::string bytes() {
    std::string table;
    for (const Named& named : entries)
      table.append(reinterpret_cast<const char*>(static_cast<const Entry*>(&named)), sizeof(Entry))
          .append(named.name);
    Checksum sum = checksum(table);
    table.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    header.check = header_check(header);
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body + table;
  }
};

/// What the reader says of the sample after `change`.
template <class Change>
std::string error_after(const Change& change) {
  Forgery forgery(sample().bytes());
  change(forgery);
  return error_of(forgery.bytes());
}

}  // namespace

TEST_CASE("tnx: what is written is read") {
  auto file = opened(sample().bytes());
  CHECK(file->sections().size() == 6);
  CHECK(file->read(Kind::meta) == "names and types");
  CHECK(file->read(Kind::graph) == kText);
  CHECK(file->read(Kind::code, "x86-64-v3") == kCode);
  CHECK(file->read(Kind::code, "x86-64-v4").empty());
  CHECK(file->read(Kind::debug).empty());
  CHECK(file->has(Kind::code, "x86-64-v3"));
  CHECK_FALSE(file->has(Kind::code));
  CHECK(error_in([&] { file->read(Kind::plan); }) == "load: f has no section plan");
  CHECK(error_of(Writer().bytes()).empty());
  file->verify();
}

TEST_CASE("tnx: the same sections give the same bytes, compressed where that is asked for") {
  std::string bytes = sample().bytes();
  CHECK(bytes == sample().bytes());
  auto file = opened(bytes);
  for (const SectionInfo& info : file->sections()) {
    bool is_zstd = info.kind == Kind::graph || info.kind == Kind::debug;
    CHECK((info.codec == Codec::zstd) == is_zstd);
    CHECK(info.place % (info.kind == Kind::weights ? 4096 : 64) == 0);
  }
  CHECK(file->sections()[1].length < 100);
  Forgery forgery(bytes);
  CHECK(forgery.bytes() == bytes);
}

TEST_CASE("tnx: weights are memory that outlives the file, and cannot be written") {
  Folder folder;
  std::string path = folder.path + "/f.tnx";
  sample().save(path);
  for (bool on_disk : {true, false}) {
    auto file = on_disk ? File::open(path) : opened(sample().bytes());
    BufferRef first = file->weights(0, 5000), second = file->weights(8192, 3);
    std::string wrong = error_in([&] { file->weights(8192, 4); });
    CHECK(contains(wrong, "a constant of 4 bytes at 8192 is outside of 8195 bytes of weights"));
    CHECK(!error_in([&] { file->weights(1, 1); }).empty());
    CHECK(!error_in([&] { file->weights(~uint64_t{0}, 2); }).empty());
    CHECK(!error_in([&] { file->weights(64, ~uint64_t{0} - 32); }).empty());
    file.reset();
    CHECK(std::string(first.data<char>(), first.bytes()) == kText);
    CHECK(std::string(second.data<char>(), second.bytes()) == "xxx");
    CHECK(first->read_only);
    CHECK(reinterpret_cast<uintptr_t>(first.data()) % 64 == 0);
  }
}

TEST_CASE("tnx: what is no executable is refused with its name") {
  Folder folder;
  auto error = [&](const std::string& name) {
    return error_in([&] { File::open(folder.path + "/" + name); });
  };
  CHECK(contains(error("absent"), "load: cannot open"));
  CHECK(contains(error("absent"), "/absent: No such file or directory"));
  CHECK(contains(error(""), "is a directory"));
  REQUIRE(mkfifo((folder.path + "/fifo").c_str(), 0600) == 0);
  CHECK(contains(error("fifo"), "/fifo is not a regular file"));
  CHECK(contains(error_in([] { File::open("/dev/null"); }), "is not a regular file"));
  spill(folder.path + "/empty", "");
  CHECK(contains(error("empty"), "/empty is empty"));
  spill(folder.path + "/text", "{\"a\": 1}, and more of it, to be longer than a header is");
  CHECK(contains(error("text"), "/text is not an executable of tenon"));
}

TEST_CASE("tnx: later versions") {
  CHECK(error_after([](Forgery& f) { f.header.minor = 9; }).empty());
  std::string major = error_after([](Forgery& f) { f.header.major = 2; });
  CHECK(contains(major, "load: f has format 2.0, and this tenon reads 1.x\n  hint: "));
  auto later = [](Forgery& f) { f.section(Kind::debug).kind = static_cast<Kind>(77); };
  Forgery skipped(sample().bytes());
  later(skipped);
  auto file = opened(skipped.bytes());
  file->verify();
  CHECK(file->read(Kind::graph) == kText);
  CHECK(!error_in([&] { file->read(static_cast<Kind>(77)); }).empty());
  std::string required = error_after([&](Forgery& f) {
    f.section(Kind::debug).codec |= kRequired;
    later(f);
  });
  CHECK(contains(required, "has a section that this tenon does not know"));
}

TEST_CASE("tnx: a cut off file is refused, wherever it was cut") {
  std::string bytes = sample().bytes();
  for (size_t k = 0; k < 2000; ++k) {
    size_t length = k * bytes.size() / 2000;
    CAPTURE(length);
    std::string error = error_of(bytes.substr(0, length));
    REQUIRE(error.starts_with("load: f "));
    if (length >= 8) REQUIRE(contains(error, "it is cut off: it has"));
  }
  CHECK(contains(error_of(bytes + "x"), ", expected "));
}

TEST_CASE("tnx: a flipped bit is noticed, in whichever byte it is") {
  std::string bytes = sample().bytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    CAPTURE(at);
    std::string flipped = bytes;
    flipped[at] ^= static_cast<char>(1 << at % 8);
    REQUIRE(error_in([&] { opened(flipped)->verify(); }).starts_with("load: f "));
  }
}

TEST_CASE("tnx: large weights have a checksum for each block, and every flipped bit is noticed") {
  std::string elements(2 * kSumBlock + 100, 'e');
  Writer writer;
  writer.add_weights({{elements.data(), kSumBlock - 1}, {elements.data(), kSumBlock + 100}});
  writer.add(Kind::meta, "", "names and types", Codec::raw);
  std::string bytes = writer.bytes();
  auto file = opened(bytes);
  file->verify();
  const SectionInfo& weights = file->sections()[0];
  CHECK(file->read(Kind::sums).size() == 3 * sizeof(Checksum));
  std::string right = file->read(Kind::sums);
  auto sum_at = [&](size_t block) {
    return checksum(bytes.substr(weights.place + block * kSumBlock,
                                 std::min(kSumBlock, weights.length - block * kSumBlock)));
  };
  for (size_t block = 0; block < 3; ++block) {
    Checksum sum = sum_at(block);
    CHECK(std::memcmp(&sum, right.data() + block * sizeof sum, sizeof sum) == 0);
  }
  for (uint64_t at : {weights.place, weights.place + kSumBlock - 1, weights.place + kSumBlock,
                      weights.place + weights.length - 1, file->sections()[1].place + 17}) {
    CAPTURE(at);
    std::string flipped = bytes;
    flipped[at] ^= 0x10;
    CHECK(contains(error_in([&] { opened(flipped)->verify(); }), "the checksum of section"));
  }
  Forgery fewer(bytes);
  fewer.stored(Kind::sums, right.substr(0, 2 * sizeof(Checksum)));
  fewer.section(Kind::sums).raw_length = 2 * sizeof(Checksum);
  CHECK(contains(error_in([&] { opened(fewer.bytes())->verify(); }), "bytes of checksums for"));
}

TEST_CASE("tnx: lengths and places that make no sense") {
  uint64_t places[] = {0,
                       1,
                       47,
                       48,
                       64,
                       uint64_t{1} << 32,
                       INT64_MAX,
                       ~uint64_t{0},
                       ~uint64_t{63},
                       uint64_t{1} << 63};
  for (uint64_t x : places) {
    CAPTURE(x);
    for (auto field : {&Header::table_place, &Header::table_length, &Header::file_length})
      CHECK(!error_after([&](Forgery& f) { f.header.*field = x; }).empty());
    for (auto field : {&Entry::place, &Entry::length, &Entry::raw_length})
      for (Kind kind : {Kind::graph, Kind::weights, Kind::code})
        CHECK(!error_after([&](Forgery& f) {
                 if (f.section(kind).*field == x) x = 65;
                 f.section(kind).*field = x;
               }).empty());
    CHECK(!error_after([&](Forgery& f) { f.section(Kind::debug).name_length = x | 1; }).empty());
  }
  CHECK(
      contains(error_after([](Forgery& f) { f.section(Kind::code).place += 64; }), "section code"));
  CHECK(contains(error_after([](Forgery& f) { f.section(Kind::weights).place += 64; }),
                 "not a multiple of 4096"));
}

TEST_CASE("tnx: tables that do not fit what is there") {
  auto error_with_table = [](int64_t longer, const auto& change) {
    return error_after([&](Forgery& f) {
      change(f.entries);
      f.header.table_length += static_cast<uint64_t>(longer);
      f.header.file_length += static_cast<uint64_t>(longer);
    });
  };
  CHECK(contains(error_with_table(4, [](auto& entries) { entries.back().name += "more"; }),
                 "its table ends too early"));
  CHECK(contains(error_with_table(-static_cast<int64_t>(sizeof(Entry)),
                                  [](auto& entries) {
                                    std::erase_if(entries, [](const Entry& entry) {
                                      return entry.kind == Kind::weights;
                                    });
                                  }),
                 "belong to no section"));
}

TEST_CASE("input file: one that another process truncates while it is read") {
  Folder folder;
  std::string path = folder.path + "/f";
  spill(path, std::string(100, 'x'));
  InputFile file = InputFile::open(path);
  fs::resize_file(path, 10);
  CHECK(contains(error_in([&] { file.copy(0, 100); }),
                 "/f is damaged: it was cut off while it was read"));
}

TEST_CASE("tnx: sections that overlap, are there twice, or have odd names") {
  std::string overlap =
      error_after([](Forgery& f) { f.section(Kind::code).place = f.section(Kind::graph).place; });
  CHECK(contains(overlap, "section code x86-64-v3: "));
  CHECK(contains(overlap, "are not between"));
  std::string twice = error_after([](Forgery& f) { f.section(Kind::debug).kind = Kind::graph; });
  CHECK(contains(twice, "it has two sections graph"));
  auto named = [](std::string_view name) {
    return error_after(
        [&](Forgery& f) { f.section(Kind::code).name.replace(0, name.size(), name); });
  };
  CHECK(contains(named("\x1b[2J"), "the name of its section 3"));
  CHECK(contains(named("\n"), "the name of its section 3"));
  CHECK(named("x").empty());
}

TEST_CASE("tnx: codecs") {
  auto with = [](Kind kind, uint32_t codec) {
    return error_after([&](Forgery& f) { f.section(kind).codec = codec; });
  };
  CHECK(contains(with(Kind::graph, 2), "section graph: codec 2"));
  CHECK(contains(with(Kind::weights, 1), "section weights: codec 1"));
  CHECK(contains(with(Kind::graph, 0), "section graph has"));
  CHECK(contains(with(Kind::code, 1), "does not decompress to"));
}

static std::string zstd_of(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1));
  return out;
}

TEST_CASE("tnx: a small section that would become large is refused before it does") {
  Writer writer;
  writer.add(Kind::debug, "", std::string(1 << 20, 'd'), Codec::raw);  // room for the others
  Forgery whole(writer.bytes());
  Forgery::Named& entry = whole.section(Kind::debug);
  auto forged = [&](std::string stored, uint64_t raw_length) {
    Forgery forgery = whole;
    forgery.section(Kind::debug).codec = static_cast<uint32_t>(Codec::zstd);
    forgery.section(Kind::debug).raw_length = raw_length;
    forgery.stored(Kind::debug, std::move(stored));
    return error_of(forgery.bytes());
  };
  REQUIRE(entry.length == 1 << 20);
  std::string large(kMostCompressed + 1, '\0'), small(10000, 'a');
  std::string honest = forged(zstd_of(large), large.size());
  CHECK(contains(honest, "is compressed from 33554433 bytes, the maximum is 33554432"));
  CHECK(contains(forged(zstd_of(large), 10000), "does not decompress to 10000 bytes"));
  CHECK(contains(forged(zstd_of(small) + "x", 10000), "does not decompress to"));
  CHECK(contains(forged(zstd_of(small) + zstd_of(small), 20000), "does not decompress to"));
  CHECK(contains(forged("", 0), "does not decompress to"));
  CHECK(forged(zstd_of(small), 10000).empty());
  std::string inside = zstd_of(small);
  inside[inside.size() - 6] ^= 0x55;
  CHECK(!forged(inside, 10000).empty());
}

TEST_CASE("tnx: what is too large to be compressed is stored as it is") {
  Writer writer;
  std::string large(kMostCompressed + 1, 'l');
  writer.add(Kind::graph, "", large);
  auto file = opened(writer.bytes());
  CHECK(file->sections()[0].codec == Codec::raw);
  CHECK(file->read(Kind::graph) == large);
}

#ifndef __SANITIZE_ADDRESS__  // which reserves more than any limit
TEST_CASE("tnx: bad files ask for little memory") {
  std::string bytes = sample().bytes();
  int status = status_of(spawn([&] {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    rlimit limit{};
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = (uint64_t{64} << 20) + static_cast<uint64_t>(used.ru_maxrss) * 1024;
    setrlimit(RLIMIT_DATA, &limit);
    std::mt19937_64 random(2);
    for (int k = 0; k < 500; ++k) {
      Forgery forgery(bytes);
      Forgery::Named& entry = forgery.entries[random() % forgery.entries.size()];
      uint64_t Entry::* fields[] = {&Entry::length, &Entry::raw_length, &Entry::name_length};
      entry.*fields[random() % 3] = random() >> random() % 64;
      error_of(forgery.bytes());
    }
  }));
  CHECK(status == 0);
}
#endif
