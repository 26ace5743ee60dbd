#pragma once
// Progress of a loop, as a line on a terminal.
//
//     for (auto [x, y] : tn::progress(tn::data::batches(images, labels, 128), "train")) ...
#include <cstdint>
#include <string>
#include <utility>

#include "tenon/tensor.h"

namespace tn {

/// Draws how far a loop is on the standard error, a few times a second, where that is a terminal;
/// elsewhere it is silent.
class Progress {
 public:
  explicit Progress(int64_t total, std::string description = {});
  ~Progress();
  Progress(const Progress&) = delete;
  /// Counts steps.
  void update(int64_t steps = 1);
  /// Shows a value, such as the loss. It is evaluated when the line is drawn; on a mesh, at once.
  void show(const std::string& name, const Tensor& value);
  int64_t steps() const { return steps_; }

 private:
  void draw();
  int64_t total_, steps_ = 0;
  std::string description_, name_;
  Tensor value_;
  bool is_shown_;
  double began_, next_ = 0;  // seconds
};

/// How many items a loop over a range has. A tensor has rows.
template <class R>
int64_t items_in(const R& range) {
  if constexpr (std::is_same_v<R, Tensor>)
    return range.dim(0);
  else
    return static_cast<int64_t>(range.size());
}

/// The items of a range, with a `Progress` that counts them.
template <class R>
class ProgressRange {
 public:
  ProgressRange(R range, std::string description)
      : range_(std::move(range)), bar_(items_in(range_), std::move(description)) {}

  template <class I>
  struct Iterator {
    I at;
    Progress* bar;
    decltype(auto) operator*() const { return *at; }
    Iterator& operator++() {
      ++at;
      bar->update();
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at == b.at; }
  };
  auto begin() { return Iterator<decltype(range_.begin())>{range_.begin(), &bar_}; }
  auto end() { return Iterator<decltype(range_.end())>{range_.end(), &bar_}; }
  Progress& bar() { return bar_; }

 private:
  R range_;
  Progress bar_;
};

template <class R>
ProgressRange<R> progress(R range, std::string description = {}) {
  return ProgressRange<R>(std::move(range), std::move(description));
}

}  // namespace tn
