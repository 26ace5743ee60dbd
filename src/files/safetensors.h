#pragma once
// What the writer and the reader of safetensors agree on. A file is
//
//     u64 length of the header
//     header: {"__metadata__": {name: text, …},
//              name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …}
//     elements, little endian, row-major, without gaps; offsets count from here
//
// The metadata of our files has a checksum of the whole file: of the checksums of its blocks, with
// zeros in the place of its own digits. A second entry says that there is one, so a flipped bit
// in the name of the first is found too. Users see neither. Older files of ours have a checksum of
// names, types, metadata and elements instead.
#include <array>
#include <optional>
#include <string_view>

#include "storage/checksum.h"
#include "tenon/files.h"

namespace tn {

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::string_view kChecksum = "tenon.checksum", kFormat = "tenon.format";
constexpr std::string_view kFormatText = "1", kOldChecksum = "tenon.xxh3";
constexpr size_t kDigits = 32;                 // of the checksum
constexpr uint64_t kMostHeader = 100'000'000;  // as the format says

struct FileType {
  std::string_view name;
  DType type;
};
inline constexpr std::array kFileTypes = {
    FileType{"BOOL", DType::b1},        FileType{"I8", DType::i8},
    FileType{"I16", DType::i16},        FileType{"I32", DType::i32},
    FileType{"I64", DType::i64},        FileType{"U8", DType::u8},
    FileType{"U16", DType::u16},        FileType{"U32", DType::u32},
    FileType{"U64", DType::u64},        FileType{"F8_E4M3", DType::f8e4m3},
    FileType{"F8_E5M2", DType::f8e5m2}, FileType{"F16", DType::f16},
    FileType{"BF16", DType::bf16},      FileType{"F32", DType::f32},
    FileType{"F64", DType::f64},        FileType{"C64", DType::c64},
};

/// What to do about a checksum that differs.
inline constexpr const char* kChecksumHint =
    "its bytes changed after it was saved: take another copy of it. Or another program saved it "
    "again and kept the checksum of the old file: load it with verify=False, and save it";

/// As text for the metadata.
std::string checksum_text(const Checksum& sum);
/// From those of the blocks, as text for the metadata.
std::string checksum_text(const std::vector<Checksum>& blocks);
/// Where the digits begin in the bytes of a header; nothing where there is no checksum.
std::optional<size_t> place_of_checksum(std::string_view header);

}  // namespace tn
