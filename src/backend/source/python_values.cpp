// What follows from an op's family: elementwise ops from their scalar functions, reductions from
// monoids, movements from views.
#include <algorithm>

#include "backend/source/python_function.h"
#include "backend/source/python_scalars.h"
#include "base/error.h"

namespace tn::source {

using loop::Monoid;
using loop::Op;

namespace {

std::vector<int> uses_within(const loop::Kernel& kernel, std::span<const loop::ValueId> results) {
  std::vector<int> uses(kernel.values.size());
  for (loop::ValueId id : results) ++uses[static_cast<size_t>(id)];
  for (size_t i = kernel.values.size(); i-- > 0;) {
    const loop::Value& v = kernel.values[i];
    if (!uses[i] || v.op == Op::argument) continue;
    for (loop::ValueId x : {v.a, v.b, v.c})
      if (x != loop::kNone) ++uses[static_cast<size_t>(x)];
  }
  return uses;
}

/// Operations that are computed, not given.
int operations(const loop::Kernel& kernel, loop::ValueId result) {
  loop::ValueId results[] = {result};
  std::vector<int> uses = uses_within(kernel, results);
  int count = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    Op op = kernel.values[i].op;
    count += uses[i] > 0 && op != Op::argument && op != Op::constant;
  }
  return count;
}

Expression filled(std::string_view text, const Expression& x) {
  return expression(fill(text, [&](std::string_view) { return x; }));
}

std::string plain_axes(const Axes& axes) {
  if (axes.size() == 1) return format("{}", axes[0].i);
  std::vector<int> list;
  for (Axis a : axes) list.push_back(a.i);
  return format("({})", join(list, ", "));
}

}  // namespace

/// The scalar function is run on arguments, and what it does is written operation by operation.
Expression FunctionWriter::elementwise(const GraphOp& op) {
  int count = static_cast<int>(in.size());
  bool complex = false;
  for (TypeRef type : in) complex |= is_complex(type->dtype);
  loop::Builder b("scalar");
  std::vector<loop::S> arguments;
  for (TypeRef type : in) arguments.push_back(b.argument(b.add_argument(), type->dtype));
  bool real_only = complex && op.op->rules->complex;
  loop::S made{};
  if (!real_only || op.op->rules->scalar) {
    // Narrow floats: one operation rounds once by itself, a formula is computed in f32.
    made = op.op->rules->scalar(op.attr_data(), arguments.data());
    bool narrow = false;
    for (TypeRef type : in)
      narrow |= is_float(type->dtype) && info(type->dtype).compute != type->dtype;
    if (narrow && operations(b.kernel(), made.id) > 1) {
      b = loop::Builder("scalar"), arguments.clear();
      for (TypeRef type : in) {
        loop::S x = b.argument(b.add_argument(), type->dtype);
        arguments.push_back(is_float(type->dtype) ? b.cast(x, info(type->dtype).compute) : x);
      }
      made = op.op->rules->scalar(op.attr_data(), arguments.data());
    }
  }
  std::vector<Expression> operands;
  loop::ValueId results[] = {made.id};
  std::vector<int> uses = uses_within(b.kernel(), results);
  if (real_only) {
    bool one = operations(b.kernel(), made.id) == 1 &&
               takes_complex(b.kernel().values[static_cast<size_t>(made.id)].op);
    if (!one) return complex_by_parts(op);
  }
  for (int k = 0, at = 0; k < count; ++k) {
    while (b.kernel().values[static_cast<size_t>(at)].op != Op::argument) ++at;
    operands.push_back(operand(k, uses[static_cast<size_t>(at++)] > 1));
  }
  Expression value = recorded(b.kernel(), made.id, operands);
  DType type = b.value(made).type;
  if (type != out[0]->dtype && !value.literal) return cast_text(target, value, type, out[0]->dtype);
  return value.literal ? expression(filled_with(value)) : value;
}

