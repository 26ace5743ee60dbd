#pragma once
// How long interned types and attributes live.
//
// The first few thousand of each, and types with symbols, live as long as the process. Most
// programs never make more. Later ones are counted and freed when nothing holds them, so that a
// program that keeps meeting new shapes does not keep growing. Nodes hold theirs. Everything else
// refers to them by plain pointers, and follows one rule:
//
//     A type or attributes that `intern`, `infer_types` or a new Graph gave to a thread live until
//     the scope ends that the thread was in. Outside of every scope they live as long as the
//     process.
//
// So code that knows nothing of scopes is right, and keeps what it met. Scopes stand where new
// shapes come by in numbers: around recording an op, computing, making a plan. A plan takes over
// what its scope held. Until something is counted, scopes do nothing: every recorded op enters one.
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "ir/attrs.h"
#include "ir/type.h"

namespace tn {

/// Counts from here on never change: it lives as long as the process.
inline constexpr int32_t kLasting = 1 << 29;
/// Before each of them stand as many bytes, which begin with the number of those who hold it.
inline constexpr size_t kCountBytes = 16;
inline std::atomic<int32_t>& holders_of(const void* interned) {
  auto* at = const_cast<char*>(static_cast<const char*>(interned)) - kCountBytes;
  return *reinterpret_cast<std::atomic<int32_t>*>(at);
}
inline bool is_lasting(const void* interned) {
  return holders_of(interned).load(std::memory_order_relaxed) >= kLasting;
}

/// Of something that is alive; null is nothing.
template <class T>
void hold(const T* interned) {
  if (interned && !is_lasting(interned)) [[unlikely]]
    holders_of(interned).fetch_add(1, std::memory_order_relaxed);
}
/// Makes it live as long as the process.
void make_lasting(const void* interned) noexcept;
void drop_counted(TypeRef type) noexcept;
void drop_counted(const Attrs* attrs) noexcept;
template <class T>
void drop(const T* interned) noexcept {
  if (interned && !is_lasting(interned)) [[unlikely]]
    drop_counted(interned);
}

struct Graph;

/// Holds types and attributes until it is destroyed.
class Held {
 public:
  Held() = default;
  Held(Held&&) = default;
  Held& operator=(Held&& other) noexcept {
    types_.swap(other.types_), attrs_.swap(other.attrs_);
    return *this;
  }
  ~Held() {
    if (!types_.empty() || !attrs_.empty()) drop_all();
  }

  void add(TypeRef type) {
    if (!type || is_lasting(type)) return;
    types_.push_back(type);
    hold(type);
  }
  void add(const Attrs* attrs) {
    if (!attrs || is_lasting(attrs)) return;
    attrs_.push_back(attrs);
    hold(attrs);
  }
  void add(const Graph& graph);
  void make_lasting();

  /// `owner`, with all that is held, until it is gone.
  template <class T>
  std::shared_ptr<T> owned_by(std::shared_ptr<T> owner) && {
    if (types_.empty() && attrs_.empty()) return owner;
    struct Both {
      Held held;
      std::shared_ptr<T> owner;
    };
    T* same = owner.get();
    auto both = std::make_shared<Both>(Both{std::move(*this), std::move(owner)});
    return {std::move(both), same};
  }

 private:
  void drop_all() noexcept;

  std::vector<TypeRef> types_;
  std::vector<const Attrs*> attrs_;
};

/// A type that is held.
class TypeHold {
 public:
  TypeHold(TypeRef type = nullptr) : type_(type) { hold(type_); }
  TypeHold(TypeHold&& other) noexcept : type_(std::exchange(other.type_, nullptr)) {}
  TypeHold& operator=(TypeHold&& other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  ~TypeHold() { drop(type_); }
  const TypeRef& get() const { return type_; }

 private:
  TypeRef type_;
};

/// Where the thread is.
struct InternState {
  Held* held = nullptr;    // null: what is interned lives as long as the process
  bool is_inside = false;  // any scope
};
inline constinit thread_local InternState intern_state;

/// Gives something that is alive to the thread, by the rule above.
template <class T>
void hand_out(const T* interned) {
  if (!interned || is_lasting(interned)) [[likely]]
    return;
  if (intern_state.held)
    intern_state.held->add(interned);
  else
    make_lasting(interned);
}

/// Whether any type or attributes were ever counted.
inline constinit std::atomic<bool> has_counted = false;

/// What this thread interns is held until the end of the scope.
class InternScope {
 public:
  InternScope() : InternScope(has_counted.load(std::memory_order_relaxed)) {}
  ~InternScope() {
    if (opened_) [[unlikely]]
      intern_state = outer_;
  }
  InternScope(const InternScope&) = delete;

  Held held;

 protected:
  explicit InternScope(bool opened) : opened_(opened) {
    if (opened_) [[unlikely]]
      outer_ = std::exchange(intern_state, {&held, true});
  }

 private:
  bool opened_;
  InternState outer_;
};

/// The same, unless the thread is in a scope already: for one that is over soon.
class RecordScope : InternScope {
 public:
  RecordScope()
      : InternScope(has_counted.load(std::memory_order_relaxed) && !intern_state.is_inside) {}
};

/// What this thread interns, and the graphs it makes, live as long as the process: for what is
/// kept.
class LastingScope {
 public:
  LastingScope() : outer_(intern_state) { intern_state = {nullptr, true}; }
  ~LastingScope() { intern_state = outer_; }
  LastingScope(const LastingScope&) = delete;

 private:
  InternState outer_;
};

/// Makes all types and attributes of a graph that is kept live as long as the process.
void make_lasting(const Graph& graph);

struct InternCounts {
  size_t types = 0, attrs = 0;  // that live now
};
/// Whether the next one lives as long as the process, when there are `count`; else it is counted.
bool is_among_first(size_t count);
size_t count_types();
size_t count_attrs();
inline InternCounts intern_counts() { return {count_types(), count_attrs()}; }
/// How many of each live as long as the process because they came first; returns how many did. For
/// tests: what was interned already stays as it is.
size_t set_lasting_count(size_t count);

}  // namespace tn
