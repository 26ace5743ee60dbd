#pragma once
// Tensor: a lazy array whose elements are never overwritten. Calling an op records it; reading a
// value computes it.
#include <concepts>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tenon/device.h"
#include "tenon/shape.h"

namespace tn {

struct Node;
struct Graph;
struct Index;
class Selection;
class RowIterator;

/// A handle to one result of a recorded op. Copies share the result, and its value never changes.
/// The tag makes the ABI's version part of every symbol that names a tensor.
class [[gnu::abi_tag("v0_1")]] Tensor {
 public:
  using Place = std::source_location;  // of the call, for errors
  Tensor() = default;
  /// Numbers become 0-d tensors: f32 from floating point, i64 from integers.
  template <class T>
    requires std::is_arithmetic_v<T>
  explicit Tensor(T value) : Tensor(from_scalar(Scalar(value))) {}
  Tensor(const Tensor& other) noexcept : node_(other.node_), index_(other.index_) { retain(); }
  Tensor(Tensor&& other) noexcept
      : node_(std::exchange(other.node_, nullptr)), index_(other.index_) {}
  Tensor& operator=(const Tensor& other) & noexcept { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) & noexcept {
    std::swap(node_, other.node_);
    std::swap(index_, other.index_);
    return *this;
  }
  void operator=(const Tensor&) const&& = delete;  // of a temporary: write x[{0, 1}] = y
  ~Tensor() { release(); }

  /// Whether there is a result; a handle made by `Tensor()` is null.
  bool defined() const { return node_ != nullptr; }
  /// Does not compile. `if (x == y)` could mean three things.
  template <std::same_as<bool> T>
  explicit operator T() const {
    static_assert(!std::is_same_v<T, bool>,
                  "a tensor is no condition: write tn::all(x == y).item<bool>() or "
                  "tn::any(x == y).item<bool>() for its elements, (x == y).item<bool>() for one "
                  "element, and x.defined() for whether there is a tensor; the logic of elements "
                  "is ~x, x & y and x | y");
    return false;
  }
  /// Valid while a tensor of this shape lives; of a temporary it is a copy.
  const Shape& shape() const&;
  Shape shape() && { return std::as_const(*this).shape(); }
  DType dtype() const;
  Device device() const;
  /// The same value on another device: a copy there, recorded as an op.
  Tensor to(Device device) const;
  int rank() const { return shape().rank(); }
  int64_t dim(int axis, Place at = Place::current()) const;  // negative counts from the end
  int64_t size() const;
  int64_t bytes() const;

  /// Computes the value if it is pending.
  const Tensor& eval(Place at = Place::current()) const;
  /// Whether the value has been computed.
  bool is_evaluated() const;
  /// The elements, row-major; computes them if needed. Valid while a handle to this result lives.
  const void* data(Place at = Place::current()) const;
  template <class T>
  const T* data(Place at = Place::current()) const {
    return static_cast<const T*>(checked_data(dtype_of<T>(), at));
  }
  /// The elements as a vector of T.
  template <class T>
  std::vector<T> to_vector(Place at = Place::current()) const {
    Tensor here = to(Device());
    const T* first = here.data<T>(at);
    return std::vector<T>(first, first + size());
  }
  /// A view of the elements, row-major; valid while a handle to this result lives.
  template <class T>
  std::span<const T> span(Place at = Place::current()) const& {
    return {data<T>(at), static_cast<size_t>(size())};
  }
  template <class T>
  std::span<const T> span() && = delete;
  /// The one element of a tensor of size 1, converted to T.
  template <class T>
  T item(Place at = Place::current()) const;
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
  explicit operator T() const {
    return item<T>();
  }

  /// `x[0]`, `x[{tn::slice(1, -1), tn::all, -1}]`, `x[x > 0]`: see indexing.h. Of a variable it can
  /// be assigned to, `x[0] = 5`, which binds the variable to another value.
  Tensor operator[](const Index& index) const&;
  Tensor operator[](std::initializer_list<Index> indices) const&;
  Selection operator[](const Index& index) &;
  Selection operator[](std::initializer_list<Index> indices) &;
  /// Over axis 0: `for (tn::Tensor row : x)`.
  RowIterator begin() const;
  RowIterator end() const;

