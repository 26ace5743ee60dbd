// Rows of attention, with the exp and the reduction tree of the interpreter.
#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/cpu/block_op_levels.h"
#include "backend/cpu/kernels/attention_blocks.h"
#include "base/half.h"
#include "loop/math_block.h"

namespace tn::TN_LEVEL {
namespace {

using loop::kChunk;
using loop::kLanes;
using loop::Monoid;

struct Half {
  uint16_t bits;
  [[gnu::always_inline]] explicit operator float() const { return float16_to_float(bits); }
  [[gnu::always_inline]] static Half from(float x) { return {float_to_float16(x)}; }
};
struct Brain {
  uint16_t bits;
  [[gnu::always_inline]] explicit operator float() const { return bfloat16_to_float(bits); }
  [[gnu::always_inline]] static Brain from(float x) { return {float_to_bfloat16(x)}; }
};

/// Calls `body(tag)` with a value of the type that operands computed in T have.
template <class T, class Body>
void with_stored(Element type, Body body) {
  if constexpr (sizeof(T) == 8) return body(double{});
  if (type == Element::f16) return body(Half{});
  if (type == Element::bf16) return body(Brain{});
  body(float{});
}

/// As casts go: halves by way of f32.
template <class T, class S>
[[gnu::always_inline]] inline T widened(S x) {
  if constexpr (std::is_class_v<S>)
    return static_cast<float>(x);
  else
    return static_cast<T>(x);
}

template <class T>
void scale(Element type, const void* from, int64_t stride, int64_t n, T factor, T* to) {
  with_stored<T>(type, [&](auto tag) {
    auto* x = static_cast<const decltype(tag)*>(from);
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) to[i] = widened<T>(x[i]) * factor;
    else
      for (int64_t i = 0; i < n; ++i) to[i] = widened<T>(x[i * stride]) * factor;
  });
}

template <class T>
void mask(Element type, const void* mask, int64_t stride, int64_t n, T* scores) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  if (type == Element::boolean) {
    auto* keeps = static_cast<const uint8_t*>(mask);
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) scores[i] = keeps[i] ? scores[i] : kNever;
    else
      for (int64_t i = 0; i < n; ++i) scores[i] = keeps[i * stride] ? scores[i] : kNever;
    return;
  }
  auto add = [&](auto tag) {
    auto* x = static_cast<const decltype(tag)*>(mask);
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) scores[i] += widened<T>(x[i]);
    else
      for (int64_t i = 0; i < n; ++i) scores[i] += widened<T>(x[i * stride]);
  };
  type == Element::f64 ? with_stored<double>(type, add) : with_stored<float>(type, add);
}

/// A row folded by the tree: chunks, then the results of the chunks by lanes.
template <class T>
T fold(Monoid monoid, const T* x, int64_t n) {
  const loop::BlockOps& ops = cpu::block_ops(CpuLevel::TN_LEVEL);
  DType type = sizeof(T) == 4 ? DType::f32 : DType::f64;
  const loop::RunFns& run = ops.run[static_cast<int>(monoid)][static_cast<int>(type)];
  T lanes[kLanes], last;
  int64_t chunks = (n + kChunk - 1) / kChunk;
  for (int64_t i = 0; i < chunks; ++i) {
    run.rows(&last, x + i * kChunk, 1, n - i * kChunk < kChunk ? n - i * kChunk : kChunk);
    if (i < kLanes) {
      lanes[i] = last;
    } else {
      T pair[] = {lanes[i % kLanes], last};
      run.rows(lanes + i % kLanes, pair, 1, 2);
    }
  }
  run.rows(&last, lanes, 1, chunks < kLanes ? chunks : kLanes);
  return last;
}

template <class T>
T weigh(T* scores, int64_t n) {
  T largest = fold(Monoid::max, scores, n);
  T shift = std::isfinite(largest) ? largest : T{0};
  math::block([shift](auto x) { return math::exp(x - shift); }, scores, scores, n);
  T total = fold(Monoid::add, scores, n);
  return total == 0 ? T{1} : total;
}

template <class T>
void divide(const T* from, T divisor, int64_t n, Element type, void* to) {
  with_stored<T>(type, [&](auto tag) {
    using S = decltype(tag);
    auto* out = static_cast<S*>(to);
    for (int64_t i = 0; i < n; ++i)
      if constexpr (std::is_class_v<S>)
        out[i] = S::from(static_cast<float>(from[i] / divisor));
      else
        out[i] = static_cast<S>(from[i] / divisor);
  });
}

template <class T>
constexpr AttentionRows<T> rows() {
  return {scale<T>, mask<T>, weigh<T>, divide<T>};
}

}  // namespace

extern const AttentionLevel attention_level;
constinit const AttentionLevel attention_level = {rows<float>(), rows<double>()};

}  // namespace tn::TN_LEVEL
