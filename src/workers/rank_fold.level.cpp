// Folds blocks of elements that stay in the L1 cache, in the order of workers/rank_fold.h.
#include <algorithm>
#include <bit>
#include <complex>
#include <cstring>
#include <type_traits>

#include "base/half.h"
#include "workers/rank_fold_kernels.h"

namespace tn::TN_LEVEL {
namespace {

using workers::Fold;

constexpr int64_t kBlock = 512;  // elements
constexpr int kDeepest = 16;     // levels of the tree: 65,536 workers

// The type in which elements of a stored type are folded.
template <class T>
struct Folded {
  using Type = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
template <>
struct Folded<Float16Bits> {
  using Type = float;
  static float load(Float16Bits x) { return float16_to_float(x.bits); }
  static Float16Bits store(float x) { return {float_to_float16(x)}; }
};
template <>
struct Folded<BFloat16Bits> {
  using Type = float;
  static float load(BFloat16Bits x) { return bfloat16_to_float(x.bits); }
  static BFloat16Bits store(float x) { return {float_to_bfloat16(x)}; }
};

/// Integers that wrap around, as the library's do.
template <class A>
auto wrapping(A a) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<std::common_type_t<std::make_unsigned_t<A>, unsigned>>(a);
  else
    return a;
}

/// NaN wins. Of equal extremes, such as zeros of both signs, the last, as in folds of a worker.
template <Fold K, class A>
A combine(A a, A b) {
  if constexpr (K == Fold::sum)
    return static_cast<A>(wrapping(a) + wrapping(b));
  else if constexpr (K == Fold::product)
    return static_cast<A>(wrapping(a) * wrapping(b));
  else if constexpr (K == Fold::max)
    return a != a || a > b ? a : b;
  else
    return a != a || a < b ? a : b;
}

template <Fold K, class T>
class BlockFold {
  using A = typename Folded<T>::Type;

 public:
  BlockFold(const void* const* in, int64_t at, int64_t count) : in_(in), at_(at), count_(count) {}

  /// To each of `out`, at the place of the block.
  void into(int operands, std::span<void* const> out, bool streams) {
    fold(0, operands, 0);
    if constexpr (std::is_same_v<A, T>) return copy(room_[0], out, streams);
    T made[kBlock];
    for (int64_t i = 0; i < count_; ++i) made[i] = Folded<T>::store(room_[0][i]);
    copy(made, out, streams);
  }

 private:
  void copy(const void* made, std::span<void* const> out, bool streams) const {
    auto bytes = static_cast<size_t>(count_) * sizeof(T);
    for (void* each : out) {
      T* to = static_cast<T*>(each) + at_;
      if (streams)
        workers::stream_copy(to, made, bytes);
      else
        std::memcpy(static_cast<void*>(to), made, bytes);
    }
  }
  const T* operand(int k) const { return static_cast<const T*>(in_[k]) + at_; }

  // Operands [first, last) into the room of this depth.
  void fold(int first, int last, int depth) {
    A* to = room_[depth];
    if (last - first == 1) {
      const T* x = operand(first);
      for (int64_t i = 0; i < count_; ++i) to[i] = Folded<T>::load(x[i]);
      return;
    }
    if (last - first == 2) {
      const T *x = operand(first), *y = operand(first + 1);
      for (int64_t i = 0; i < count_; ++i)
        to[i] = combine<K>(Folded<T>::load(x[i]), Folded<T>::load(y[i]));
      return;
    }
    int middle = first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
    fold(first, middle, depth);
    fold(middle, last, depth + 1);
    const A* right = room_[depth + 1];
    for (int64_t i = 0; i < count_; ++i) to[i] = combine<K>(to[i], right[i]);
  }

  const void* const* in_;
  int64_t at_, count_;
  A room_[kDeepest + 1][kBlock];
};

template <Fold K, class T>
void fold_all(std::span<const void* const> in, std::span<void* const> out, int64_t count,
              bool streams) {
  for (int64_t at = 0; at < count; at += kBlock)
    BlockFold<K, T>(in.data(), at, std::min(kBlock, count - at))
        .into(static_cast<int>(in.size()), out, streams);
}

template <class T>
constexpr bool kIsOrdered = true;
template <class T>
constexpr bool kIsOrdered<std::complex<T>> = false;

void fold(Fold kind, Element type, std::span<const void* const> in, std::span<void* const> out,
          int64_t count, bool streams) {
  with_element(type, [&](auto element) {
    using T = decltype(element);
    if constexpr (kIsOrdered<T>) {
      bool is_any = type == Element::boolean && kind == Fold::sum;
      if (kind == Fold::max || is_any) return fold_all<Fold::max, T>(in, out, count, streams);
      if (kind == Fold::min) return fold_all<Fold::min, T>(in, out, count, streams);
    }
    if (kind == Fold::product) return fold_all<Fold::product, T>(in, out, count, streams);
    fold_all<Fold::sum, T>(in, out, count, streams);
  });
}

}  // namespace

extern const workers::FoldLevel fold_level = {fold};

}  // namespace tn::TN_LEVEL
