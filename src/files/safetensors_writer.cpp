#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/function_ref.h"
#include "base/interrupt.h"
#include "eval/eval.h"
#include "files/safetensors.h"
#include "ir/place.h"
#include "ir/type.h"
#include "mesh/processes.h"
#include "storage/atomic_file.h"
#include "tenon/mesh.h"

namespace tn {
namespace {

constexpr uint64_t kAlignment = 64;  // of the first element, and of those that can be
constexpr size_t kChunk = size_t{4} << 20;

using Sink = FunctionRef<void(const void*, size_t)>;

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail("save: a name or text is not UTF-8: {}", text);
  }
}

std::string_view file_type(const std::string& name, const Tensor& x) {
  for (const FileType& t : kFileTypes)
    if (t.type == x.dtype()) return t.name;
  fail(Hint{"save real(x) and imag(x), or complex64"}, "save: tensor '{}': safetensors has no {}",
       name, *type_of(x));
}

/// The largest power of 2, up to kAlignment, that divides the bytes of a tensor.
uint64_t alignment_of(const Tensor& x) {
  return std::gcd(static_cast<uint64_t>(x.bytes()), kAlignment);
}

/// There are no gaps in the format: so that tensors are aligned nevertheless, those go first that
/// leave the next one aligned.
std::vector<size_t> order_in_file(const NamedTensors& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t i) { return alignment_of(tensors[i].second); });
  return order;
}

void check_names(const NamedTensors& tensors, const Metadata& metadata) {
  std::set<std::string_view> seen;
  for (const auto& [name, x] : tensors) {
    if (name == kMetadata) fail("save: the name '{}' is reserved", kMetadata);
    if (!seen.insert(name).second) fail("save: two tensors are called '{}'", name);
  }
  for (std::string_view own : {kChecksum, kFormat, kOldChecksum})
    if (metadata.contains(std::string(own))) fail("save: the metadata key '{}' is reserved", own);
}

/// A file that is about to be written.
class Layout {
 public:
  Layout(const NamedTensors& tensors, const Metadata& metadata)
      : tensors_(tensors), order_(order_in_file(tensors)), begins_(tensors.size()) {
    check_names(tensors, metadata);
    for (size_t i : order_) {
      begins_[i] = bytes_;
      bytes_ += static_cast<uint64_t>(tensors[i].second.bytes());
    }
    std::string fields = metadata_text(metadata);
    for (size_t i = 0; i < tensors.size(); ++i) fields += tensor_text(i);
    fields.back() = '}';  // in place of the comma
    size_t length = 8 + 1 + fields.size();
    uint64_t padded = (length + kAlignment - 1) / kAlignment * kAlignment - 8;
    if (padded > kMostHeader)
      fail("save: the header has {} bytes, the maximum is {}", padded, kMostHeader);
    header_.append(reinterpret_cast<const char*>(&padded), sizeof padded);
    header_.append("{").append(fields).resize(8 + padded, ' ');
  }

  uint64_t bytes() const { return header_.size() + bytes_; }
  /// Of the checksum, which is that of the file with zeros in its place.
  size_t place_of_digits() const { return *place_of_checksum(header_); }

  /// With zeros as the checksum. Divided tensors are gathered, so it is done once.
  void write(Sink sink) const {
    sink(header_.data(), header_.size());
    for (size_t i : order_) {
      const Tensor& given = tensors_[i].second;
      Tensor x = mesh::is_spread(given) ? gather(given) : given.to(Device());
      auto* from = static_cast<const char*>(x.data());
      for (auto rest = static_cast<size_t>(x.bytes()); rest > 0;) {
        stop_if_asked();
        size_t part = std::min(rest, kChunk);
        sink(from, part);
        from += part;
        rest -= part;
      }
    }
  }

