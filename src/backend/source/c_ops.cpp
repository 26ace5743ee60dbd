// What calls of the library are in C: joining, writing, sorting, control flow, and the table.
#include "backend/source/c_call.h"
#include "backend/source/c_expressions.h"
#include "ops/control_flow.h"
#include "ops/indexing.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"
#include "ops/slice_attrs.h"

namespace tn::source {
namespace {

using namespace ops;

/// Where element (i0, i1, …) lies: "12 + i0 * 4 + i1".
std::string c_offset(const Strided& at) {
  std::vector<std::string> parts;
  if (at.offset != 0) parts.push_back(format("{}", at.offset));
  for (int k = 0; k < at.shape.rank(); ++k)
    if (at.strides[k] == 1)
      parts.push_back(format("i{}", k));
    else if (at.strides[k] != 0)
      parts.push_back(format("i{} * {}", k, at.strides[k]));
  return parts.empty() ? "0" : format("{}", join(parts, " + "));
}

/// `statement` in loops over i0, i1, … of a shape.
std::string c_loops(const Shape& shape, std::string_view statement) {
  std::string text, indent = "  ";
  for (int k = 0; k < shape.rank(); ++k, indent += "  ")
    text += format("{0}for (int64_t i{1} = 0; i{1} < {2}; ++i{1})\n", indent, k, shape[k].value());
  return text + indent + std::string(statement) + "\n";
}

std::string c_of_after(CCall& call) {
  return format("  memcpy(y0, x0, {});\n", call.out[0]->bytes());
}

std::string c_of_concat(const ConcatAttrs& a, CCall& call) {
  const InternedType& out = *call.out[0];
  if (out.elements == 0) return "";
  int64_t outer = span_of(out.shape, 0, a.axis->i), row = out.elements / outer, at = 0;
  std::string text = format("  for (int64_t i = 0; i < {}; ++i) {{\n", outer);
  for (size_t i = 0; i < call.in.size(); ++i) {
    int64_t count = call.in[i]->elements / outer;
    if (count == 0) continue;
    text += format("    memcpy(y0 + i * {} + {}, x{} + i * {}, {});\n", row, at, i, count,
                   call.in[i]->bytes() / outer);
    at += count;
  }
  return text + "  }\n";
}

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

/// Loops over what is written, in order. Indices are read in the loop that binds the last of their
/// axes.
class CIndexed {
 public:
  std::string place;      // of the element in the indexed tensor
  std::string element;    // its number among those written
  std::string condition;  // "if (…) ", where indices may be dropped

  CIndexed(const ScatterAttrs& a, const CCall& call) {
    const Shape& x = call.in[0]->shape;
    const Axes& axes = a.axes;
    Types indices = call.in.subspan(2);
    Shape points = index_shape("c source", indices);
    int batch = static_cast<int>(a.batch_dims);
    OutOfRange outside = when_writing(a.outside);
    // The axes of what is written: those before the first indexed one, those of the points behind
    // the batch, those of x that are left.
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
        if (!type.shape[p - missing].is(1))
          at += format(" + i{} * {}", axis_of_point[static_cast<size_t>(p)], own[p - missing]);
      std::string index = format("x{}[{}]", 2 + i, at);
      read += format("@const int64_t at{} = {};\n", i,
                     clamped(type.dtype, index, x[k].value(), outside));
      if (outside == OutOfRange::drop) inside.push_back(format("at{} >= 0", i));
      places.push_back(format("at{} * {}", i++, strides[k]));
    }
    for (int k = 0; k <= loops.rank(); ++k) {
      if (k == bound)
        for (char c : read) c == '@' ? loops_ += indent_ : loops_ += c;
      if (k == loops.rank()) break;
      loops_ += format("{0}for (int64_t i{1} = 0; i{1} < {2}; ++i{1}) {{\n", indent_, k,
                       loops[k].value());
      indent_ += "  ";
    }
    place = format("{}", join(places, " + "));
    element = c_offset(Strided::row_major(loops));
    if (!inside.empty()) condition = format("if ({}) ", join(inside, " && "));
  }

  std::string in_loops(std::string_view statement) const {
    std::string text = loops_ + indent_ + std::string(statement) + "\n";
    for (std::string indent = indent_; indent.size() > 2;) {
      indent.resize(indent.size() - 2);
      text += indent + "}\n";
    }
    return text;
  }