/// A number for every element of the result.
std::string FunctionWriter::filled_with(const Expression& number) {
  DType type = out[0]->dtype;
  if (out[0]->rank() == 0) return typed(target, number, type);
  std::string shape = shape_text(out[0]->shape), dtype = dtype_text(target, carrier(target, type));
  bool zero = number.text == "0.0" || number.text == "0" || number.text == "False";
  bool one = number.text == "1.0" || number.text == "1" || number.text == "True";
  return fill(format("{{xp}}.{}({}{}, dtype={}{})",
                     zero  ? "zeros"
                     : one ? "ones"
                           : "full",
                     shape, zero || one ? "" : ", " + number.text, dtype,
                     is("torch") ? ", device={device}" : ""));
}

/// Values that are used more than once get names.
Expression FunctionWriter::recorded(const loop::Kernel& kernel, loop::ValueId result,
                                    std::span<const Expression> operands) {
  loop::ValueId results[] = {result};
  std::vector<int> uses = uses_within(kernel, results);
  std::vector<Expression> made(kernel.values.size());
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    const loop::Value& v = kernel.values[i];
    if (!uses[i]) continue;
    if (v.op == Op::argument) {
      made[i] = operands[static_cast<size_t>(v.a)];
      continue;
    }
    if (v.op == Op::constant) {
      made[i] = literal(target, v.literal, v.type);
      continue;
    }
    std::vector<Expression> given;
    for (loop::ValueId x : {v.a, v.b, v.c})
      if (x != loop::kNone) given.push_back(made[static_cast<size_t>(x)]);
    DType type = kernel.values[static_cast<size_t>(v.op == Op::select ? v.b : v.a)].type;
    made[i] = operation(target, v, type, given);
    if (uses[i] > 1 && !made[i].is_name()) {
      std::string name = scope_.names.fresh(v.type == DType::b1 ? "mask" : "part");
      statement(format("{} = {}", name, made[i].text));
      made[i] = {name};
    }
  }
  return made[static_cast<size_t>(result)];
}

Expression FunctionWriter::complex_by_parts(const GraphOp& op) {
  loop::Builder b("scalar");
  std::vector<loop::Z> arguments;
  std::vector<Expression> operands;
  for (int k = 0; k < static_cast<int>(in.size()); ++k) {
    DType type = in[static_cast<size_t>(k)]->dtype;
    Expression x = operand(k, true);
    if (x.literal) x = expression(typed(target, x, type));
    loop::Z z{b.argument(b.add_argument(), real_of(type)), {}};
    operands.push_back(is_complex(type) ? filled("{0}.real", x) : x);
    if (is_complex(type)) {
      z.im = b.argument(b.add_argument(), real_of(type));
      operands.push_back(filled("{0}.imag", x));
    }
    arguments.push_back(z);
  }
  loop::Z made = op.op->rules->complex(op.attr_data(), arguments.data());
  Expression re = recorded(b.kernel(), made.re.id, operands);
  DType type = b.value(made.re).type;
  if (!is_complex(out[0]->dtype)) {
    if (re.literal) return expression(filled_with(re));
    return type == out[0]->dtype ? re : cast_text(target, re, type, out[0]->dtype);
  }
  bool itself = made.re.id == arguments[0].re.id && made.im.id == arguments[0].im.id;
  if (itself) return operand(0);
  Expression im = recorded(b.kernel(), made.im.id, operands);
  for (Expression* part : {&re, &im})
    if (part->literal) *part = expression(typed(target, *part, real_of(out[0]->dtype)));
  return {format("_complex({}, {})", re.text, im.text)};
}

