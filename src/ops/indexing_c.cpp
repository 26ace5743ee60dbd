#include "ops/indexing_c.h"

#include "base/error.h"
#include "loop/c_expressions.h"

namespace tn::ops {
namespace {

/// The index as an int64_t inside the axis, or what drops it.
std::string clamped(DType type, std::string_view index, int64_t extent, OutOfRange outside) {
  bool natural = kind_of(type) == Kind::natural;
  std::string wide = format("({})({})", natural ? "uint64_t" : "int64_t", index);
  std::string beyond = format("{} >= {}", wide, extent);
  if (outside == OutOfRange::drop)
    return natural ? format("{} ? -1 : (int64_t){}", beyond, wide)
                   : format("{} ? -1 : {}", beyond, wide);
  if (natural) return format("{} ? {} : (int64_t){}", beyond, extent - 1, wide);
  return format("tn_max_i64(0, tn_min_i64({}, {}))", wide, extent - 1);
}

}  // namespace

CIndexed::CIndexed(const source::CCall& call, const Axes& axes, int64_t batch_dims, size_t first,
                   OutOfRange outside) {
  const Shape& x = call.in[0]->shape;
  Types indices = call.in.subspan(first);
  Shape points = index_shape("c source", indices);
  int batch = static_cast<int>(batch_dims);
  // The axes of what is read or written: those before the first indexed one, those of the points
  // behind the batch, those of x that are left.
  Shape loops;
  std::vector<int> axis_of_point, axis_of_x(static_cast<size_t>(x.rank()), -1);
  for (int k = 0; k < batch; ++k) axis_of_point.push_back(k);
  for (int k = 0; k < x.rank(); ++k) {
    if (k == axes[0].i)
      for (int p = batch; p < points.rank(); ++p)
        axis_of_point.push_back(loops.rank()), loops.push_back(points[p]);
    if (!axes.has(k)) axis_of_x[static_cast<size_t>(k)] = loops.rank(), loops.push_back(x[k]);
  }
  int bound = axes[0].i + points.rank() - batch;  // loops after which the indices are known
  std::string read;
  std::vector<std::string> places, inside;
  Ints strides = Strided::row_major(x).strides;
  for (int k = 0, i = 0; k < x.rank(); ++k) {
    if (!axes.has(k)) {
      places.push_back(format("i{} * {}", axis_of_x[static_cast<size_t>(k)], strides[k]));
      continue;
    }
    const Type& type = *indices[static_cast<size_t>(i)];
    Ints own = Strided::row_major(type.shape).strides;
    int missing = points.rank() - type.rank();
    std::string at = "0";
    for (int p = missing; p < points.rank(); ++p)
      if (type.shape[p - missing] != Dim(1))
        at += format(" + i{} * {}", axis_of_point[static_cast<size_t>(p)], own[p - missing]);
    std::string index = format("x{}[{}]", first + static_cast<size_t>(i), at);
    read +=
        format("@const int64_t at{} = {};\n", i, clamped(type.dtype, index, x[k].value(), outside));
    if (outside == OutOfRange::drop) inside.push_back(format("at{} >= 0", i));
    places.push_back(format("at{} * {}", i++, strides[k]));
  }
  for (int k = 0; k <= loops.rank(); ++k) {
    if (k == bound)
      for (char c : read) c == '@' ? loops_ += indent_ : loops_ += c;
    if (k == loops.rank()) break;
    loops_ +=
        format("{0}for (int64_t i{1} = 0; i{1} < {2}; ++i{1}) {{\n", indent_, k, loops[k].value());
    indent_ += "  ";
  }
  place = format("{}", join(places, " + "));
  element = source::c_offset(Strided::row_major(loops));
  if (!inside.empty()) condition = format("if ({}) ", join(inside, " && "));
}

std::string CIndexed::in_loops(std::string_view statement) const {
  std::string text = loops_ + indent_ + std::string(statement) + "\n";
  for (std::string indent = indent_; indent.size() > 2;) {
    indent.resize(indent.size() - 2);
    text += indent + "}\n";
  }
  return text;
}

}  // namespace tn::ops
