// Files of safetensors come from strangers: every number in them is checked before it is used.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "eval/eval.h"
#include "files/safetensors.h"
#include "ir/interned.h"
#include "ir/node.h"
#include "ir/place.h"
#include "ir/type.h"
#include "runtime/device.h"
#include "storage/input_file.h"

namespace tn {
namespace {

constexpr size_t kMostShown = 100;  // of a name in a message

std::string shown(const std::string& name) {
  return format("'{}{}'", name.substr(0, kMostShown), name.size() > kMostShown ? "…" : "");
}

/// What the header says of a tensor.
struct Entry {
  std::string name;
  std::optional<DType> type;
  std::optional<std::vector<int64_t>> shape, offsets;

  uint64_t begin() const { return static_cast<uint64_t>((*offsets)[0]); }
  uint64_t end() const { return static_cast<uint64_t>((*offsets)[1]); }
};

/// Takes the JSON of a header piece by piece, so that nothing is built but what is wanted, and
/// names that occur twice are seen.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const InputFile& file) : file_(file) {}

  std::vector<Entry> entries;
  Metadata metadata;

  bool start_object(size_t) override {
    if (place_ == Place::outside)
      place_ = Place::top;
    else if (place_ == Place::top)
      place_ = entry_.name == kMetadata ? Place::metadata : Place::tensor;
    else
      unexpected("an object");
    return true;
  }
  bool end_object() override {
    if (place_ == Place::tensor) finish_entry();
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }
  bool key(std::string& text) override {
    if (place_ == Place::top) {
      if (!names_.insert(text).second) file_.damaged("it has {} twice", shown(text));
      entry_ = {.name = std::move(text), .type = {}, .shape = {}, .offsets = {}};
      return true;
    }
    key_ = std::move(text);
    if (place_ == Place::metadata && metadata.contains(key_))
      file_.damaged("its metadata has {} twice", shown(key_));
    return true;
  }
  bool string(std::string& text) override {
    if (place_ == Place::metadata)
      metadata.emplace(key_, std::move(text));
    else if (place_ == Place::tensor && key_ == "dtype" && !entry_.type)
      entry_.type = type_called(text);
    else
      unexpected("a text");
    return true;
  }
  bool start_array(size_t) override {
    list_ = place_ != Place::tensor  ? nullptr
            : key_ == "shape"        ? &entry_.shape
            : key_ == "data_offsets" ? &entry_.offsets
                                     : nullptr;
    if (!list_ || *list_) unexpected("a list");
    list_->emplace();
    place_ = Place::list;
    return true;
  }
  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }
  bool number_unsigned(uint64_t number) override {
    if (place_ != Place::list || number > INT64_MAX) unexpected("a number");
    if ((*list_)->size() == kMaxRank) damaged("a list of more than {} numbers", kMaxRank);
    (*list_)->push_back(static_cast<int64_t>(number));
    return true;
  }
  bool number_integer(int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { unexpected("a fraction"); }
  bool boolean(bool) override { unexpected("a truth value"); }
  bool null() override { unexpected("null"); }
  bool binary(nlohmann::json::binary_t&) override { unexpected("bytes"); }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) override {
    file_.damaged("its header is not valid JSON at byte {}", at);
  }

 private:
  enum class Place { outside, top, metadata, tensor, list };

  template <class... A>
  [[noreturn]] void damaged(ErrorText<A...> text, A&&... args) const {
    std::string what = format(text.text, std::forward<A>(args)...);
    file_.damaged_at(text.site, format("{}: {}", shown(entry_.name), what));
  }
  [[noreturn]] void unexpected(const char* what) const {
    if (place_ == Place::top) damaged("{}, not an object", what);
    damaged("{} for {}", what, shown(key_));
  }

  DType type_called(const std::string& name) const {
    for (const FileType& t : kFileTypes)
      if (t.name == name) return t.type;
    fail(Hint{"convert it to another type with the library that wrote it"},
         "load: {}: tensor {} has elements of type {}, which is not supported", file_.name(),
         shown(entry_.name), shown(name));
  }

