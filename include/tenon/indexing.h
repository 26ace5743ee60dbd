#pragma once
// Indexing: `x[0]`, slices, masks, assignment to a part of a variable, and iteration over axis 0.
//
//     tn::Tensor column = m[{tn::all, 2}], middle = m[tn::slice(1, -1)], large = m[m > 3];
//     m[{0, tn::all}] = 5;
//     for (tn::Tensor row : m) std::cout << row << '\n';
#include "tenon/tensor.h"

namespace tn {

/// In a list of indices: all axes that the others leave, and a new axis of size 1.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis;
struct NewAxis {};
inline constexpr NewAxis newaxis;

/// One index of `x[...]`: an integer, a slice, `tn::all`, `tn::ellipsis`, `tn::newaxis`, or an
/// integer or boolean tensor.
struct Index {
  enum class Kind : uint8_t { integer, slice, all_others, new_axis, tensor };
  using Place = std::source_location;
  using AllOp = Tensor(const Operand& x, const Maybe<Axes>& axis, bool keepdims);

  Kind kind = Kind::integer;
  Offset at = 0;
  Maybe<Offset> start, stop;
  Maybe<int64_t> step;
  Tensor tensor;
  Place place;  // of the call

  template <std::integral T>
  Index(T i, Place user = Place::current()) : at(i), place(user) {}
  Index(Offset i, Place user = Place::current()) : at(i), place(user) {}
  Index(Dim i, Place user = Place::current()) : at(i), place(user) {}
  Index(Tensor t, Place user = Place::current())
      : kind(Kind::tensor), tensor(std::move(t)), place(user) {}
  Index(const Selection& s, Place user = Place::current());
  Index(Ellipsis, Place user = Place::current()) : kind(Kind::all_others), place(user) {}
  Index(NewAxis, Place user = Place::current()) : kind(Kind::new_axis), place(user) {}
  /// `tn::all`, the reduction, is the whole axis here.
  Index(AllOp* op, Place user = Place::current());
  static Index slice(Maybe<Offset> start = {}, Maybe<Offset> stop = {}, Maybe<int64_t> step = {},
                     Place user = Place::current());
};

template <class T>
concept IsBound =
    std::integral<T> || std::same_as<T, Offset> || std::same_as<T, Dim> || std::same_as<T, None>;

/// The elements from `start` up to `stop`, every `step`: as Python's `start:stop:step`. `tn::none`
/// leaves a bound out.
template <IsBound A, IsBound B, IsBound C = None>
Index slice(A start, B stop, C step = {},
            std::source_location place = std::source_location::current()) {
  return Index::slice(start, stop, step, place);
}

/// `x[indices]` as NumPy does it, boolean masks and integer tensors included.
Tensor index(const Tensor& x, const std::vector<Index>& indices);
/// `x` with `x[indices]` replaced by, or combined with, `value`.
enum class Update : uint8_t { set, add, multiply, maximum, minimum };
Tensor index_update(const Tensor& x, const std::vector<Index>& indices, const Operand& value,
                    Update how = Update::set);

/// `x[...]` of a variable: a tensor to read, and a part of the variable to assign to in the same
/// expression.
class Selection {
 public:
  Selection(Tensor& variable, std::initializer_list<Index> indices);

  /// The elements.
  const Tensor& value() const;
  operator Tensor() const { return value(); }
  template <std::same_as<bool> T>
  explicit operator T() const {
    return static_cast<T>(value());
  }

  Tensor& operator=(const Operand& v) && { return assign(v); }
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): it assigns elements of the variable.
  Tensor& operator=(const Selection& other) && { return assign(other); }
  Selection(const Selection&);
  Selection(Selection&&) noexcept;
  ~Selection();
  Tensor& operator+=(const Operand& v) &&;
  Tensor& operator-=(const Operand& v) &&;
  Tensor& operator*=(const Operand& v) &&;
  Tensor& operator/=(const Operand& v) &&;
  Tensor& operator%=(const Operand& v) &&;

  const Shape& shape() const& { return value().shape(); }
  Shape shape() && { return value().shape(); }
  DType dtype() const { return value().dtype(); }
  int rank() const { return value().rank(); }
  int64_t dim(int axis, Tensor::Place at = Tensor::Place::current()) const {
    return value().dim(axis, at);
  }
  int64_t size() const { return value().size(); }
  Device device() const { return value().device(); }
  Tensor to(Device device) const { return value().to(device); }
  Tensor eval(Tensor::Place at = Tensor::Place::current()) const { return value().eval(at); }
  void backward(Tensor::Place at = Tensor::Place::current()) const { value().backward(at); }
  /// Valid while this selection lives: keep it, or read a tensor, `tn::Tensor row = x[0]`.
  template <class T>
  std::span<const T> span(Tensor::Place at = Tensor::Place::current()) const& {
    return value().span<T>(at);
  }
  template <class T>
  std::span<const T> span() && = delete;
  template <class T>
  T item(Tensor::Place at = Tensor::Place::current()) const {
    return value().item<T>(at);
  }
  template <class T>
  std::vector<T> to_vector(Tensor::Place at = Tensor::Place::current()) const {
    return value().to_vector<T>(at);
  }
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
  explicit operator T() const {
    return item<T>();
  }
  std::string to_string(Tensor::Place at = Tensor::Place::current()) const {
    return value().to_string(at);
  }
  Tensor operator[](const Index& index) const { return value()[index]; }
  Tensor operator[](std::initializer_list<Index> indices) const { return value()[indices]; }
  RowIterator begin() const;
  RowIterator end() const;

 private:
  Tensor& assign(const Operand& v);
  Tensor* variable_;
  Tensor source_;  // the variable when it was indexed
  std::vector<Index> indices_;
  mutable Tensor value_;
};

inline Operand::Operand(const Selection& s, std::source_location at)
    : tensor(&s.value()), place(at) {}
inline Index::Index(const Selection& s, Place user) : Index(s.value(), user) {}

/// The tensors along axis 0.
class RowIterator {
 public:
  using value_type = Tensor;
  using difference_type = int64_t;

  RowIterator() = default;
  RowIterator(Tensor x, int64_t at) : x_(std::move(x)), at_(at) {}
  Tensor operator*() const;
  RowIterator& operator++() { return ++at_, *this; }
  RowIterator operator++(int) { return {x_, at_++}; }
  friend bool operator==(const RowIterator& a, const RowIterator& b) { return a.at_ == b.at_; }

 private:
  Tensor x_;
  int64_t at_ = 0;
};

inline RowIterator Selection::begin() const { return value().begin(); }
inline RowIterator Selection::end() const { return value().end(); }

}  // namespace tn

template <>
inline constexpr bool std::ranges::disable_sized_range<tn::Selection> = true;
