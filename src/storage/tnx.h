#pragma once
// The container of executables, `.tnx`: sections with checksums behind a table. Knows nothing of
// what is in them.
//
//     0     magic "TENONX\0\1", u16 major, u16 minor, u32 flags, u64 place, length of the table,
//           u64 length of the file, u64 xxh3 of the header before
//     …     sections, each aligned to 64 bytes, weights to 4 KiB
//           with zeros between them
//     end   the table: { u32 kind, u32 codec, u64 place, length, raw length, 16 bytes xxh3-128 of
//           what is stored, name }, its xxh3-128. The highest bit of the codec: it is required.
//
// The same sections give the same bytes. A reader takes every minor version of its major one, and
// skips kinds that it does not know unless the table says that they are required.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "runtime/buffer.h"

namespace tn::tnx {

enum class Kind : uint32_t {
  meta = 1,       // the signature: names, types, ranges, trees (executable/signature.h)
  graph = 2,      // the traced graph, as text: enough to compile it again anywhere
  constants = 3,  // what each constant is and where in `weights` it lies
  weights = 4,    // elements, mapped; never compressed
  plan = 5,       // kernel sets: the optimised graph, what is fused, LoopIR (compiler/set_bytes.h)
  code = 6,       // machine code of the kernels of `plan`; named by CPU level: "x86-64-v4"
  debug = 7,      // places in the user's source, by op; may be stripped
  seal = 8,       // authenticates the writer: see storage/seal.h
  sums = 9,       // checksums of the blocks of `weights`, where there are several: see checksum.h
  mesh = 10,      // the workers that it is for, and how constants are divided; always required
};

enum class Codec : uint32_t { raw = 0, zstd = 1 };

struct SectionInfo {
  Kind kind;
  std::string name;
  Codec codec = Codec::raw;
  uint64_t place = 0, length = 0, raw_length = 0;
  bool required = false;
};

/// Bytes of a section of weights: where they come from until the file is written.
struct Piece {
  const void* data;
  size_t bytes;
};

struct Header;

class Writer {
 public:
  /// Compressed, unless it is so large that readers would not take it.
  void add(Kind kind, std::string_view name, std::string bytes, Codec codec = Codec::zstd,
           bool required = false);
  /// Each piece begins at a multiple of 4 KiB from the start of the section; returns where.
  std::vector<uint64_t> add_weights(std::vector<Piece> pieces);

  /// Written under another name beside `path`, made durable, renamed: a reader, or a crash at any
  /// point, finds the whole old file or the whole new one. What writers that were killed left
  /// behind is removed.
  void save(const std::string& path) const;
  /// The same as one text, for tests.
  std::string bytes() const;

 private:
  struct Section {
    SectionInfo info;
    std::string bytes;
    std::vector<Piece> pieces;
  };
  void append(Section section);
  Header header() const;
  void write(FunctionRef<void(const void*, size_t)> sink) const;

  std::vector<Section> sections_;
};

/// A file that is being read. Errors name the file, the section and what is wrong with it.
class File {
 public:
  /// Checks header and table and maps the weights. Other sections are read and checked on first
  /// access.
  static std::shared_ptr<const File> open(const std::string& path);
  /// Over bytes in memory; `name` for messages.
  static std::shared_ptr<const File> over(std::string_view bytes, std::string name = "bytes");
  ~File();

  const std::string& name() const;
  uint64_t bytes() const;
  const std::vector<SectionInfo>& sections() const;
  bool has(Kind kind, std::string_view name = {}) const;
  /// The raw bytes of a section, its checksum verified; fails when there is none.
  std::string read(Kind kind, std::string_view name = {}) const;
  /// [place, place + bytes) of the section of weights as read-only memory that keeps the file
  /// mapped; `place` is a multiple of 64. Its checksum is not verified: `verify` does. A program
  /// that truncates the file in place ends the processes that read its weights; `Writer::save`
  /// never does.
  BufferRef weights(uint64_t place, uint64_t bytes) const;
  /// Reads everything, large weights on all threads; fails when a checksum is wrong. Then every
  /// byte of the file is as it was written.
  void verify() const;

 private:
  struct State;
  explicit File(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tn::tnx
