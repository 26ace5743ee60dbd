#pragma once
// How long interned types, attributes and bodies live.
//
// The first few thousand of each, and types with symbols, live as long as the process. Most
// programs never make more. Later ones are counted and freed when nothing holds them, so that a
// program that keeps meeting new shapes does not keep growing. Nodes hold theirs. Everything else
// refers to them by plain pointers, and follows one rule:
//
//     A type, attributes or a body that `intern`, `infer_types`, `derived` or a new Graph gave to a
//     thread live until the scope ends that the thread was in. Outside of every scope they live as
//     long as the process.
//
// Attributes hold the bodies among their fields; a body holds the types and attributes of its graph
// and the bodies derived from it.
//
// So code that knows nothing of scopes is right, and keeps what it met. Scopes stand where new
// shapes come by in numbers: around recording an op, computing, making a plan. A plan takes
// ownership of what its scope held. Until something is counted, scopes do nothing: every recorded
// op enters one.
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ir/attrs.h"
#include "ir/type.h"

namespace tn {

/// Counts from here on never change: it lives as long as the process.
inline constexpr int32_t kLasting = 1 << 29;
/// Bytes of the header before each object, which begins with its reference count.
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
void drop_counted(const Body* body) noexcept;
template <class T>
void drop(const T* interned) noexcept {
  if (interned && !is_lasting(interned)) [[unlikely]]
    drop_counted(interned);
}

/// Lets go of one hold. True if it was the last: then it has left its table, and the caller deletes
/// it. `intern` takes references under the lock, so no other thread finds it in between.
template <class T>
bool drop_last(const T* interned, std::mutex& mutex, auto& table) {
  std::atomic<int32_t>& holders = holders_of(interned);
  int32_t count = holders.load(std::memory_order_relaxed);
  while (count > 1)
    if (holders.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) return false;
  std::lock_guard lock(mutex);
  if (holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  table.erase(interned);
  return true;
}

/// Holds types, attributes and bodies until it is destroyed.
class Held {
 public:
  Held() = default;
  Held(Held&&) = default;
  Held& operator=(Held&& other) noexcept {
    types_.swap(other.types_), attrs_.swap(other.attrs_), bodies_.swap(other.bodies_);
    return *this;
  }
  ~Held() {
    if (!types_.empty() || !attrs_.empty() || !bodies_.empty()) drop_all();
  }

  void add(TypeRef type) { add(type, types_); }
  void add(const Attrs* attrs) { add(attrs, attrs_); }
  void add(const Body* body) { add(body, bodies_); }
  void add(const Graph& graph);
  void make_lasting();

  /// `owner`, with all that is held, until it is gone.
  template <class T>
  std::shared_ptr<T> owned_by(std::shared_ptr<T> owner) && {
    if (types_.empty() && attrs_.empty() && bodies_.empty()) return owner;
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
  template <class T>
  static void add(const T* interned, std::vector<const T*>& to) {
    if (!interned || is_lasting(interned)) return;
    to.push_back(interned);
    hold(interned);
  }

  std::vector<TypeRef> types_;
  std::vector<const Attrs*> attrs_;
  std::vector<const Body*> bodies_;
};

/// One that is held.
template <class T>
class Hold {
 public:
  Hold(const T* interned = nullptr) : interned_(interned) { hold(interned_); }
  Hold(Hold&& other) noexcept : interned_(std::exchange(other.interned_, nullptr)) {}
  Hold& operator=(Hold&& other) noexcept {
    std::swap(interned_, other.interned_);
    return *this;
  }
  ~Hold() { drop(interned_); }
  const T* const& get() const { return interned_; }

 private:
  const T* interned_;
};
using TypeHold = Hold<InternedType>;

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

/// Whether the next one lives as long as the process, when there are `count`; else it is counted.
bool is_among_first(size_t count);
/// How many live now.
size_t count_types();
size_t count_attrs();
size_t count_bodies();
/// How many of each live as long as the process because they came first; returns how many did. For
/// tests: what was interned already stays as it is.
size_t set_lasting_count(size_t count);

}  // namespace tn
