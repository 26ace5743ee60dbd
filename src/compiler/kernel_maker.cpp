#include "compiler/kernel_maker.h"

#include "base/error.h"

namespace tn {

using loop::S;
using loop::Z;

loop::S number_part(loop::Builder& b, std::vector<int32_t>& scalars, const Home& home, DType type,
                    bool imaginary) {
  bool narrow = info(type).compute != type;
  DType read_as = narrow ? DType::f64 : type;
  loop::S x;
  if (home.kind == Home::Kind::argument) {
    scalars.push_back(imaginary ? ~home.argument : home.argument);
    x = b.argument(b.add_argument(), read_as);
  } else {
    bool split = imaginary || home.value.kind == Kind::complex;
    x = b.constant(split ? Scalar(imaginary ? home.value.imag : home.value.real) : home.value,
                   read_as);
  }
  return narrow ? b.cast(b.cast(x, type), info(type).compute) : x;
}

loop::Kernel nest_of(const Graph& graph, const GraphOp& op) {
  std::vector<TypeRef> in = graph.in_types(op);
  loop::Lowering lowering(std::string(op.op->name), in, graph.out_types(op));
  op.op->lower(op.attr_data(), lowering);
  return lowering.b.finish();
}

KernelMaker::KernelMaker(const Graph& graph, std::string name, const Shape& domain,
                         const Axes& reduced)
    : graph_(graph), b_(std::move(name)), nest_(domain, reduced) {}

int KernelMaker::parameter(const Home& home, DType dtype, bool written) {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i] == home.buffer && b_.kernel().buffers[i].type == real_of(dtype))
      return static_cast<int>(i);
  buffers.push_back(home.buffer);
  std::string name = format("{}{}", written ? "y" : "x", buffers.size() - 1);
  return b_.add_buffer(name, real_of(dtype), is_complex(dtype) ? home.size * 2 : home.size,
                       written);
}

void KernelMaker::read(Val v, const Home& from) {
  if (reads_.count(v) || uniform_.count(v)) return;
  if (from.kind != Home::Kind::buffer) {
    uniform_[v] = from;
    return;
  }
  DType dtype = graph_.types[static_cast<size_t>(v)]->dtype;
  reads_[v] = {v, nest_.add(from.at), parameter(from, dtype, false)};
}

void KernelMaker::write(Val v, const Home& to) {
  DType dtype = graph_.types[static_cast<size_t>(v)]->dtype;
  writes_.push_back({v, nest_.add_result(), parameter(to, dtype, true)});
}

void KernelMaker::start() { nest_.build(b_); }

loop::Element KernelMaker::load(const Access& access) {
  DType dtype = graph_.types[static_cast<size_t>(access.v)]->dtype;
  if (!is_complex(dtype)) {
    S x = b_.load(access.parameter, nest_.index(b_, access.number));
    return {b_.cast(x, info(dtype).compute), {}};
  }
  return {b_.load(access.parameter, nest_.index(b_, access.number, 2)),
          b_.load(access.parameter, nest_.index(b_, access.number, 2, 1))};
}

loop::Element KernelMaker::value(Val v) {
  auto found = made_.find(v);
  if (found != made_.end()) return found->second;
  if (auto read = reads_.find(v); read != reads_.end()) return made_[v] = load(read->second);
  auto number = uniform_.find(v);
  invariant(number != uniform_.end(), "value %{} is not available in its kernel", v);
  DType dtype = graph_.types[static_cast<size_t>(v)]->dtype;
  loop::Element element{number_part(b_, scalars, number->second, real_of(dtype), false), {}};
  if (is_complex(dtype))
    element.im = number_part(b_, scalars, number->second, real_of(dtype), true);
  return made_[v] = element;
}

/// Records `made` as the value of `v`, rounded to its type, and stores it where it is wanted.
void KernelMaker::define(Val v, loop::Element made) {
  DType dtype = graph_.types[static_cast<size_t>(v)]->dtype;
  DType real = real_of(dtype), wide = info(real).compute;
  loop::Element stored{b_.cast(made.re, real), {}};
  if (is_complex(dtype))
    stored.im = made.is_complex() ? b_.cast(made.im, real) : b_.constant(Scalar(0.0), real);
  loop::Element kept{b_.cast(stored.re, wide), stored.im};
  made_[v] = kept;
  for (const Access& write : writes_) {
    if (write.v != v) continue;
    if (!is_complex(dtype)) {
      b_.store(write.parameter, nest_.index(b_, write.number), stored.re);
    } else {
      b_.store(write.parameter, nest_.index(b_, write.number, 2), stored.re);
      b_.store(write.parameter, nest_.index(b_, write.number, 2, 1), stored.im);
    }
  }
}

loop::Element KernelMaker::reduce(const GraphOp& op, loop::Element x) {
  loop::Element folded{b_.reduce(op.op->monoid, x.re, nest_.reduced()), {}};
  if (x.is_complex()) folded.im = b_.reduce(op.op->monoid, x.im, nest_.reduced());
  return folded;
}

void KernelMaker::compute(const GraphOp& op) {
  std::vector<loop::Element> in;
  bool complex = false;
  for (Val v : graph_.in(op)) {
    in.push_back(value(v));
    complex |= in.back().is_complex();
  }
  if (op.op->family == Family::reduction) return define(op.out, reduce(op, in[0]));
  if (complex) {
    std::vector<Z> z;
    for (const loop::Element& e : in) z.push_back({e.re, e.im});
    Z made = op.op->complex(op.attr_data(), z.data());
    return define(op.out, {made.re, made.im});
  }
  std::vector<S> s;
  for (const loop::Element& e : in) s.push_back(e.re);
  define(op.out, {op.op->scalar(op.attr_data(), s.data()), {}});
}

void KernelMaker::copy(Val v) { define(v, value(v)); }

loop::Kernel KernelMaker::finish() { return b_.finish(); }

}  // namespace tn
