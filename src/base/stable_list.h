#pragma once
// StableList: a list that grows at its end, whose items never move. Unlike std::deque it takes no
// memory while it is empty, and none to be moved.
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace tn {

template <class T>
class StableList {
 public:
  StableList() = default;
  StableList(StableList&&) noexcept = default;
  StableList& operator=(StableList&&) noexcept = default;
  StableList(const StableList& other) {
    for (size_t i = 0; i < other.size(); ++i) push_back(other[i]);
  }
  StableList& operator=(const StableList& other) { return *this = StableList(other); }

  size_t size() const {
    return chunks_.empty() ? 0 : first_of(chunks_.size() - 1) + chunks_.back().size();
  }
  const T& operator[](size_t i) const {
    auto chunk = static_cast<size_t>(std::bit_width(i / kFirst + 1)) - 1;
    return chunks_[chunk][i - first_of(chunk)];
  }
  T& operator[](size_t i) { return const_cast<T&>(std::as_const(*this)[i]); }
  void push_back(T item) {
    if (size() == first_of(chunks_.size())) {
      std::vector<T> chunk;
      chunk.reserve(kFirst << chunks_.size());
      chunks_.push_back(std::move(chunk));
    }
    chunks_.back().push_back(std::move(item));
  }

 private:
  static constexpr size_t kFirst = 8;  // items of the first chunk; each next one has twice as many
  static size_t first_of(size_t chunk) { return kFirst * ((size_t{1} << chunk) - 1); }
  std::vector<std::vector<T>> chunks_;
};

}  // namespace tn
