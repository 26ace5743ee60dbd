#pragma once
// StackArray: as many elements as a run needs, on the stack when they are few.
#include <cstddef>
#include <memory>
#include <span>

namespace tn {

template <class T, size_t kFew>
class StackArray {
 public:
  /// Elements of built-in types have no value yet.
  explicit StackArray(size_t size) : size_(size) {
    if (size > kFew)
      many_ = std::make_unique_for_overwrite<T[]>(size), data_ = many_.get();
    else
      std::uninitialized_default_construct_n(data_, size);
  }
  ~StackArray() {
    if (!many_) std::destroy_n(data_, size_);
  }
  StackArray(const StackArray&) = delete;

  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  std::span<T> all() { return {data_, size_}; }

 private:
  alignas(T) std::byte few_[kFew * sizeof(T)];
  std::unique_ptr<T[]> many_;
  T* data_ = reinterpret_cast<T*>(few_);
  size_t size_;
};

}  // namespace tn
