#pragma once
// What the writer and the reader of safetensors agree on. A file is
//
//     u64 length of the header
//     header: {"__metadata__": {name: text, …},
//              name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …}
//     elements, little endian, row-major, without gaps; offsets count from here
#include <array>
#include <optional>
#include <string_view>

#include "runtime/checksum.h"
#include "tenon/files.h"

namespace tn {

constexpr std::string_view kMetadata = "__metadata__";
/// In the metadata of our files. Users do not see it.
constexpr std::string_view kChecksum = "tenon.xxh3";
constexpr uint64_t kMostHeader = 100'000'000;  // as the format says

struct FileType {
  std::string_view name;
  DType type;
};
constexpr std::array kFileTypes = {
    FileType{"BOOL", DType::b1},        FileType{"I8", DType::i8},
    FileType{"I16", DType::i16},        FileType{"I32", DType::i32},
    FileType{"I64", DType::i64},        FileType{"U8", DType::u8},
    FileType{"U16", DType::u16},        FileType{"U32", DType::u32},
    FileType{"U64", DType::u64},        FileType{"F8_E4M3", DType::f8e4m3},
    FileType{"F8_E5M2", DType::f8e5m2}, FileType{"F16", DType::f16},
    FileType{"BF16", DType::bf16},      FileType{"F32", DType::f32},
    FileType{"F64", DType::f64},        FileType{"C64", DType::c64},
};

/// Of names, types, metadata and elements, as text for the metadata. Computes the tensors.
std::string checksum_text(const NamedTensors& tensors, const Metadata& metadata);

}  // namespace tn