 private:
  std::string loops_, indent_ = "  ";
};

std::string c_of_scatter(const ScatterAttrs& a, CCall& call) {
  const InternedType& x = *call.in[0];
  std::string copy = x.elements ? format("  memcpy(y0, x0, {});\n", x.bytes()) : "";
  if (call.in[1]->elements == 0) return copy;
  CIndexed at(a, call);
  std::string to = format("y0[{}]", at.place), from = format("x1[{}]", at.element);
  if (a.mode != ScatterMode::set) {
    call.needs_real();
    constexpr loop::Op kCombines[] = {loop::Op::add, loop::Op::add, loop::Op::mul, loop::Op::max,
                                      loop::Op::min};
    DType wide = info(x.dtype).compute;
    loop::Op op = kCombines[static_cast<size_t>(a.mode)];
    if (x.dtype == DType::b1)
      op =
          a.mode == ScatterMode::add || a.mode == ScatterMode::max ? loop::Op::or_ : loop::Op::and_;
    from = c_cast(wide, x.dtype,
                  c_binary(op, wide, c_cast(x.dtype, wide, to), c_cast(x.dtype, wide, from)));
  }
  return copy + at.in_loops(format("{}{} = {};", at.condition, to, from));
}

/// x, and the update over it at `at`.
std::string c_of_update(CCall& call, const Strided& at, std::string_view start) {
  std::string text;
  if (call.in[0]->elements > 0) text = format("  memcpy(y0, x0, {});\n", call.in[0]->bytes());
  if (call.in[1]->elements == 0) return text;
  const Shape& shape = call.in[1]->shape;
  return text + c_loops(shape, format("y0[{}{}] = x1[{}];", start, c_offset(at),
                                      c_offset(Strided::row_major(shape))));
}

std::string c_of_slice_update(const SliceAttrs& a, CCall& call) {
  Strided at = Strided::row_major(call.in[0]->shape);
  for (int i = 0; i < a.axis->size(); ++i) {
    int k = (*a.axis)[i].i;
    at.offset += a.start[i].value() * at.strides[k], at.strides[k] *= (*a.step)[i];
  }
  return c_of_update(call, at, "");
}

std::string c_of_dynamic_update(CCall& call) {
  Strided at = Strided::row_major(call.in[0]->shape);
  std::string starts = "  const int64_t start = 0";
  for (int k = 0; k < at.shape.rank(); ++k)
    starts += format(" +\n      tn_max_i64(0, tn_min_i64(x{}[0], {})) * {}", k + 2,
                     at.shape[k].value() - call.in[1]->shape[k].value(), at.strides[k]);
  return starts + ";\n" + c_of_update(call, at, "start + ");
}

/// `statement` for every line of x, whose order is in `order`. In it, {0} stands for the extent of
/// the results' lines and {1} for how far apart elements of a line are.
std::string c_of_order(Axis axis, bool descending, CCall& call, std::string_view statement) {
  const InternedType& x = *call.in[0];
  call.needs_real();
  if (x.elements == 0) return "";
  int64_t n = x.shape[axis.i].value(), inner = span_of(x.shape, axis.i + 1, x.rank());
  call.scratch = 2 * n * 8;
  return format(
      "  int64_t *order = scratch;\n"
      "  for (int64_t line = 0; line < {0}; ++line) {{\n"
      "    const int64_t outer = line / {1}, inner = line % {1};\n"
      "    const tn_{2} *row = x0 + outer * {3} + inner;\n"
      "    tn_argsort_{2}({4}, row, {1}, {5}, order, order + {4});\n"
      "    {6}\n  }}\n",
      x.elements / n, inner, x.dtype, n * inner, n, descending ? 1 : 0,
      format(fmt::runtime(statement), call.out[0]->shape[axis.i].value(), inner));
}

std::string c_of_sort(const SortAttrs& a, CCall& call) {
  return c_of_order(a.axis, a.descending, call,
                    "for (int64_t i = 0; i < {0}; ++i) y0[(outer * {0} + i) * {1} + inner] "
                    "= row[order[i] * {1}];");
}

std::string c_of_argsort(const SortAttrs& a, CCall& call) {
  return c_of_order(a.axis, a.descending, call,
                    "for (int64_t i = 0; i < {0}; ++i) y0[(outer * {0} + i) * {1} + inner] "
                    "= order[i];");
}

std::string c_of_top_k(const TopKAttrs& a, CCall& call) {
  if (call.out[0]->elements == 0) return "";
  return c_of_order(a.axis, true, call,
                    "for (int64_t i = 0; i < {0}; ++i) {{\n"
                    "      const int64_t to = (outer * {0} + i) * {1} + inner;\n"
                    "      y0[to] = row[order[i] * {1}], y1[to] = order[i];\n    }}");
}

/// "x1, x2, ", of parameters from `first` to `end`.
std::string c_names(char letter, size_t first, size_t end) {
  std::string text;
  for (size_t i = first; i < end; ++i) text += format("{}{}, ", letter, i);
  return text;
}

/// Bodies that run again and again: `inputs` are the operands, of which the first `count` change;
/// `outputs` are where a body leaves them, each with two places in `scratch` in turn, and the
/// results behind them.
struct CCarry {
  std::string declared, next, returned;

