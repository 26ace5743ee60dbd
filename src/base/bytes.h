#pragma once
// Little-endian serialisation of numbers, texts and lists. Input may be damaged or malicious: every
// length is checked before anything is read or allocated.
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace tn {

static_assert(std::endian::native == std::endian::little,
              "bytes are written as they lie in memory");

template <class T>
concept PlainNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class ByteWriter {
 public:
  std::string bytes;

  template <PlainNumber T>
  void operator()(const T& number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void operator()(std::string_view text) {
    (*this)(static_cast<uint64_t>(text.size()));
    bytes.append(text);
  }
  void operator()(const std::string& text) { (*this)(std::string_view(text)); }
  /// Elements that are no numbers or texts are written by `each(*this, element)`.
  template <class T, class Each>
  void list(const std::vector<T>& elements, Each each) {
    (*this)(static_cast<uint64_t>(elements.size()));
    for (const T& element : elements) each(*this, element);
  }
  template <class T>
  void operator()(const std::vector<T>& elements) {
    list(elements, [](ByteWriter& w, const T& element) { w(element); });
  }
};

/// Reads what ByteWriter wrote, in the same order; fails with a UserError that says what is wrong.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <PlainNumber T>
  void operator()(T& number) {
    std::string_view taken = take(sizeof number);
    if constexpr (std::is_same_v<T, bool>) {
      must(static_cast<uint8_t>(taken[0]) <= 1, "a flag is neither 0 nor 1");
      number = taken[0] != 0;
    } else {
      std::memcpy(&number, taken.data(), sizeof number);
    }
  }
  void operator()(std::string& text) { text = take(count()); }
  void operator()(std::string_view& text) { text = take(count()); }
  /// `each(*this, element)` reads one, of a byte or more.
  template <class T, class Each>
  void list(std::vector<T>& elements, Each each) {
    uint64_t size = count();
    elements.clear();
    for (uint64_t i = 0; i < size; ++i) each(*this, elements.emplace_back());
  }
  template <class T>
  void operator()(std::vector<T>& elements) {
    list(elements, [](ByteReader& r, T& element) { r(element); });
  }
  template <class T>
  T read() {
    T value{};
    (*this)(value);
    return value;
  }

  bool at_end() const { return rest_.empty(); }
  static void must(bool holds, std::string_view otherwise) {
    if (!holds) [[unlikely]]
      fail("damaged: {}", otherwise);
  }

 private:
  std::string_view take(uint64_t size) {
    must(size <= rest_.size(), "it ends too early");
    std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  /// Of the elements that follow, each a byte or more.
  uint64_t count() {
    auto size = read<uint64_t>();
    must(size <= rest_.size(), "a list is longer than what is left");
    return size;
  }
  std::string_view rest_;
};

}  // namespace tn
