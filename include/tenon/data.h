#pragma once
// Batches of data for training.
//
//     for (auto [x, y] : tn::data::batches(images, labels, 128)) ...
//     for (auto [x, y] : tn::data::batches(images, labels, 128, {.key = tn::random::key(0)})) ...
#include <tuple>

#include "tenon/tensor.h"

namespace tn::data {

struct BatchSettings {
  /// Shuffles the examples with this key, differently in each epoch. Null: in the order of the
  /// data.
  Tensor key = {};
  /// Skips a last batch that is smaller.
  bool drop_last = false;
  int64_t epochs = 1;
};

/// A number of batches of one size.
struct EqualParts {
  int64_t count;
};

/// Examples along the first axis of some tensors, `size` at a time.
class AnyBatches {
 public:
  AnyBatches(Tensors columns, int64_t size, BatchSettings settings, std::source_location at);
  AnyBatches(Tensors columns, EqualParts parts, std::source_location at);
  /// The number of batches in all epochs.
  int64_t size() const { return per_epoch_ * settings_.epochs; }
  /// The tensors of a batch, which is numbered through all epochs.
  Tensors at(int64_t number, std::source_location at = std::source_location::current()) const;

 protected:
  /// Where the batches were made.
  const std::source_location& place() const { return place_; }

 private:
  void count_examples(const char* by);

  std::source_location place_;
  Tensors columns_;
  int64_t examples_ = 0, size_ = 0, per_epoch_ = 0;
  BatchSettings settings_;
  mutable int64_t epoch_ = -1;  // whose order is known
  mutable Tensor order_;
};

/// A range of batches: tensors, or tuples of `N` of them.
template <size_t N>
class Batches : public AnyBatches {
 public:
  using AnyBatches::AnyBatches;

  /// A batch, which is numbered through all epochs.
  auto at(int64_t number, std::source_location place = std::source_location::current()) const {
    return as_batch(AnyBatches::at(number, place), std::make_index_sequence<N>());
  }

  class Iterator {
   public:
    Iterator(const Batches* of, int64_t at) : of_(of), at_(at) {}
    auto operator*() const { return of_->at(at_, of_->place()); }
    Iterator& operator++() { return ++at_, *this; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    const Batches* of_;
    int64_t at_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, this->size()}; }

 private:
  template <size_t... I>
  static auto as_batch(Tensors list, std::index_sequence<I...>) {
    if constexpr (N == 1)
      return std::move(list[0]);
    else
      return std::tuple(std::move(list[I])...);
  }
};

/// Batches of `size` examples: of one tensor they are tensors, of several tuples.
inline Batches<1> batches(Tensor x, int64_t size, BatchSettings settings = {},
                          std::source_location at = std::source_location::current()) {
  return {{std::move(x)}, size, std::move(settings), at};
}
inline Batches<2> batches(Tensor x, Tensor y, int64_t size, BatchSettings settings = {},
                          std::source_location at = std::source_location::current()) {
  return {{std::move(x), std::move(y)}, size, std::move(settings), at};
}
inline Batches<3> batches(Tensor x, Tensor y, Tensor z, int64_t size, BatchSettings settings = {},
                          std::source_location at = std::source_location::current()) {
  return {{std::move(x), std::move(y), std::move(z)}, size, std::move(settings), at};
}

/// A batch in `parts` of equal size: micro-batches for tn::optim::accumulate.
///
///     auto [loss, gradients] = tn::optim::accumulate(loss_and_grad, tn::data::split(x, y, 4));
inline Batches<1> split(Tensor x, int64_t parts,
                        std::source_location at = std::source_location::current()) {
  return {{std::move(x)}, EqualParts{parts}, at};
}
inline Batches<2> split(Tensor x, Tensor y, int64_t parts,
                        std::source_location at = std::source_location::current()) {
  return {{std::move(x), std::move(y)}, EqualParts{parts}, at};
}
inline Batches<3> split(Tensor x, Tensor y, Tensor z, int64_t parts,
                        std::source_location at = std::source_location::current()) {
  return {{std::move(x), std::move(y), std::move(z)}, EqualParts{parts}, at};
}

}  // namespace tn::data