  CCarry(CCall& call, size_t count) {
    for (const CBody& body : call.bodies) call.scratch = std::max(call.scratch, body.arena);
    declared = format("  const void *inputs[] = {{{}0}};\n", c_names('x', 0, call.in.size()));
    std::string first, others;
    for (size_t i = 0; i < count; ++i) {
      int64_t bytes = (call.out[i]->bytes() + 63) / 64 * 64;
      first += format("tn_at(scratch, {}), ", call.scratch);
      others += format("tn_at(scratch, {}), ", call.scratch + bytes);
      call.scratch += 2 * bytes;
    }
    call.scratch += 64;
    declared +=
        format("  void *outputs[] = {{{}{}0}};\n", first, c_names('y', count, call.out.size()));
    if (count == 0) return;
    declared += format("  void *others[] = {{{}0}};\n", others);
    next = format(
        "    for (int k = 0; k < {}; ++k) {{\n      void *const made = outputs[k];\n"
        "      outputs[k] = others[k], others[k] = made, inputs[k] = made;\n    }}\n",
        count);
    for (size_t i = 0; i < count; ++i)
      if (call.out[i]->bytes() > 0)
        returned += format("  memcpy(y{0}, inputs[{0}], {1});\n", i, call.out[i]->bytes());
  }
};

std::string c_of_cond(CCall& call) {
  call.scratch = std::max(call.bodies[0].arena, call.bodies[1].arena) + 64;
  return format(
      "  const void *const inputs[] = {{{}0}};\n  void *const outputs[] = {{{}0}};\n"
      "  if (x0[0])\n    {}(inputs, outputs, scratch);\n  else\n    {}(inputs, outputs, "
      "scratch);\n",
      c_names('x', 1, call.in.size()), c_names('y', 0, call.out.size()), call.bodies[0].name,
      call.bodies[1].name);
}

std::string c_of_while(CCall& call) {
  CCarry carry(call, call.out.size());
  return format(
      "{}  for (;;) {{\n    tn_bool go_on;\n    void *const flag[] = {{&go_on}};\n"
      "    {}(inputs, flag, scratch);\n    if (!go_on) break;\n"
      "    {}(inputs, outputs, scratch);\n{}  }}\n{}",
      carry.declared, call.bodies[0].name, call.bodies[1].name, carry.next, carry.returned);
}

std::string c_of_scan(const ScanAttrs& a, CCall& call) {
  size_t carries = static_cast<size_t>(a.carries), xs = static_cast<size_t>(a.xs);
  CCarry carry(call, carries);
  int64_t length = a.length.value();
  std::string slices;
  auto slice = [&](char letter, size_t i, TypeRef type, std::string_view list) {
    slices += format("    {}[{}] = {}{} + at * {};\n", list, i, letter, i, type->elements / length);
  };
  if (length > 0) {
    for (size_t i = carries; i < carries + xs; ++i) slice('x', i, call.in[i], "inputs");
    for (size_t i = carries; i < call.out.size(); ++i) slice('y', i, call.out[i], "outputs");
  }
  std::string at = a.reverse ? format("{} - i", length - 1) : "i";
  return format(
      "{}  for (int64_t i = 0; i < {}; ++i) {{\n    const int64_t at = {};\n    (void)at;\n{}"
      "    {}(inputs, outputs, scratch);\n{}  }}\n{}",
      carry.declared, length, at, slices, call.bodies[0].name, carry.next, carry.returned);
}

constexpr SpelledOp<CCall> kCOps[] = {
    {&ops::after, by<c_of_after>},
    {&ops::argsort, by<c_of_argsort>},
    {&ops::concat, by<c_of_concat>},
    {&ops::cond, by<c_of_cond>},
    {&ops::dynamic_update_slice, by<c_of_dynamic_update>},
    {&ops::scan, by<c_of_scan>},
    {&ops::scatter, by<c_of_scatter>},
    {&ops::slice_update, by<c_of_slice_update>},
    {&ops::sort, by<c_of_sort>},
    {&ops::top_k, by<c_of_top_k>},
    {&ops::while_loop, by<c_of_while>},
};

}  // namespace

const CSpelling* c_spelling(const OpDef& op) {
  const CSpelling* spelling = find_spelling<CCall>(kCOps, op);
  return spelling ? spelling : c_product_spelling(op);
}

}  // namespace tn::source