 private:
  std::string metadata_text(const Metadata& metadata) const {
    std::string fields;
    for (const auto& [name, text] : metadata)
      fields += format("{}:{},", quoted(name), quoted(text));
    return format(R"("{}":{{{}"{}":"{}","{}":"{}"}},)", kMetadata, fields, kFormat, kFormatText,
                  kChecksum, std::string(kDigits, '0'));
  }
  std::string tensor_text(size_t i) const {
    const auto& [name, x] = tensors_[i];
    std::vector<int64_t> sizes;
    sizes.reserve(static_cast<size_t>(x.rank()));
    for (int a = 0; a < x.rank(); ++a) sizes.push_back(x.dim(a));
    uint64_t end = begins_[i] + static_cast<uint64_t>(x.bytes());
    return format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)", quoted(name),
                  file_type(name, x), join(sizes, ","), begins_[i], end);
  }

  const NamedTensors& tensors_;
  std::vector<size_t> order_;     // of the elements
  std::vector<uint64_t> begins_;  // by tensor
  uint64_t bytes_ = 0;            // of all elements
  std::string header_;
};

/// A file that the first process writes for all, where they share tensors. It takes part in the
/// gathers to their end, also if it cannot write, and then all of them fail.
class SharedFile {
 public:
  SharedFile(const std::string& path, uint64_t bytes, bool is_shared)
      : path_(path), is_shared_(is_shared) {
    if (is_shared) patience_.emplace();
    attempt([&] { file_.emplace(path, bytes); });
  }
  void write(const void* data, size_t bytes) {
    attempt([&] { summing_.add(data, bytes), file_->write(data, bytes); });
  }
  void commit(size_t place_of_digits) {
    attempt([&] {
      std::string digits = checksum_text(summing_.finish());
      file_->write_at(place_of_digits, digits.data(), digits.size());
      file_->commit();
    });
    bool is_written = !is_shared_ || mesh::said_by_first(!failure_);
    if (failure_) std::rethrow_exception(failure_);
    if (!is_written) fail("save: worker 0 could not write {}", path_);
  }

 private:
  void attempt(FunctionRef<void()> work) {
    if (failure_ || (is_shared_ && mesh::rank_of_process() > 0)) return;
    try {
      work();
    } catch (...) {
      if (!is_shared_) throw;
      failure_ = std::current_exception();
    }
  }

  std::string path_;
  bool is_shared_;
  std::optional<mesh::WithoutTimeout> patience_;  // a disk may be slow
  std::optional<AtomicFile> file_;
  BlockSumming summing_;
  std::exception_ptr failure_;
};

/// In one run.
void compute(const NamedTensors& tensors) {
  Tensors all;
  for (const auto& [name, x] : tensors) all.push_back(x);
  flush(all);
}

}  // namespace

std::string checksum_text(const Checksum& sum) {
  return format("{:016x}{:016x}", sum.high, sum.low);
}

std::string checksum_text(const std::vector<Checksum>& blocks) {
  return checksum_text(
      checksum({reinterpret_cast<const char*>(blocks.data()), blocks.size() * sizeof(Checksum)}));
}

std::optional<size_t> place_of_checksum(std::string_view header) {
  std::string before = format(R"("{}":")", kChecksum);  // no text in JSON has such quotes
  size_t at = header.find(before);
  if (at == header.npos || at + before.size() + kDigits > header.size()) return {};
  return at + before.size();
}

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata, std::source_location at) {
  LocScope scope(at);
  HostUnlocked unlocked;
  compute(tensors);
  Layout layout(tensors, metadata);
  auto is_spread = [](const auto& named) { return mesh::is_spread(named.second); };
  SharedFile file(path, layout.bytes(), std::ranges::any_of(tensors, is_spread));
  layout.write([&](const void* data, size_t bytes) { file.write(data, bytes); });
  file.commit(layout.place_of_digits());
}

std::string safetensors_bytes(const NamedTensors& tensors, const Metadata& metadata) {
  HostUnlocked unlocked;
  compute(tensors);
  Layout layout(tensors, metadata);
  std::string all;
  all.reserve(layout.bytes());
  BlockSumming summing;
  layout.write([&](const void* data, size_t bytes) {
    summing.add(data, bytes);
    all.append(static_cast<const char*>(data), bytes);
  });
  return all.replace(layout.place_of_digits(), kDigits, checksum_text(summing.finish()));
}

}  // namespace tn
