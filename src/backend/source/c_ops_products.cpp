// What products, convolutions and sums of windows are in C.
#include "backend/source/c_call.h"
#include "backend/source/c_expressions.h"
#include "loop/reduction_tree.h"
#include "ops/contract.h"
#include "ops/conv_attrs.h"
#include "ops/op_decls.h"

namespace tn::source {
namespace {

using namespace ops;

std::string plus(int64_t offset) { return offset == 0 ? "" : format(" + {}", offset); }

/// An operand of a product in C.
struct COperand {
  Run rows, inner;
  int64_t batches = 1;
  std::string at = {};      // where its batch `g` begins
  std::string copied = {};  // statements that made a copy, where its axes do not lie together
};

COperand c_operand(const DotAttrs& a, CCall& call, int k) {
  Strided at = call.at[static_cast<size_t>(k)];
  Axes batch = k == 0 ? a.lhs_batch : a.rhs_batch;
  Axes inner = k == 0 ? a.lhs_contract : a.rhs_contract;
  Axes rows = free_axes(at.shape.rank(), batch, inner);
  COperand made{merge(at.shape, at.strides, rows), merge(at.shape, at.strides, inner)};
  made.at = format("x{}", k);
  if (!made.rows.merged || !made.inner.merged) {
    const InternedType& type = *call.in[static_cast<size_t>(k)];
    std::string index = format("{}", at.offset), indent = "  ";
    made.copied = format("  {0} *c{1} = tn_at(scratch, {2}), *to{1} = c{1};\n", c_type(type.dtype),
                         k, call.scratch);
    Shape shape;
    for (Axes* axes : {&batch, &rows, &inner})
      for (Axis& i : *axes) {
        int axis = shape.rank();
        made.copied += format("{0}for (int64_t i{1} = 0; i{1} < {2}; ++i{1})\n", indent, axis,
                              at.shape[i.i].value());
        index += format(" + i{} * {}", axis, at.strides[i.i]);
        indent += "  ";
        shape.push_back(at.shape[i.i]), i = axis;
      }
    made.copied += format("{}*to{}++ = x{}[{}];\n", indent, k, k, index);
    call.scratch += (type.bytes() + 63) / 64 * 64;
    at = Strided::row_major(shape);
    made.rows = merge(shape, at.strides, rows), made.inner = merge(shape, at.strides, inner);
    made.at = format("c{}", k);
  }
  made.at += plus(at.offset);
  for (int i = batch.size(); i-- > 0;) {
    int64_t extent = at.shape[batch[i].i].value(), stride = at.strides[batch[i].i];
    std::string digit = made.batches > 1 ? format("g / {}", made.batches) : "g";
    if (i > 0) digit += format(" % {}", extent);
    if (extent > 1) made.at += format(" + ({}) * {}", digit, stride);
    made.batches *= extent;
  }
  return made;
}

/// Blocks of the first operand are brought in order in `scratch`.
std::string c_of_dot(const DotAttrs& a, CCall& call) {
  DType type = call.in[0]->dtype;
  call.needs_real();
  if (call.out[0]->elements == 0) return "";
  COperand left = c_operand(a, call, 0), right = c_operand(a, call, 1);
  int64_t m = left.rows.extent, n = right.rows.extent, k = left.inner.extent;
  if (k == 0) return format("  memset(y0, 0, {});\n", call.out[0]->bytes());
  int64_t depth = is_float(type) ? loop::product_depth(k) : k;
  // Threads take whole products, each with its own scratch memory, where there are some and that is
  // little.
  int64_t each = (std::min<int64_t>(m, 960) + 12) * std::min(depth, k) * int64_t{size_of(type)};
  bool packs = type == DType::f32 || type == DType::f64;
  bool apart = left.batches >= 4 && each * left.batches <= 1 << 24;
  std::string loop, to = "y0", packed = packs ? format("tn_at(scratch, {})", call.scratch) : "0";
  if (left.batches > 1) {
    loop = format("  for (int64_t g = 0; g < {}; ++g)\n  ", left.batches);
    to = format("y0 + g * {}", m * n);
  }
  if (apart) {
    loop = format("  TN_PARALLEL({})\n{}", left.batches * m * n * k / 8, loop);
    if (packs) packed = format("tn_at(scratch, {} + g * {})", call.scratch, each);
  }
  if (packs) call.scratch += apart ? each * left.batches : each;
  return format("{}{}{}  tn_product_{}({}, {}, {}, {}, {}, {}, {},\n      {}, {}, {}, {}, {});\n",
                left.copied, right.copied, loop, type, m, n, k, depth, left.at, left.rows.stride,
                left.inner.stride, right.at, right.inner.stride, right.rows.stride, to, packed);
}

/// A convolution of x with w that gives y, of which x and w are the operands, or of its `gradient`
/// in w x and y. `scratch` is where the functions of the prelude bring elements in order: a table,
/// rows in blocks of at most 12, and the planes of one image with a block of columns behind them.
std::string c_convolution(const ConvAttrs& a, CCall& call, bool gradient) {
  call.needs_real();
  const InternedType &x = *call.in[0], &second = *call.in[1], &out = *call.out[0];
  if (out.elements == 0) return "";
  if (x.elements == 0 || second.elements == 0) return format("  memset(y0, 0, {});\n", out.bytes());
  ConvShape args = conv_shape(a, x, gradient ? out : second, gradient ? second : out);
  Ints xs = call.at[0].strides, ws = call.at[1].strides, ys = Strided::row_major(out.shape).strides;
  if (gradient) std::swap(ws, ys);
  int channel = a.channel_axis(x.rank()), missing = 5 - x.rank();
  std::vector<std::string> axes;
  int64_t planes = args.in_channels, table = 1;
  for (int i = 0; i < 3; ++i) {
    const ConvAxis& axis = args.axes[i];
    auto step = [&](const Ints& strides) {
      return i < missing ? 0 : strides[i - missing + a.first_spatial()];
    };
    axes.push_back(
        format("{{.in = {}, .taps = {}, .out = {}, .stride = {}, .low = {}, .dilation = {},\n"
               "                .kernel_dilation = {}, .x_step = {}, .w_step = {}, .y_step = {}}}",
               axis.in, axis.taps, axis.out, axis.stride, axis.low, axis.input_dilation,
               axis.kernel_dilation, step(xs), step(ws), step(ys)));
    int64_t reach = (axis.out - 1) * axis.stride + (axis.taps - 1) * axis.kernel_dilation;
    planes *= axis.kernel_dilation == 1 ? std::min(axis.stride, axis.taps) : axis.stride;
    planes *= reach / axis.stride + 1;
    if (!gradient || i < 2) table *= gradient ? axis.out : axis.taps;
  }
  int64_t deep = table * (gradient ? args.axes[2].out : args.in_channels);
  int64_t elements = (args.out_channels + 12) * deep + planes + 64;
  call.scratch = (table + 8) * 8 + elements * static_cast<int64_t>(size_of(x.dtype));
  return format(
      "  static const tn_conv shape = {{\n"
      "      .images = {}, .groups = {}, .channels_in = {}, .channels_out = {},\n"
      "      .x_image = {}, .x_channel = {}, .w_out = {}, .w_in = {}, .y_image = {}, "
      ".y_channel = {},\n      .axes = {{{}}}}};\n"
      "  tn_conv{}_{}(&shape, x0{}, x1{}, y0, scratch);\n",
      args.batch, args.groups, args.in_channels, args.out_channels, xs[0], xs[channel], ws[0],
      ws[channel], ys[0], ys[channel], join(axes, ",\n               "),
      gradient ? "_gradient" : "", x.dtype, plus(call.at[0].offset), plus(call.at[1].offset));
}

std::string c_of_conv(const ConvAttrs& a, CCall& call) { return c_convolution(a, call, false); }
std::string c_of_weights(const ConvWeightsAttrs& a, CCall& call) {
  return c_convolution(a.conv(), call, true);
}

std::string c_of_fold(const FoldAttrs& a, CCall& call) {
  const InternedType &x = *call.in[0], &out = *call.out[0];
  call.needs_real();
  if (out.elements == 0) return "";
  DType wide = info(x.dtype).compute;
  FoldPlan p(a, x.shape);
  int64_t each = p.extent[0] * p.extent[1] * p.extent[2], tensors = out.elements / each;
  call.scratch = each * static_cast<int64_t>(size_of(wide));
  std::string loops, at = "0", indent = "    ";
  for (auto [letter, counts] : {std::pair{'y', p.places}, {'k', p.size}})
    for (int i = 0; i < kMostAxes; ++i, indent += "  ")
      loops += format("{0}for (int64_t {1}{2} = 0; {1}{2} < {3}; ++{1}{2})\n", indent, letter, i,
                      counts[i]);
  for (int i = 0; i < kMostAxes; ++i)
    at = format("({}) * {} + y{} * {} + k{} * {}", at, p.extent[i], i, p.step[i], i, p.apart[i]);
  std::string sum = c_binary(loop::Op::add, wide, "*sum", c_cast(x.dtype, wide, "*x0"));
  return format(
      "  {0} *sums = scratch;\n"
      "  for (int64_t i = 0; i < {1}; ++i, y0 += {2}) {{\n"
      "    for (int64_t j = 0; j < {2}; ++j) sums[j] = 0;\n"
      "{3}{4}{{\n{4}  {0} *sum = sums + {5};\n{4}  *sum = {6}, ++x0;\n{4}}}\n"
      "    for (int64_t j = 0; j < {2}; ++j) y0[j] = {7};\n  }}\n",
      c_type(wide), tensors, each, loops, indent, at, sum, c_cast(wide, x.dtype, "sums[j]"));
}

constexpr SpelledOp<CCall> kProductOps[] = {
    {&ops::conv, by<c_of_conv>},
    {&ops::conv_weights, by<c_of_weights>},
    {&ops::dot, by<c_of_dot>},
    {&ops::window_fold, by<c_of_fold>},
};

}  // namespace

const CSpelling* c_product_spelling(const OpDef& op) {
  return find_spelling<CCall>(kProductOps, op);
}

}  // namespace tn::source
