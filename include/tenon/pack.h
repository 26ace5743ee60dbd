#pragma once
// Values of several types, and a value that comes later: what typed functions need of std::tuple
// and std::optional, at a fraction of the time that these take to compile.
#include <cstddef>
#include <new>
#include <utility>

namespace tn::typed {

template <size_t I, class T>
struct PackAt {
  T value;
};
/// Element I of a pack.
template <size_t I, class T>
T& at(PackAt<I, T>& element) {
  return element.value;
}

struct FromValues {};

template <class Indices, class... A>
struct PackOf;
template <size_t... I, class... A>
struct PackOf<std::index_sequence<I...>, A...> : PackAt<I, A>... {
  template <class... G>
  explicit PackOf(FromValues, G&&... values)
      : PackAt<I, A>{static_cast<A>(std::forward<G>(values))}... {}
  /// `use(elements...)`
  template <class F>
  decltype(auto) with(F&& use) {
    return use(static_cast<PackAt<I, A>&>(*this).value...);
  }
};
template <class... A>
using Pack = PackOf<std::index_sequence_for<A...>, A...>;

/// A value that is made later.
template <class T>
class Later {
 public:
  Later() {}
  ~Later() { reset(); }
  Later(const Later&) = delete;
  /// `make()` is the value.
  template <class F>
  void set(F&& make) {
    reset();
    new (&value_) T(make());
    is_set_ = true;
  }
  T& operator*() { return value_; }
  T* operator->() { return &value_; }

 private:
  void reset() {
    if (std::exchange(is_set_, false)) value_.~T();
  }
  union {
    T value_;
  };
  bool is_set_ = false;
};

}  // namespace tn::typed
