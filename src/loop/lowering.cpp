#include "loop/lowering.h"

#include "base/error.h"

namespace tn::loop {

/// A tensor as a kernel sees it: complex numbers are pairs of reals.
static int add_tensor(Builder& b, std::string name, const Type& type, bool written) {
  Dim size = type.shape.elements();
  return b.add_buffer(std::move(name), real_of(type.dtype),
                      is_complex(type.dtype) ? size * 2 : size, written);
}

Lowering::Lowering(std::string name, Types in_types, Types out_types)
    : b(std::move(name)), in(in_types), out(out_types) {
  for (size_t i = 0; i < in.size(); ++i) add_tensor(b, format("x{}", i), *in[i], false);
  for (size_t i = 0; i < out.size(); ++i) add_tensor(b, format("y{}", i), *out[i], true);
  if (!out.empty()) b.compute_for(out[0]->dtype);
}

Coords Lowering::loops(const Shape& shape, AxisKind kind) {
  Coords at;
  for (Dim extent : shape) at.push_back(b.axis(b.add_axis(extent, kind)));
  return at;
}

PolyId Lowering::number(Dim value) { return b.polys().from_dim(value); }
PolyId Lowering::add(PolyId x, PolyId y) { return b.polys().add(x, y); }
PolyId Lowering::sub(PolyId x, PolyId y) { return b.polys().sub(x, y); }
PolyId Lowering::mul(PolyId x, Dim factor) { return b.polys().mul(x, number(factor)); }

PolyId Lowering::flatten(const Shape& shape, const Coords& at) {
  invariant(static_cast<int>(at.size()) == shape.rank(), "{} coordinates for shape {}", at.size(),
            shape);
  PolyId position = b.polys().constant(0);
  for (int i = 0; i < shape.rank(); ++i)
    position = add(mul(position, shape[i]), at[static_cast<size_t>(i)]);
  return position;
}

Element Lowering::load(int operand, const Coords& at, MaskId mask) {
  const Type& type = *in[static_cast<size_t>(operand)];
  PolyId position = flatten(type.shape, at);
  if (!is_complex(type.dtype)) return {b.load(in_buffer(operand), position, mask), {}};
  PolyId re = b.polys().scale(position, 2);
  return {b.load(in_buffer(operand), re, mask),
          b.load(in_buffer(operand), b.polys().add_constant(re, 1), mask)};
}

void Lowering::store(int result, const Coords& at, Element value, MaskId mask, Combine combine) {
  const Type& type = *out[static_cast<size_t>(result)];
  PolyId position = flatten(type.shape, at);
  if (!is_complex(type.dtype))
    return b.store(out_buffer(result), position, value.re, mask, combine);
  PolyId re = b.polys().scale(position, 2);
  b.store(out_buffer(result), re, value.re, mask, combine);
  b.store(out_buffer(result), b.polys().add_constant(re, 1), value.im, mask, combine);
}

S Lowering::load_real(int operand, const Coords& at, MaskId mask) {
  S value = load(operand, at, mask).re;
  return b.cast(value, info(value.type()).compute);
}

void Lowering::store_real(int result, const Coords& at, S value, MaskId mask, Combine combine) {
  store(result, at, {b.cast(value, out[static_cast<size_t>(result)]->dtype), {}}, mask, combine);
}

MaskId Lowering::inside(const std::vector<std::pair<PolyId, Dim>>& bounds) {
  std::vector<PolyId> at_least_zero;
  for (auto [at, extent] : bounds) {
    at_least_zero.push_back(at);
    at_least_zero.push_back(b.polys().add_constant(sub(number(extent), at), -1));
  }
  return b.mask(at_least_zero);
}

PolyId Lowering::coordinate(S value, Dim extent) {
  S index = b.cast(value, DType::i64);
  S last = b.index(b.polys().add_constant(number(extent), -1));
  S clamped = sc::max(sc::min(index, last), constant_like(index, 0));
  return b.value_index(clamped, extent);
}

Element select(S condition, Element yes, Element no) {
  Element out{sc::select(condition, yes.re, no.re), {}};
  if (yes.is_complex()) out.im = sc::select(condition, yes.im, no.im);
  return out;
}

}  // namespace tn::loop
