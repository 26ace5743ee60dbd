#include "ir/values_text.h"

#include <algorithm>

#include "base/text.h"
#include "ir/element.h"

namespace tn {

namespace {

constexpr int64_t kMostElements = 1000;  // beyond this, only the edges are shown
constexpr int64_t kEdge = 3;
constexpr size_t kWidth = 80;
constexpr int kDigits = 6;

class Shower {
 public:
  Shower(TypeRef type, const void* data)
      : type_(*type),
        data_(static_cast<const char*>(data)),
        edges_(type->elements > kMostElements) {
    widest_ = width(0, 0);
  }
  std::string text(size_t indent) { return axis(0, 0, indent); }

 private:
  std::string one(int64_t at) const {
    return to_text(element_at(type_.dtype, data_ + at * size_of(type_.dtype)), kDigits);
  }
  int64_t extent(int a) const { return type_.shape[a].value(); }
  int64_t stride(int a) const {
    int64_t product = 1;
    for (int i = a + 1; i < type_.rank(); ++i) product *= extent(i);
    return product;
  }
  bool skips(int a, int64_t i) const { return edges_ && i >= kEdge && i < extent(a) - kEdge; }

  /// The longest text of the elements that are shown, so that columns line up.
  size_t width(int a, int64_t at) const {
    if (a == type_.rank()) return one(at).size();
    size_t most = 0;
    for (int64_t i = 0; i < extent(a); ++i)
      if (!skips(a, i)) most = std::max(most, width(a + 1, at + i * stride(a)));
    return most;
  }

  std::string axis(int a, int64_t at, size_t indent) const {
    if (a == type_.rank()) {
      std::string text = one(at);
      return type_.rank() ? std::string(widest_ - text.size(), ' ') + text : text;
    }
    bool rows = a + 1 < type_.rank();
    std::string text = "[";
    size_t line = indent + 1;
    std::string fresh_line =
        (rows && a + 2 < type_.rank() ? ",\n\n" : ",\n") + std::string(indent + 1, ' ');
    for (int64_t i = 0; i < extent(a); ++i) {
      bool dots = skips(a, i);
      std::string item = dots ? "..." : axis(a + 1, at + i * stride(a), indent + 1);
      bool wraps = !rows && line + item.size() + 2 > kWidth;
      if (i) text += rows || wraps ? fresh_line : ", ";
      line = wraps ? indent + 1 + item.size() : line + item.size() + 2;
      text += item;
      if (dots) i = extent(a) - kEdge - 1;
    }
    return text + "]";
  }

  const Type& type_;
  const char* data_;
  bool edges_;
  size_t widest_ = 0;
};

}  // namespace

std::string values_text(TypeRef type, const void* data, size_t indent) {
  return type->elements == 0 ? "[]" : Shower(type, data).text(indent);
}

}  // namespace tn