  /// Adds the derivatives of this scalar to the gradients of tensors that require one: see
  /// backward.h.
  void backward(Place at = Place::current()) const;

  /// The graph of pending ops behind this tensor, as text.
  std::string graph() const;
  /// Values and type as a user sees them: "tensor([1, 2], dtype=float32)".
  std::string to_string(Place at = Place::current()) const;

  static Tensor from_scalar(const Scalar& value);
  template <class T>
  static constexpr DType dtype_of();

  // For the library: the handle takes over one reference.
  Tensor(Node* owned, uint32_t index) noexcept : node_(owned), index_(index) {}
  Node* node() const { return node_; }
  uint32_t index() const { return index_; }

 private:
  void retain() const noexcept;
  void release() noexcept;
  const void* checked_data(DType wanted, const Place& at) const;
  Node* node_ = nullptr;
  uint32_t index_ = 0;
};

}  // namespace tn

// In the library: programs need not compile its functions.
extern template class std::vector<tn::Tensor>;

namespace tn {

using Tensors = std::vector<Tensor>;

/// What ops take: a tensor or a number, with the place of the call. A number adopts the tensor's
/// element type.
struct Operand {
  const Tensor* tensor = nullptr;  // null: the scalar, or nothing when `absent`
  bool absent = false;
  bool temporary = false;  // the handle ends with the call, so the op may take it over
  Scalar scalar;
  std::source_location place;

  Operand(const Tensor& t, std::source_location at = std::source_location::current())
      : tensor(&t), place(at) {}
  Operand(Tensor&& t, std::source_location at = std::source_location::current())
      : tensor(&t), temporary(true), place(at) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T value, std::source_location at = std::source_location::current())
      : scalar(value), place(at) {}
  Operand(Dim size, std::source_location at = std::source_location::current())
      : scalar(Offset(size)), place(at) {}
  template <IsComplex T>
  Operand(const T& value, std::source_location at = std::source_location::current())
      : scalar(value), place(at) {}
  /// `x[0]` is a tensor once it is read.
  Operand(const Selection& s, std::source_location at = std::source_location::current());
  Operand(std::nullptr_t, std::source_location at = std::source_location::current())
      : absent(true), place(at) {}
};

/// A copy of row-major elements. The caller guarantees that there are as many as the shape has,
/// here and in `from_memory`.
Tensor from_bytes(const void* data, DType dtype, const Shape& shape);
/// The same of `count` elements. Fails when the shape has more or fewer.
Tensor from_elements(const void* data, size_t count, DType dtype, const Shape& shape,
                     std::source_location at = std::source_location::current());
/// Shares foreign memory without a copy; `release(owner)` is called when the last user is gone.
Tensor from_memory(void* data, DType dtype, const Shape& shape, void* owner, void (*release)(void*),
                   bool read_only = false);

/// Computes several tensors in one run.
void eval(const std::vector<Tensor>& tensors,
          std::source_location at = std::source_location::current());
/// Starts the computation and returns; reading a value waits for it.
void async_eval(const std::vector<Tensor>& tensors);
/// Waits for everything started by async_eval.
void synchronize();

template <class T>
constexpr DType Tensor::dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::b1;
  else if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (IsComplex<T>)
    return dtype_of<typename T::value_type>() == DType::f64 ? DType::c128 : DType::c64;
  else {
    static_assert(std::is_integral_v<T>, "no element type for this C++ type");
    constexpr bool s = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1)
      return s ? DType::i8 : DType::u8;
    else if constexpr (sizeof(T) == 2)
      return s ? DType::i16 : DType::u16;
    else if constexpr (sizeof(T) == 4)
      return s ? DType::i32 : DType::u32;
    else
      return s ? DType::i64 : DType::u64;
  }
}

}  // namespace tn

// As a range it has rows, and `size()` counts elements.
template <>
inline constexpr bool std::ranges::disable_sized_range<tn::Tensor> = true;

#include "tenon/array.h"
#include "tenon/indexing.h"
#include "tenon/item.h"