  void finish_entry() {
    if (!entry_.type) damaged("no 'dtype'");
    if (!entry_.shape) damaged("no 'shape'");
    if (!entry_.offsets || entry_.offsets->size() != 2)
      damaged("'data_offsets' are not two numbers");
    if (entry_.begin() > entry_.end())
      damaged("it ends at byte {}, before it begins at byte {}", entry_.end(), entry_.begin());
    int64_t bytes = size_of(*entry_.type);
    bool fits = true;
    for (int64_t size : *entry_.shape) fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
    if (std::ranges::count(*entry_.shape, 0) > 0) bytes = 0, fits = true;
    if (!fits || static_cast<uint64_t>(bytes) != entry_.end() - entry_.begin())
      damaged("{} bytes for {}[{}]", entry_.end() - entry_.begin(), name_of(*entry_.type),
              join(*entry_.shape, ", "));
    entries.push_back(std::move(entry_));
  }

  const InputFile& file_;
  Place place_ = Place::outside;
  Entry entry_;
  std::string key_;  // in the entry or the metadata
  std::optional<std::vector<int64_t>>* list_ = nullptr;
  std::unordered_set<std::string> names_;
};

/// The format allows no gaps, so that a file has one meaning and hides nothing.
void check_places(const InputFile& file, const std::vector<Entry>& entries, uint64_t bytes) {
  std::vector<const Entry*> order;
  for (const Entry& e : entries) order.push_back(&e);
  std::ranges::sort(order, {}, [](const Entry* e) { return std::pair(e->begin(), e->end()); });
  uint64_t end = 0;
  for (const Entry* e : order) {
    if (e->end() > bytes)
      file.damaged("it is cut off: {} ends at byte {} of {}", shown(e->name), e->end(), bytes);
    if (e->begin() < end) file.damaged("{} overlaps with another tensor", shown(e->name));
    if (e->begin() > end)
      file.damaged("the bytes before {} belong to no tensor: {} to {}", shown(e->name), end,
                   e->begin());
    end = e->end();
  }
  if (end != bytes) file.damaged("it has {} bytes of elements, expected {}", bytes, end);
}

/// The library computes with 0 and 1.
void check_truth_values(const InputFile& file, const std::string& name, const Tensor& x) {
  auto* at = static_cast<const uint8_t*>(x.data());
  if (std::any_of(at, at + x.bytes(), [](uint8_t byte) { return byte > 1; }))
    file.damaged("{}: boolean elements other than 0 and 1", shown(name));
}

Tensor tensor_in(const InputFile& file, uint64_t data, const Entry& e) {
  RecordScope scope;
  TypeRef type = intern(*e.type, Shape(*e.shape));
  uint64_t place = data + e.begin(), bytes = e.end() - e.begin();
  if (bytes > 0 && place % static_cast<uint64_t>(size_of(*e.type)) == 0)
    return make_data(file.memory(place, bytes), 0, type);
  BufferRef copied = allocate(bytes);  // files of others need not be aligned
  file.copy(place, copied.data(), bytes);
  return make_data(std::move(copied), 0, type);
}

HeaderReader header_of(const InputFile& file, uint64_t& data) {
  uint64_t length = 0;
  if (file.bytes() < sizeof length) file.damaged("it has {} bytes", file.bytes());
  file.copy(0, &length, sizeof length);
  if (length > kMostHeader || length < 2)
    fail("load: {} is not a safetensors file: invalid header length", file.name());
  if (length > file.bytes() - sizeof length)
    file.damaged("it is cut off: its header has {} of {} bytes", file.bytes() - sizeof length,
                 length);
  data = sizeof length + length;
  std::string text = file.copy(sizeof length, length);
  if (text[0] != '{')
    fail("load: {} is not a safetensors file: its header is not a JSON object", file.name());
  HeaderReader header(file);
  nlohmann::json::sax_parse(text, &header);
  return header;
}

