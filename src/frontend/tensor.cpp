// Tensor's members that need a value, and the ways tensors are made from memory.
#include "tenon/tensor.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "compiler/compile.h"
#include "frontend/eval.h"
#include "ir/element.h"
#include "ir/graph.h"
#include "ir/interned.h"
#include "ir/walk.h"

namespace tn {

const Tensor& Tensor::eval() const {
  flush({this, 1});
  return *this;
}

bool Tensor::is_evaluated() const {
  return slot_of(*this).data.load(std::memory_order_acquire) != nullptr;
}

const void* Tensor::data() const {
  eval();
  const Slot& slot = slot_of(*this);
  return static_cast<const char*>(slot.data.load(std::memory_order_acquire)->data) + slot.offset;
}

const void* Tensor::checked_data(DType wanted) const {
  if (dtype() != wanted)
    fail(Fault::type, "data: elements are {}, asked for as {}", tn::name_of(dtype()),
         tn::name_of(wanted));
  return data();
}

std::string Tensor::graph() const {
  Captured captured = capture({}, {this, 1});
  return to_text(captured.graph);
}

void eval(const std::vector<Tensor>& tensors) { flush(tensors); }

Tensor from_bytes(const void* data, DType dtype, const Shape& shape) {
  RecordScope scope;
  TypeRef type = intern(dtype, shape);
  BufferRef buffer = allocate(static_cast<size_t>(type->bytes()));
  if (type->bytes()) std::memcpy(buffer->data, data, static_cast<size_t>(type->bytes()));
  return make_data(std::move(buffer), 0, type);
}

Tensor from_elements(const void* data, size_t count, DType dtype, const Shape& shape) {
  Dim elements = shape.elements();
  if (elements != Dim(static_cast<int64_t>(count)))
    fail(Hint{"give one value for each element"},
         "array: {} values for the shape {}, of {} elements", count, shape, elements);
  return from_bytes(data, dtype, shape);
}

Tensor from_memory(void* data, DType dtype, const Shape& shape, void* owner, void (*release)(void*),
                   bool read_only) {
  RecordScope scope;
  TypeRef type = intern(dtype, shape);
  return make_data(adopt(data, static_cast<size_t>(type->bytes()), owner, release, read_only), 0,
                   type);
}

Scalar item_of(const Tensor& x) {
  if (x.size() != 1)
    fail("item: only a tensor of one element has an item, this is {}", *type_of(x));
  return element_at(x.dtype(), x.data());
}

namespace {

/// Runs flushes behind the caller's back, in order.
class Background {
 public:
  void add(std::vector<Tensor> tensors) {
    std::lock_guard lock(mutex_);
    if (!worker_.joinable()) worker_ = std::jthread([this](std::stop_token stop) { work(stop); });
    queue_.push_back(std::move(tensors));
    ++unfinished_;
    changed_.notify_all();
  }
  /// The user may interrupt it.
  void wait() {
    constexpr auto kSlice = std::chrono::milliseconds(50);
    std::unique_lock lock(mutex_);
    while (!idle_.wait_for(lock, kSlice, [&] { return unfinished_ == 0; })) {
      lock.unlock();
      try {
        stop_if_asked();
      } catch (...) {
        stop();
        throw;
      }
      lock.lock();
    }
  }
  /// What runs now.
  void stop() {
    std::lock_guard lock(mutex_);
    if (unfinished_) stopping_ = true;
  }
  std::mutex& mutex() { return mutex_; }

 private:
  void work(std::stop_token stop) {
    stop_wanted = &stopping_;
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !queue_.empty(); })) {
      std::vector<Tensor> next = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      try {
        flush(next);
      } catch (...) {
        // Whoever asks for the value meets the same error, on their own thread.
      }
      next.clear();
      lock.lock();
      stopping_ = false;
      --unfinished_;
      idle_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable_any changed_, idle_;
  std::deque<std::vector<Tensor>> queue_;
  int unfinished_ = 0;
  std::atomic<bool> stopping_ = false;
  std::jthread worker_;
};

Background* only_background = nullptr;

/// A child of fork has no worker thread, whatever the parent's object says: it makes a new one, and
/// what was queued is computed when it is asked for.
Background& background() {
  [[maybe_unused]] static const bool guarded = [] {
    only_background = new Background;
    guard_at_fork({0, nullptr, [](void*) { only_background->mutex().lock(); },
                   [](void*) { only_background->mutex().unlock(); }});
    in_child_after_fork([] { only_background = new Background; });
    return true;
  }();
  return *only_background;
}

}  // namespace

void async_eval(const std::vector<Tensor>& tensors) { background().add(tensors); }
void synchronize() { background().wait(); }
void stop_async() { background().stop(); }

}  // namespace tn
