#pragma once
// Callback: a copyable value that holds any function of a signature. It is std::function without
// the rest of <functional>, which takes a fifth of the time to compile a small program.
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace tn {

[[noreturn]] void fail_empty_callback();

template <class Signature>
class Callback;

template <class R, class... A>
class Callback<R(A...)> {
 public:
  Callback() = default;
  Callback(std::nullptr_t) {}
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Callback> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, A...>)
  Callback(F&& f) {
    using Held = std::decay_t<F>;
    if constexpr (can_be_empty<F>)
      if (f == nullptr) return;
    if constexpr (is_inline<Held>)
      new (&at_) Held(std::forward<F>(f));
    else
      at_.elsewhere = new Held(std::forward<F>(f));
    kind_ = &kind_of<Held>;
  }
  Callback(const Callback& other) : kind_(other.kind_) {
    if (kind_) kind_->copy(at_, other.at_);
  }
  Callback(Callback&& other) noexcept
      : at_(other.at_), kind_(std::exchange(other.kind_, nullptr)) {}
  Callback& operator=(Callback other) noexcept {
    std::swap(at_, other.at_);
    std::swap(kind_, other.kind_);
    return *this;
  }
  ~Callback() {
    if (kind_) kind_->destroy(at_);
  }

  R operator()(A... args) const {
    if (!kind_) fail_empty_callback();
    return kind_->call(at_, std::forward<A>(args)...);
  }
  explicit operator bool() const { return kind_ != nullptr; }
  friend bool operator==(const Callback& f, std::nullptr_t) { return !f; }

 private:
  /// Pointers and other holders of functions: an empty one makes an empty callback.
  template <class F>
  static constexpr bool can_be_empty =
      !std::is_function_v<std::remove_reference_t<F>> && requires(std::decay_t<F>& f) {
        f = nullptr;
        static_cast<bool>(f == nullptr);
      };
  /// Small trivially relocatable functions are stored in place.
  union Storage {
    void* elsewhere = nullptr;
    std::byte here[2 * sizeof(void*)];
  };
  struct Kind {
    R (*call)(Storage& at, A&&... args);
    void (*copy)(Storage& to, const Storage& from);
    void (*destroy)(Storage& at);
  };
  template <class F>
  static constexpr bool is_inline =
      sizeof(F) <= sizeof(Storage) && alignof(F) <= alignof(Storage) &&
      std::is_trivially_copyable_v<F>;
  template <class F>
  static F& held(const Storage& at) {
    if constexpr (is_inline<F>)
      return *std::launder(reinterpret_cast<F*>(const_cast<std::byte*>(at.here)));
    else
      return *static_cast<F*>(at.elsewhere);
  }
  template <class F>
  static constexpr Kind kind_of = {[](Storage& at, A&&... args) -> R {
                                     if constexpr (std::is_void_v<R>)
                                       held<F>(at)(std::forward<A>(args)...);
                                     else
                                       return held<F>(at)(std::forward<A>(args)...);
                                   },
                                   [](Storage& to, const Storage& from) {
                                     if constexpr (is_inline<F>)
                                       to = from;
                                     else
                                       to.elsewhere = new F(held<F>(from));
                                   },
                                   [](Storage& at) {
                                     if constexpr (!is_inline<F>)
                                       delete static_cast<F*>(at.elsewhere);
                                   }};

  mutable Storage at_;  // a function may change itself when it is called, as std::function allows
  const Kind* kind_ = nullptr;
};

}  // namespace tn
