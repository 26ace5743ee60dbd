#include "ir/values_text.h"

#include <algorithm>
#include <vector>

#include "ir/element.h"
#include "ir/element_texts.h"

namespace tn {

namespace {

/// Indices of an axis that are shown: all of `count`, or `head` first and `tail` last ones.
struct Shown {
  int64_t count = 0, head = 0, tail = 0;
  bool all() const { return head + tail >= count; }
};

class TextLayout {
 public:
  TextLayout(TypeRef type, const void* data, size_t indent, const PrintOptions& options)
      : type_(*type), indent_(indent), width_(options.linewidth) {
    bool edges = type->elements > options.threshold;
    for (int a = 0; a < type_.rank(); ++a) {
      int64_t count = type_.shape[a].value();
      bool cut = edges && (count - 1) / 2 >= options.edgeitems;
      axes_.push_back({count, cut ? options.edgeitems : count, cut ? options.edgeitems : 0});
    }
    std::vector<Scalar> elements;
    read(static_cast<const char*>(data), 0, 0, elements);
    texts_ = element_texts(type_.dtype, elements, options);
    fit_row();
  }

  std::string text() { return axis(0, texts_.begin()); }

 private:
  using Texts = std::vector<std::string>::const_iterator;

  void read(const char* data, int a, int64_t at, std::vector<Scalar>& elements) const {
    if (a == type_.rank()) {
      elements.push_back(element_at(type_.dtype, data + at * size_of(type_.dtype)));
      return;
    }
    const Shown& shown = axes_[static_cast<size_t>(a)];
    for (int64_t i = 0; i < shown.count; ++i) {
      if (!shown.all() && i == shown.head) i = shown.count - shown.tail;
      if (i < shown.count) read(data, a + 1, at * shown.count + i, elements);
    }
  }

  /// A row of a matrix has one line: columns that do not fit are left out in the middle.
  void fit_row() {
    if (type_.rank() < 2 || texts_.empty()) return;
    auto rank = static_cast<size_t>(type_.rank());
    Shown& row = axes_.back();
    read_columns_ = row.all() ? row.count : row.head + row.tail;
    auto width = static_cast<int64_t>(texts_.front().size()) + 2;
    int64_t room = width_ - static_cast<int64_t>(indent_ + rank) - 2;
    if (read_columns_ * width - 2 + (row.all() ? 0 : 5) <= room) return;
    int64_t fits = std::max<int64_t>((room - 3) / width, 2);
    if (fits >= read_columns_) return;
    row.head = (fits + 1) / 2;
    row.tail = fits / 2;
  }

  /// `at` stands at the text of the first element.
  std::string axis(int a, Texts at) const {
    if (a == type_.rank()) return *at;
    auto depth = static_cast<size_t>(a);
    const Shown& shown = axes_[depth];
    bool last = a + 1 == type_.rank();
    std::string margin(indent_ + depth + 1, ' ');
    std::string between =
        last ? ", " : "," + std::string(static_cast<size_t>(type_.rank() - a) - 1, '\n') + margin;
    std::string text = "[";
    size_t line = margin.size();  // of the last one, in a vector
    auto put = [&](const std::string& item) {
      bool wraps = type_.rank() == 1 && text.size() > 1 &&
                   line + item.size() + 3 > static_cast<size_t>(width_);
      if (text.size() > 1) text += wraps ? ",\n" + margin : between;
      line = (wraps || text.size() == 1 ? margin.size() : line + 2) + item.size();
      text += item;
    };
    int64_t step = stride(a);
    for (int64_t i = 0; i < shown.head; ++i) put(axis(a + 1, at + i * step));
    if (shown.all()) return text + "]";
    put("...");
    at += (read_of(a) - shown.tail) * step;
    for (int64_t i = 0; i < shown.tail; ++i) put(axis(a + 1, at + i * step));
    return text + "]";
  }

  /// How many indices of the axis have texts.
  int64_t read_of(int a) const {
    const Shown& shown = axes_[static_cast<size_t>(a)];
    if (type_.rank() > 1 && a + 1 == type_.rank()) return read_columns_;
    return shown.all() ? shown.count : shown.head + shown.tail;
  }
  int64_t stride(int a) const {
    int64_t product = 1;
    for (int i = a + 1; i < type_.rank(); ++i) product *= read_of(i);
    return product;
  }

  const Type& type_;
  size_t indent_;
  int64_t width_;
  std::vector<Shown> axes_;
  std::vector<std::string> texts_;  // of the elements read, in order, all of one width
  int64_t read_columns_ = 0;
};

}  // namespace

std::string values_text(TypeRef type, const void* data, size_t indent) {
  return type->elements == 0 ? "[]" : TextLayout(type, data, indent, print_options()).text();
}

}  // namespace tn