std::string FunctionWriter::reduction(const GraphOp& op) {
  Axes axes;
  bool keepdims = false;
  op.op->reduce_axes(op.attr_data(), axes, keepdims);
  DType type = out[0]->dtype;
  if (axes.empty()) return fill("{0}");
  bool torch = is("torch");
  Monoid monoid = op.op->monoid;
  bool sums = monoid == Monoid::add || monoid == Monoid::mul;
  std::string_view name = monoid == Monoid::add    ? "sum"
                          : monoid == Monoid::mul  ? "prod"
                          : monoid == Monoid::max  ? (torch ? "amax" : "max")
                          : monoid == Monoid::min  ? (torch ? "amin" : "min")
                          : monoid == Monoid::and_ ? "all"
                                                   : "any";
  std::string options;
  bool whole = axes.size() == in[0]->rank() && !keepdims;
  bool one_by_one = torch && monoid == Monoid::mul && axes.size() > 1;
  if (!whole && !one_by_one) options += format(", {}={}", torch ? "dim" : "axis", plain_axes(axes));
  if (keepdims && !one_by_one) options += format(", {}=True", torch ? "keepdim" : "keepdims");
  bool narrow = sums && is("numpy") && type == DType::f16;
  bool widens = sums && is_integer(type) && size_of(type) < 8;
  if (narrow) options += ", dtype=np.float32";
  if (widens) options += format(", dtype={}", dtype_text(target, carrier(target, type)));
  std::string text = fill(format("{{xp}}.{}({{0}}{})", name, options));
  if (one_by_one && !whole) {  // it takes one axis at a time
    text = fill("{0}");
    if (!operand(0).is_name()) text = "(" + text + ")";
    for (int i = axes.size(); i-- > 0;)
      text += format(".prod({}{})", axes[i].i, keepdims ? ", keepdim=True" : "");
  }
  if (narrow) text += ".astype(np.float16)";
  if (sums && carrier(target, type) != type)
    text += type == DType::u16 ? " & 0xFFFF" : " & 0xFFFFFFFF";
  return text;
}

std::string FunctionWriter::movement(const GraphOp& op) {
  const Type& from = *in[0];
  View view = op.op->view(op.attr_data(), from);
  std::string shape = shape_text(view.shape);
  Expression x = operand(0);
  switch (view.kind) {
    case View::Kind::broadcast:
      if (x.literal) return filled_with(x);
      return fill(format("{{xp}}.broadcast_to({{0}}, {})", shape));
    case View::Kind::reshape:
      if (identical(view.shape, from.shape)) return fill("{0}");
      return fill(format("{{0}}.reshape({})", shape));
    case View::Kind::permute: {
      int rank = from.rank();
      bool last_two =
          rank >= 2 && view.perm[rank - 1].i == rank - 2 && view.perm[rank - 2].i == rank - 1;
      for (int k = 0; k + 2 < rank; ++k) last_two &= view.perm[k].i == k;
      if (last_two) return fill(rank == 2 ? "{0}.T" : "{0}.mT");
      std::vector<int> order;
      for (Axis a : view.perm) order.push_back(a.i);
      return fill(format("{}({{0}}, ({}{}))", is("torch") ? "torch.permute" : "{xp}.transpose",
                         join(order, ", "), rank == 1 ? "," : ""));
    }
    case View::Kind::slice:
      return sliced(view, from);
    case View::Kind::reverse:
      return fill(format("{{xp}}.flip({{0}}, {})", is("torch") && view.axes.size() == 1
                                                       ? format("({},)", view.axes[0].i)
                                                       : plain_axes(view.axes)));
    case View::Kind::window:
      return fill(format("_windows({{0}}, {{size}}, {{step}}, {{dilation}})"));
  }
  throw_internal("python source: no such view");
}

/// Steps backwards are taken forwards and turned round.
std::string FunctionWriter::sliced(const View& view, const Type& from) {
  std::vector<std::string> parts;
  Axes turned;
  for (int k = 0; k < from.rank(); ++k) {
    int64_t step = view.step[k];
    Dim count = view.shape[k];
    Offset first = view.start[k];
    if (step < 0) {
      turned.push_back(k);
      first = first - Offset(Dim(-step) * (count - Dim(1)));
    }
    Dim apart = Dim(std::abs(step));
    Offset end = first + Offset(apart.is(1) ? count : apart * (count - Dim(1)) + Dim(1));
    if (count.is(0)) end = first;
    bool from_start = first == Offset(0), to_end = end == Offset(from.shape[k]);
    std::string part = (from_start ? "" : size(first)) + ":" + (to_end ? "" : size(end));
    if (!apart.is(1)) part += ":" + size(apart);
    parts.push_back(part);
  }
  while (!parts.empty() && parts.back() == ":") parts.pop_back();
  std::string text = parts.empty() ? fill("{0}") : fill(format("{{0}}[{}]", join(parts, ", ")));
  if (turned.empty()) return text;
  return fill("{xp}") + format(".flip({}, {})", text,
                               is("torch") && turned.size() == 1 ? format("({},)", turned[0].i)
                                                                 : plain_axes(turned));
}

}  // namespace tn::source
