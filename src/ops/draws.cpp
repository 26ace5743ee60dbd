#include "ops/draws.h"

#include <cmath>

#include "base/error.h"
#include "ir/emit.h"
#include "ir/sizes.h"
#include "tenon/operators.h"

namespace tn::ops {

namespace {

/// How a floating type is drawn: from which bits, and how many of them.
struct Mantissa {
  DType bits;
  int width, kept, least_exponent;
};

Mantissa mantissa_of(DType type) {
  switch (type) {
    case DType::f64:
      return {DType::u64, 64, 52, -1022};
    case DType::f16:
      return {DType::u16, 16, 10, -14};
    case DType::bf16:
      return {DType::u8, 8, 7, -126};
    default:
      return {DType::u32, 32, 23, -126};
  }
}

Tensor number(double value, DType type) { return make_scalar(value, type, false); }

}  // namespace

static bool is_key(const Type& t) {
  return t.dtype == DType::u32 && t.rank() > 0 && decide_equal(t.shape[t.rank() - 1], 2);
}

void check_key(std::string_view op, const Tensor& key) {
  const Type& t = *type_of(key);
  if (!is_key(t))
    fail(
        t.dtype == DType::u32 ? Fault::value : Fault::type,
        Hint{"make one from a number: random.key(0)", "make one from a number: tn::random::key(0)"},
        "{}: a key is u32[2]: {}", op, t);
}

void check_one_key(std::string_view op, const Tensor& key) {
  check_key(op, key);
  if (key.rank() > 1)
    fail(Hint{"map over them: vmap(lambda key: random.uniform(key=key))(keys)",
              "map over them: tn::vmap([](tn::Tensor key) { ... })(keys)"},
         "{}: needs one key, not several: {}", op, *type_of(key));
}

std::optional<Scalar> known_number(const Tensor& x) {
  if (!is_scalar(*x.node())) return {};
  return scalar_value(*x.node());
}

bool is_number(const Tensor& x, double value) {
  auto known = known_number(x);
  return known && known->real == value;
}

Tensor parameter(std::string_view op, std::string_view name, const Tensor& x, const Shape& shape,
                 DType type) {
  check_kind(op, is_complex(type) ? every_type : ordered, x.dtype());
  if (is_key(*type_of(x)) && (is_float(type) || is_complex(type)))
    fail(Fault::type,
         Hint{"pass it by name, as key=...",
              "pass it as the last argument, after the element type: random::normal({3}, 0.0, 1.0, "
              "tn::float32, key)"},
         "{}: {} is a key: {}", op, name, *type_of(x));
  bool fits = x.rank() <= shape.rank();
  for (int k = 0; fits && k < x.rank(); ++k) {
    Dim extent = x.shape()[k];
    fits = decide_equal(extent, shape[shape.rank() - x.rank() + k]) || decide_equal(extent, 1);
  }
  if (!fits)
    fail(Hint{"give the shape of the result"}, "{}: {} does not broadcast to shape {}: {}", op,
         name, shape, *type_of(x));
  return cast_to(x, type);
}

Tensors split_key(const Tensor& key, int64_t n) {
  return tn::unstack(tn::random_split(key, {n}), key.rank() - 1);
}

Tensor draw_unit(const Tensor& key, const Shape& shape, DType type) {
  Mantissa m = mantissa_of(type);
  Tensor whole = tn::random_bits(key, shape, m.bits) >> (m.width - m.kept);
  return tn::astype(whole, type) * std::ldexp(1, -m.kept);
}

Tensor draw_between(const Tensor& key, const Shape& shape, DType type, const Tensor& low,
                    const Tensor& high) {
  Tensor u = draw_unit(key, shape, type);
  if (is_number(low, 0) && is_number(high, 1)) return u;
  return tn::maximum(low, u * (high - low) + low);
}

Tensor draw_symmetric(const Tensor& key, const Shape& shape, DType type) {
  double after_minus_one = std::ldexp(1, -mantissa_of(type).kept - 1) - 1;
  return draw_between(key, shape, type, number(after_minus_one, type), number(1, type));
}

Tensor draw_normal(const Tensor& key, const Shape& shape, DType type) {
  return tn::erfinv(draw_symmetric(key, shape, type)) * std::sqrt(2.0);
}

Tensor draw_gumbel(const Tensor& key, const Shape& shape, DType type) {
  Tensor least = number(std::ldexp(1, mantissa_of(type).least_exponent), type);
  return -tn::log(-tn::log(draw_between(key, shape, type, least, number(1, type))));
}

}  // namespace tn::ops
