#pragma once
// SharedPtr: std::shared_ptr without the rest of <memory>, which takes a tenth of the time to
// compile a small program.
#include <cstddef>
#include <type_traits>
#include <utility>

namespace tn {

[[noreturn]] void fail_moved_from();

/// How many pointers share an object, and how it is destroyed.
struct SharedOwner {
  long users;
  void (*destroy)(SharedOwner*);
};

/// A pointer to an object that lives until its last pointer is gone. Threads may hold copies.
template <class T>
class SharedPtr {
 public:
  SharedPtr() = default;
  SharedPtr(std::nullptr_t) {}
  SharedPtr(const SharedPtr& other) noexcept : object_(other.object_), owner_(other.owner_) {
    if (owner_) __atomic_add_fetch(&owner_->users, 1, __ATOMIC_RELAXED);
  }
  SharedPtr(SharedPtr&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)),
        owner_(std::exchange(other.owner_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  SharedPtr(SharedPtr<U> other) noexcept
      : object_(std::exchange(other.object_, nullptr)),
        owner_(std::exchange(other.owner_, nullptr)) {}
  SharedPtr& operator=(SharedPtr other) noexcept {
    std::swap(object_, other.object_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~SharedPtr() {
    if (owner_ && __atomic_sub_fetch(&owner_->users, 1, __ATOMIC_ACQ_REL) == 0)
      owner_->destroy(owner_);
  }

  /// A new object.
  template <class... A>
  static SharedPtr make(A&&... args) {
    struct Holder : SharedOwner {
      std::remove_const_t<T> object;
      explicit Holder(A&&... given)
          : SharedOwner{1, [](SharedOwner* self) { delete static_cast<Holder*>(self); }},
            object(std::forward<A>(given)...) {}
    };
    auto* holder = new Holder(std::forward<A>(args)...);
    SharedPtr made;
    made.object_ = &holder->object, made.owner_ = holder;
    return made;
  }

  T* get() const { return object_; }
  T* operator->() const {
    if (!object_) [[unlikely]]
      fail_moved_from();
    return object_;
  }
  std::add_lvalue_reference_t<T> operator*() const { return *operator->(); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  template <class U>
  friend class SharedPtr;
  T* object_ = nullptr;
  SharedOwner* owner_ = nullptr;
};

}  // namespace tn
