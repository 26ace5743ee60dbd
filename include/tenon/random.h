#pragma once
// Random numbers: every draw is a function of a key, two 32-bit words. Draws without a key take the
// next one from the state of the thread.
#include "tenon/ops.h"

namespace tn::random {

/// The key of a number: its upper and lower 32 bits.
inline Tensor key(const Operand& seed) { return random_key(seed); }
/// New keys from one, as [num, 2]. Do not reuse the old key.
inline Tensor split(const Operand& key, const Shape& num = {2}) { return random_split(key, num); }
/// A new key from a key and a number.
inline Tensor fold_in(const Operand& key, const Operand& data) { return random_fold_in(key, data); }

/// Seeds the draws of this thread. Threads that are not seeded start with a key from the operating
/// system.
void seed(uint64_t number);
/// The state of this thread, from which the next draw without a key takes its key.
Tensor state();
void set_state(const Tensor& key);
/// Splits the state: one key replaces it, the other is returned. Nothing is recorded unless the
/// state itself is pending.
Tensor next_key(std::source_location at = std::source_location::current());

/// The last argument of a draw: a key, or nothing for the next key of the state. It has the place
/// of the call.
class Key {
 public:
  Key(std::source_location at = std::source_location::current()) : place_(at) {}
  Key(const Tensor& key, std::source_location at = std::source_location::current())
      : key_(key), place_(at) {}
  Key(const Selection& key, std::source_location at = std::source_location::current())
      : key_(key), place_(at) {}

  Operand operand() const {
    if (!key_.defined()) key_ = next_key(place_);
    return Operand(key_, place_);
  }

 private:
  mutable Tensor key_;
  std::source_location place_;
};

/// A shape in braces or of another tensor. A number is none here: it could be a bound.
struct Sizes : Shape {
  Sizes() = default;
  Sizes(std::initializer_list<Dim> sizes) : Shape(sizes) {}
  Sizes(const Shape& sizes) : Shape(sizes) {}
};

inline Tensor bits(const Shape& shape = {}, DType dtype = DType::u32, const Key& key = {}) {
  return random_bits(key.operand(), shape, dtype);
}
inline Tensor uniform(const Sizes& shape = {}, const Operand& low = 0.0, const Operand& high = 1.0,
                      DType dtype = DType::f32, const Key& key = {}) {
  return random_uniform(key.operand(), low, high, shape, dtype);
}
/// In Python's order.
inline Tensor uniform(const Operand& low, const Operand& high, const Sizes& shape,
                      DType dtype = DType::f32, const Key& key = {}) {
  return random_uniform(key.operand(), low, high, shape, dtype);
}
inline Tensor normal(const Shape& shape = {}, const Operand& loc = 0.0, const Operand& scale = 1.0,
                     DType dtype = DType::f32, const Key& key = {}) {
  return random_normal(key.operand(), loc, scale, shape, dtype);
}
/// PyTorch's names: uniform in [0, 1), and normal numbers.
inline Tensor rand(const Shape& shape = {}, DType dtype = DType::f32, const Key& key = {}) {
  return uniform(shape, 0.0, 1.0, dtype, key);
}
inline Tensor randn(const Shape& shape = {}, DType dtype = DType::f32, const Key& key = {}) {
  return normal(shape, 0.0, 1.0, dtype, key);
}
inline Tensor truncated_normal(const Operand& lower, const Operand& upper,
                               const Maybe<Shape>& shape = {}, DType dtype = DType::f32,
                               const Key& key = {}) {
  return random_truncated_normal(key.operand(), lower, upper, shape, dtype);
}
inline Tensor multivariate_normal(const Operand& mean, const Operand& cov,
                                  const Maybe<Shape>& shape = {}, DType dtype = DType::f32,
                                  const Key& key = {}) {
  return random_multivariate_normal(key.operand(), mean, cov, shape, dtype);
}
inline Tensor gumbel(const Shape& shape = {}, DType dtype = DType::f32, const Key& key = {}) {
  return random_gumbel(key.operand(), shape, dtype);
}
inline Tensor laplace(const Shape& shape = {}, const Operand& loc = 0.0, const Operand& scale = 1.0,
                      DType dtype = DType::f32, const Key& key = {}) {
  return random_laplace(key.operand(), loc, scale, shape, dtype);
}
inline Tensor exponential(const Shape& shape = {}, const Operand& scale = 1.0,
                          DType dtype = DType::f32, const Key& key = {}) {
  return random_exponential(key.operand(), scale, shape, dtype);
}
inline Tensor gamma(const Operand& a, const Maybe<Shape>& shape = {}, DType dtype = DType::f32,
                    const Key& key = {}) {
  return random_gamma(key.operand(), a, shape, dtype);
}
inline Tensor poisson(const Operand& lam = 1.0, const Maybe<Shape>& shape = {},
                      DType dtype = DType::i64, const Key& key = {}) {
  return random_poisson(key.operand(), lam, shape, dtype);
}
inline Tensor bernoulli(const Operand& p = 0.5, const Maybe<Shape>& shape = {},
                        const Key& key = {}) {
  return random_bernoulli(key.operand(), p, shape);
}
inline Tensor categorical(const Operand& logits, Axis axis = -1, const Maybe<Shape>& shape = {},
                          const Key& key = {}) {
  return random_categorical(key.operand(), logits, axis, shape);
}
inline Tensor multinomial(const Operand& weights, int64_t num_samples, bool replacement = false,
                          const Key& key = {}) {
  return random_multinomial(key.operand(), weights, num_samples, replacement);
}
/// Uniform numbers in [0, 1), and standard normal numbers, like `x`.
inline Tensor rand_like(const Tensor& x, const Key& key = {}) {
  return uniform(x.shape(), 0.0, 1.0, x.dtype(), key);
}
inline Tensor randn_like(const Tensor& x, const Key& key = {}) {
  return normal(x.shape(), 0.0, 1.0, x.dtype(), key);
}
inline Tensor randint(const Sizes& shape, const Operand& low, const Operand& high,
                      DType dtype = DType::i64, const Key& key = {}) {
  return random_randint(key.operand(), low, high, shape, dtype);
}
/// In Python's order.
inline Tensor randint(const Operand& low, const Operand& high, const Sizes& shape = {},
                      DType dtype = DType::i64, const Key& key = {}) {
  return random_randint(key.operand(), low, high, shape, dtype);
}
inline Tensor permutation(const Operand& x, Axis axis = 0, bool independent = false,
                          const Key& key = {}) {
  return random_permutation(key.operand(), x, axis, independent);
}
inline Tensor choice(const Operand& x, const Shape& shape = {}, bool replace = true,
                     const Operand& p = nullptr, Axis axis = 0, const Key& key = {}) {
  return random_choice(key.operand(), x, p, shape, replace, axis);
}

}  // namespace tn::random