[[noreturn]] void fail_checksum(const InputFile& file) {
  fail(Hint{kChecksumHint}, "load: {} is damaged: its checksum does not match", file.name());
}

/// Compares the checksum of the whole file with `digits`.
void check_sum(const InputFile& file, uint64_t data, const std::string& digits) {
  std::optional<size_t> place = place_of_checksum(file.copy(0, data));
  if (!place || digits.size() != kDigits) fail_checksum(file);
  BufferRef all = file.memory(0, file.bytes());
  std::string_view bytes(all.data<char>(), file.bytes());
  std::vector<Checksum> sums = block_sums(bytes);
  size_t first = *place / kSumBlock, last = (*place + kDigits - 1) / kSumBlock;
  for (size_t block = first; block <= last; ++block) {
    std::string copied(bytes.substr(block * kSumBlock, kSumBlock));
    for (size_t at = *place; at < *place + kDigits; ++at)
      if (at / kSumBlock == block) copied[at % kSumBlock] = '0';
    sums[block] = checksum(copied);
  }
  if (digits != checksum_text(sums)) fail_checksum(file);
}

/// Compares the checksum of names, types, metadata and elements, which older files have.
void check_old_sum(const InputFile& file, uint64_t data, const HeaderReader& header,
                   const std::string& digits) {
  Summing summing;
  auto add = [&](std::string_view text) {
    uint64_t size = text.size();
    summing.add(&size, sizeof size);
    summing.add(text.data(), text.size());
  };
  for (const auto& [name, text] : header.metadata) add(name), add(text);
  for (const Entry& e : header.entries) {
    add(e.name), add(format("{}", Type{*e.type, Shape(*e.shape)}));
    uint64_t bytes = e.end() - e.begin();
    if (bytes > 0) summing.add(file.memory(data + e.begin(), bytes).data(), bytes);
  }
  if (digits != checksum_text(summing.sum())) fail_checksum(file);
}

/// Takes the checksum out of the metadata, and compares it unless `verify` says not to.
void verify_file(const InputFile& file, uint64_t data, HeaderReader& header,
                 std::optional<bool> verify) {
  auto take = [&](std::string_view name) { return header.metadata.extract(std::string(name)); };
  auto digits = take(kChecksum), format = take(kFormat), old = take(kOldChecksum);
  if (!digits != !format || (format && format.mapped() != kFormatText)) fail_checksum(file);
  if (!digits && !old && verify == true)
    fail(Hint{"files that this library wrote have one; load it without verify"},
         "load: {} has no checksum to verify", file.name());
  if (verify == false) return;
  if (digits) return check_sum(file, data, digits.mapped());
  if (old) check_old_sum(file, data, header, old.mapped());
}

TensorFile read(InputFile file, std::optional<bool> verify) {
  HostUnlocked unlocked;
  uint64_t data = 0;
  HeaderReader header = header_of(file, data);
  check_places(file, header.entries, file.bytes() - data);
  file.map();
  verify_file(file, data, header, verify);
  TensorFile made{.tensors = {}, .metadata = std::move(header.metadata)};
  for (const Entry& e : header.entries) {
    made.tensors.emplace_back(e.name, tensor_in(file, data, e));
    Tensor& x = made.tensors.back().second;
    if (e.type == DType::b1) check_truth_values(file, e.name, x);
    x = x.to(current_device());
  }
  return made;
}

}  // namespace

TensorFile load_safetensors(const std::string& path, std::optional<bool> verify,
                            std::source_location at) {
  LocScope scope(at);
  return read(InputFile::open(path), verify);
}

TensorFile parse_safetensors(std::string_view bytes, const std::string& name,
                             std::optional<bool> verify) {
  return read(InputFile::over(bytes, name), verify);
}

}  // namespace tn
