#pragma once
// StackArray: as many elements as a run needs, on the stack when they are few.
#include <span>
#include <vector>

namespace tn {

template <class T, size_t kFew>
class StackArray {
 public:
  explicit StackArray(size_t size)
      : many_(size > kFew ? size : 0), data_(size > kFew ? many_.data() : few_), size_(size) {}
  StackArray(const StackArray&) = delete;

  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  std::span<T> all() { return {data_, size_}; }

 private:
  T few_[kFew];
  std::vector<T> many_;
  T* data_;
  size_t size_;
};

}  // namespace tn
