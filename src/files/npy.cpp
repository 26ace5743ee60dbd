#include "files/npy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/place.h"
#include "runtime/device.h"
#include "storage/atomic_file.h"
#include "storage/input_file.h"
#include "tenon/ops.h"

namespace tn {
namespace {

// The file: magic, version, length of the header, header, elements. The header is the text of a
// Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;

struct TypeName {
  std::string_view name;  // without the order of bytes
  DType type;
};
constexpr std::array kTypes = {
    TypeName{"b1", DType::b1},     TypeName{"i1", DType::i8},    TypeName{"i2", DType::i16},
    TypeName{"i4", DType::i32},    TypeName{"i8", DType::i64},   TypeName{"u1", DType::u8},
    TypeName{"u2", DType::u16},    TypeName{"u4", DType::u32},   TypeName{"u8", DType::u64},
    TypeName{"f2", DType::f16},    TypeName{"f4", DType::f32},   TypeName{"f8", DType::f64},
    TypeName{"c8", DType::c64},    TypeName{"c16", DType::c128}, TypeName{"V2", DType::bf16},
    TypeName{"V1", DType::f8e4m3},
};

struct Header {
  DType dtype = DType::f32;
  bool columns_first = false;  // the first axis runs fastest
  std::vector<int64_t> shape;
};

class NpyHeaderReader {
 public:
  NpyHeaderReader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Header read() { return {dtype(), value("fortran_order").starts_with("True"), shape()}; }

 private:
  [[noreturn]] void damaged(std::string_view what, int source_line = __builtin_LINE()) const {
    throw_user(ErrorSite::here().at(source_line), Fault::value,
               format("{}: not a readable .npy file: {}", path_, what), {});
  }

  /// What follows "'key':".
  std::string_view value(std::string_view key) const {
    size_t at = text_.find(format("'{}':", key));
    if (at == text_.npos) damaged(format("its header has no {}", key));
    at = text_.find_first_not_of(' ', at + key.size() + 3);
    return at == text_.npos ? "" : text_.substr(at);
  }

  DType dtype() const {
    std::string_view text = value("descr");
    size_t end = text.find('\'', 1);
    if (!text.starts_with('\'') || end == text.npos || end < 3) damaged("its elements are records");
    std::string_view descr = text.substr(1, end - 1);
    if (descr[0] == '>') damaged(format("its elements are big-endian: {}", descr));
    for (const TypeName& t : kTypes)
      if (t.name == descr.substr(1)) return t.type;
    damaged(format("elements of type {}", descr));
  }

  std::vector<int64_t> shape() const {
    std::string_view text = value("shape");
    size_t end = text.find(')');
    if (!text.starts_with('(') || end == text.npos) damaged("its header has no shape");
    std::vector<int64_t> sizes;
    for (const char *at = text.data() + 1, *last = text.data() + end; at != last;) {
      if (*at == ' ' || *at == ',') {
        ++at;
        continue;
      }
      int64_t size = 0;
      auto [next, error] = std::from_chars(at, last, size);
      if (error != std::errc() || size < 0) damaged("its shape is invalid");
      sizes.push_back(size);
      at = next;
    }
    if (sizes.size() > kMaxRank)
      damaged(format("{} axes, and tensors have at most {}", sizes.size(), kMaxRank));
    return sizes;
  }

  const std::string& path_;
  std::string_view text_;
};

/// Nothing when it is more than can be counted.
std::optional<size_t> bytes_of(const Header& header) {
  int64_t bytes = size_of(header.dtype);
  for (int64_t size : header.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return static_cast<size_t>(bytes);
}

std::string header_text(const Tensor& x) {
  std::string name;
  for (const TypeName& t : kTypes)
    if (t.type == x.dtype()) name = t.name;
  if (name.empty()) name = "V1";  // the other float8
  char order = size_of(x.dtype()) == 1 || name[0] == 'V' ? '|' : '<';
  std::string shape;
  for (int a = 0; a < x.rank(); ++a)
    shape += format("{},{}", x.dim(a), a + 1 < x.rank() ? " " : "");
  if (x.rank() > 1) shape.pop_back();  // only (3,) needs the last comma
  return format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order, name, shape);
}

}  // namespace

Tensor load_npy(const std::string& path, std::source_location at) {
  LocScope scope(at);
  InputFile file = InputFile::open(path);
  return parse_npy(file.copy(0, file.bytes()), path).to(current_device());
}

void save_npy(const std::string& path, const Tensor& x, std::source_location at) {
  LocScope scope(at);
  std::string bytes = npy_bytes(x);
  AtomicFile file(path, bytes.size());
  file.write(bytes.data(), bytes.size());
  file.commit();
}

Tensor parse_npy(std::string_view rest, const std::string& path) {
  auto must = [&](bool holds, std::string_view otherwise) {
    if (!holds) fail("{}: not a readable .npy file: {}", path, otherwise);
  };
  must(rest.starts_with(kMagic), "wrong magic number");
  must(rest.size() >= 12, "it ends too early");
  size_t wide = rest[6] == 1 ? 2 : 4;
  must(rest[6] >= 1 && rest[6] <= 3, format("version {}", static_cast<int>(rest[6])));
  uint32_t length = 0;
  std::memcpy(&length, rest.data() + 8, wide);
  rest.remove_prefix(8 + wide);
  must(length <= rest.size(), "it ends too early");
  Header header = NpyHeaderReader(path, rest.substr(0, length)).read();
  rest.remove_prefix(length);
  std::optional<size_t> wanted = bytes_of(header);
  must(wanted && *wanted == rest.size(),
       format("it has {} bytes of elements, expected {}", rest.size(),
              wanted ? format("{}", *wanted) : "more than can be counted"));
  if (header.columns_first) std::ranges::reverse(header.shape);
  Tensor x = from_bytes(rest.data(), header.dtype, Shape(header.shape));
  return header.columns_first ? permute_dims(x) : x;
}

std::string npy_bytes(const Tensor& given) {
  Tensor x = given.to(Device());
  std::string header = header_text(x);
  size_t before = kMagic.size() + 4;
  header.resize((before + header.size() + kAlignment) / kAlignment * kAlignment - before - 1, ' ');
  header += '\n';
  auto length = static_cast<uint16_t>(header.size());
  std::string bytes(kMagic);
  bytes += std::string_view("\1\0", 2);
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += header;
  bytes.append(static_cast<const char*>(x.data()), static_cast<size_t>(x.bytes()));
  return bytes;
}

}  // namespace tn
