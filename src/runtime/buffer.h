#pragma once
// Reference-counted memory: what every tensor value lives in.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tenon/device.h"

namespace tn {

/// The header of a block of memory. Small blocks follow their header; large and foreign ones do
/// not.
struct alignas(64) Buffer {
  std::atomic<uint32_t> refs{1};
  bool read_only = false;
  /// The pages have been written before, so they exist: stores past the caches pay off.
  bool recycled = false;
  Device device;
  void* address = nullptr;  // on the device: only its launcher may take it for a pointer
  size_t bytes = 0;
  uint64_t ready = 0;  // of a device: the work that writes it, counted by its runtime
  void (*release)(Buffer*) = nullptr;
  void* owner = nullptr;
  union {
    size_t capacity = 0;           // of our own blocks, as taken from the system
    void (*release_owner)(void*);  // of foreign memory
  };
};

static_assert(sizeof(Buffer) == 64);

/// Whether the memory has a foreign owner that may write to it, or that lends it temporarily.
inline bool is_borrowed(const Buffer& buffer) { return buffer.owner || buffer.capacity == 0; }

[[noreturn]] void fail_not_host(const Buffer& buffer);
/// Of memory that is known to be the host's: what a kernel of the CPU allocated, what a file is
/// mapped to. Values may lie elsewhere: see HostView.
inline void* host_address(const Buffer& buffer) {
  if (!buffer.device.is_host()) [[unlikely]]
    fail_not_host(buffer);
  return buffer.address;
}

/// Shared ownership of a Buffer.
class BufferRef {
 public:
  BufferRef() = default;
  /// Takes over the reference that `buffer` was created with.
  static BufferRef adopt_reference(Buffer* buffer) {
    BufferRef ref;
    ref.buffer_ = buffer;
    return ref;
  }
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) {
    if (buffer_) buffer_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() { reset(); }

  void reset() {
    Buffer* buffer = std::exchange(buffer_, nullptr);
    if (!buffer) return;
    // The only owner needs no atomic subtraction: no other thread can gain a reference.
    if (buffer->refs.load(std::memory_order_acquire) == 1 ||
        buffer->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
      buffer->release(buffer);
  }

  /// The reference, which the caller owns from now on.
  Buffer* detach() { return std::exchange(buffer_, nullptr); }

  explicit operator bool() const { return buffer_; }
  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  Buffer& operator*() const { return *buffer_; }
  template <class T = void>
  T* data() const {
    return static_cast<T*>(host_address(*buffer_));
  }
  size_t bytes() const { return buffer_ ? buffer_->bytes : 0; }
  /// No other reference exists, so the memory may be written or given to a new value.
  bool unique() const { return buffer_->refs.load(std::memory_order_acquire) == 1; }
  friend bool operator==(const BufferRef&, const BufferRef&) = default;

 private:
  Buffer* buffer_ = nullptr;
};

static_assert(sizeof(BufferRef) == sizeof(void*));

/// Uninitialised memory, aligned to 64 bytes (to 2 MiB from 1 MiB up). A size of 0 is valid.
/// Throws UserError (Fault::memory) at once when the machine or the limit cannot give it.
BufferRef allocate(size_t bytes);

/// Foreign memory: `release(owner)` is called when the last reference goes.
BufferRef adopt(void* data, size_t bytes, void* owner, void (*release)(void* owner),
                bool read_only);

/// A value in memory: a buffer and where in it the elements begin.
struct Bound {
  BufferRef buffer;
  int64_t offset = 0;  // in bytes
  /// Its elements are not in memory: constants that a file holds packed only.
  bool is_absent() const { return !buffer->address; }
  size_t bytes() const { return buffer.bytes() - static_cast<size_t>(offset); }  // that follow
};

/// The bytes of a value, where the host can read them, as long as the view lives: those of a device
/// are waited for and copied. This is the only way to them outside of the launchers of devices;
/// tools/check_names.py holds it.
class HostView {
 public:
  /// `bytes`: how many are wanted; all that follow by default.
  explicit HostView(Bound value, size_t bytes = SIZE_MAX) : value_(std::move(value)) {
    if (!value_.buffer->device.is_host()) fetch(bytes);
  }

  template <class T = char>
  const T* data() const {
    return reinterpret_cast<const T*>(value_.buffer.data<char>() + value_.offset);
  }

 private:
  void fetch(size_t bytes);
  Bound value_;
};

}  // namespace tn
