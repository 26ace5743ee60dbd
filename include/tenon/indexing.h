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
  enum class Kind : uint8_t { integer, slice, ellipsis, new_axis, tensor };
  using Place = std::source_location;
  using AllOp = Tensor(const Operand& x, const Maybe<Axes>& axis, bool keepdims);

  Kind kind = Kind::integer;
  Offset at = 0;
  Maybe<Offset> start, stop;
  Maybe<int64_t> step;
  Tensor tensor;
  Place place;  // of the call

  template <std::integral T>
  Index(T i, Place place = Place::current()) : at(i), place(place) {}
  Index(Offset i, Place place = Place::current()) : at(i), place(place) {}
  Index(Dim i, Place place = Place::current()) : at(i), place(place) {}
  Index(Tensor t, Place place = Place::current())
      : kind(Kind::tensor), tensor(std::move(t)), place(place) {}
  Index(const Selection& s, Place place = Place::current());
  Index(Ellipsis, Place place = Place::current()) : kind(Kind::ellipsis), place(place) {}
  Index(NewAxis, Place place = Place::current()) : kind(Kind::new_axis), place(place) {}
  /// `tn::all`, the reduction, is the whole axis here.
  Index(AllOp* op, Place place = Place::current());
  static Index slice(Maybe<Offset> start = {}, Maybe<Offset> stop = {}, Maybe<int64_t> step = {},
                     Place place = Place::current());
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
  Selection(Tensor& variable, std::vector<Index> indices)
      : variable_(&variable), source_(variable), indices_(std::move(indices)) {}

  /// The elements.
  const Tensor& value() const {
    if (!value_) value_ = index(source_, indices_);
    return value_;
  }
  operator Tensor() const { return value(); }

  Tensor& operator=(const Operand& v) && { return assign(v); }
  Tensor& operator=(const Selection& other) && { return assign(other); }
  Selection(const Selection&) = default;
  Selection(Selection&&) = default;
  Tensor& operator+=(const Operand& v) &&;
  Tensor& operator-=(const Operand& v) &&;
  Tensor& operator*=(const Operand& v) &&;
  Tensor& operator/=(const Operand& v) &&;

  const Shape& shape() const& { return value().shape(); }
  Shape shape() && { return value().shape(); }
  DType dtype() const { return value().dtype(); }
  int rank() const { return value().rank(); }
  int64_t dim(int axis) const { return value().dim(axis); }
  int64_t size() const { return value().size(); }
  template <class T>
  T item() const {
    return value().item<T>();
  }
  template <class T>
  std::vector<T> to_vector() const {
    return value().to_vector<T>();
  }
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
  explicit operator T() const {
    return item<T>();
  }
  std::string to_string() const { return value().to_string(); }
  Tensor operator[](const Index& index) const { return value()[index]; }
  Tensor operator[](std::initializer_list<Index> indices) const { return value()[indices]; }
  RowIterator begin() const;
  RowIterator end() const;

 private:
  Tensor& assign(const Operand& v) { return *variable_ = index_update(*variable_, indices_, v); }
  Tensor* variable_;
  Tensor source_;  // the variable when it was indexed
  std::vector<Index> indices_;
  mutable Tensor value_;
};

inline Operand::Operand(const Selection& s, std::source_location at)
    : tensor(&s.value()), place(at) {}
inline Index::Index(const Selection& s, Place place) : Index(s.value(), place) {}

/// The tensors along axis 0.
class RowIterator {
 public:
  using value_type = Tensor;
  using difference_type = int64_t;

  RowIterator() = default;
  RowIterator(Tensor x, int64_t at) : x_(std::move(x)), at_(at) {}
  Tensor operator*() const { return index(x_, {at_}); }
  RowIterator& operator++() { return ++at_, *this; }
  RowIterator operator++(int) { return {x_, at_++}; }
  friend bool operator==(const RowIterator& a, const RowIterator& b) { return a.at_ == b.at_; }

 private:
  Tensor x_;
  int64_t at_ = 0;
};

inline RowIterator Selection::begin() const { return value().begin(); }
inline RowIterator Selection::end() const { return value().end(); }

inline Selection Tensor::operator[](const Index& index) & { return {*this, {index}}; }
inline Selection Tensor::operator[](std::initializer_list<Index> indices) & {
  return {*this, indices};
}

}  // namespace tn
