// NumPy's npz: a zip archive of npy files, stored without compression.
#include <array>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "files/npy.h"
#include "ir/place.h"
#include "runtime/device.h"
#include "storage/atomic_file.h"
#include "storage/input_file.h"

namespace tn {
namespace {

// The records of the format, little endian and without padding. `sizes` and `name` stand for what
// local and central headers share.
constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22;
constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max() - 1;

uint32_t crc32(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xedb88320 ^ (c >> 1) : c >> 1;
      made[i] = c;
    }
    return made;
  }();
  uint32_t sum = ~0U;
  for (char c : bytes) sum = table[(sum ^ static_cast<uint8_t>(c)) & 255] ^ (sum >> 8);
  return ~sum;
}

template <class T>
void put(std::string& to, std::type_identity_t<T> value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// What the local and the central header of an entry share: from the version to the name's length.
std::string entry_text(std::string_view name, std::string_view bytes) {
  std::string text;
  put<uint16_t>(text, 20), put<uint16_t>(text, 0x0800);  // version 2.0, names are UTF-8
  put<uint16_t>(text, 0);                                // stored
  put<uint16_t>(text, 0), put<uint16_t>(text, 0x21);     // 1 January 1980: the same bytes each time
  put<uint32_t>(text, crc32(bytes));
  put<uint32_t>(text, static_cast<uint32_t>(bytes.size()));
  put<uint32_t>(text, static_cast<uint32_t>(bytes.size()));
  put<uint16_t>(text, static_cast<uint16_t>(name.size())), put<uint16_t>(text, 0);
  return text;
}

class Archive {
 public:
  explicit Archive(const std::string& path)
      : path_(path), file_(InputFile::open(path)), bytes_(file_.copy(0, file_.bytes())) {}

  NamedTensors read() {
    size_t end = end_record();
    auto entries = get<uint16_t>(end + 10);
    size_t at = get<uint32_t>(end + 16);
    NamedTensors tensors;
    for (int i = 0; i < entries; ++i) {
      if (get<uint32_t>(at) != kCentral) damaged("its list of files");
      auto name_bytes = get<uint16_t>(at + 28);
      std::string name(part(at + kCentralBytes, name_bytes));
      std::string_view bytes = contents(at, name);
      at += kCentralBytes + name_bytes + get<uint16_t>(at + 30) + get<uint16_t>(at + 32);
      Tensor x = parse_npy(bytes, path_ + ":" + name).to(current_device());
      if (name.ends_with(".npy")) name.resize(name.size() - 4);
      tensors.emplace_back(std::move(name), std::move(x));
    }
    return tensors;
  }

 private:
  [[noreturn]] void damaged(std::string_view what, int source_line = __builtin_LINE()) const {
    throw_user(ErrorSite::here().at(source_line), Fault::value,
               format("{}: not a readable .npz file: {}", path_, what), {});
  }
  std::string_view part(size_t place, size_t length) const {
    if (place > bytes_.size() || length > bytes_.size() - place) damaged("it ends too early");
    return std::string_view(bytes_).substr(place, length);
  }
  template <class T>
  T get(size_t place) const {
    T value;
    std::memcpy(&value, part(place, sizeof value).data(), sizeof value);
    return value;
  }

  /// The end record is the last one of the file; a comment may follow.
  size_t end_record() const {
    if (bytes_.size() < kEndBytes) damaged("it ends too early");
    std::string mark;
    put<uint32_t>(mark, kEnd);
    size_t at = bytes_.rfind(mark, bytes_.size() - kEndBytes);
    if (at == bytes_.npos) damaged("it is not a zip archive");
    return at;
  }

  std::string_view contents(size_t central, const std::string& name) const {
    if (get<uint16_t>(central + 10) != 0)
      fail(Hint{"write it with numpy.savez, which does not compress"},
           "{}: {} is compressed, which is not supported", path_, name);
    size_t length = get<uint32_t>(central + 24), local = get<uint32_t>(central + 42);
    if (get<uint32_t>(local) != kLocal) damaged("invalid local file header");
    size_t first = local + kLocalBytes + get<uint16_t>(local + 26) + get<uint16_t>(local + 28);
    std::string_view bytes = part(first, length);
    if (crc32(bytes) != get<uint32_t>(central + 16))
      damaged(format("the checksum of {} differs", name));
    return bytes;
  }

  const std::string& path_;
  InputFile file_;
  std::string bytes_;
};

}  // namespace

NamedTensors load_npz(const std::string& path, std::source_location at) {
  LocScope scope(at);
  return Archive(path).read();
}

void save_npz(const std::string& path, const NamedTensors& tensors, std::source_location at) {
  LocScope scope(at);
  std::string all, central;
  for (const auto& [name, x] : tensors) {
    std::string bytes = npy_bytes(x), file = name + ".npy", entry = entry_text(file, bytes);
    uint64_t place = all.size();
    if (place + bytes.size() > kMost || file.size() > 0xffff || tensors.size() >= 0xffff)
      unsupported({"save_safetensors writes files of any size"},
                  "save_npz: {} has more than 4 GiB, or too many or too long names", path);
    put<uint32_t>(all, kLocal);
    all.append(entry).append(file).append(bytes);
    put<uint32_t>(central, kCentral), put<uint16_t>(central, 20);
    central.append(entry);
    central.append(10, '\0');  // no comment, disk 0, no attributes
    put<uint32_t>(central, static_cast<uint32_t>(place));
    central.append(file);
  }
  auto count = static_cast<uint16_t>(tensors.size());
  auto place = static_cast<uint32_t>(all.size());
  all.append(central);
  put<uint32_t>(all, kEnd), put<uint32_t>(all, 0);
  put<uint16_t>(all, count), put<uint16_t>(all, count);
  put<uint32_t>(all, static_cast<uint32_t>(central.size())), put<uint32_t>(all, place);
  put<uint16_t>(all, 0);
  AtomicFile file(path, all.size());
  file.write(all.data(), all.size());
  file.commit();
}

}  // namespace tn
