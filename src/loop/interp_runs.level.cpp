// Reductions, scans and scatters along contiguous runs.
#include "loop/interpreter_ops.h"
#include "loop/interpreter_scalar.h"

namespace tn::TN_LEVEL {
namespace {

using loop::BlockOps;
using loop::kLanes;
using loop::Monoid;

/// Lane k is element k: `kLanes` of T in as many registers as it takes.
template <class T>
struct Lanes {
  static constexpr int kBytes = __BIGGEST_ALIGNMENT__;  // of a vector register
  typedef T Vector __attribute__((vector_size(kBytes)));
  typedef T Unaligned __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  static constexpr int kPerVector = kBytes / sizeof(T);
  static constexpr int kVectors = kLanes / kPerVector;
  Vector at[kVectors];
};

// References, because the calling convention of vectors depends on the level.
template <class F, class V>
[[gnu::always_inline]] inline void combine(V& acc, const V& x) {
  if constexpr (std::is_same_v<F, Add>) acc = acc + x;
  if constexpr (std::is_same_v<F, Mul>) acc = acc * x;
  if constexpr (std::is_same_v<F, And>) acc = acc & x;
  if constexpr (std::is_same_v<F, Or>) acc = acc | x;
  if constexpr (std::is_same_v<F, Max>) acc = ((acc > x) | (acc != acc)) ? acc : x;
  if constexpr (std::is_same_v<F, Min>) acc = ((acc < x) | (acc != acc)) ? acc : x;
}

template <class F, class T>
[[gnu::always_inline]] inline void accumulate(Lanes<T>& lanes, const T* src, int64_t n) {
  using Unaligned = typename Lanes<T>::Unaligned;
  using Vector = typename Lanes<T>::Vector;
  constexpr int kPerVector = Lanes<T>::kPerVector;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
#pragma GCC unroll 32
    for (int v = 0; v < Lanes<T>::kVectors; ++v) {
      Vector x = *reinterpret_cast<const Unaligned*>(src + i + v * kPerVector);
      combine<F>(lanes.at[v], x);
    }
  if (i == n) return;
  Lanes<T> rest;
  T* at = reinterpret_cast<T*>(rest.at);
  for (int64_t k = 0; k < kLanes; ++k) at[k] = i + k < n ? src[i + k] : identity<T, F>();
#pragma GCC unroll 32
  for (int v = 0; v < Lanes<T>::kVectors; ++v) combine<F>(lanes.at[v], rest.at[v]);
}

/// Fewer elements than lanes: the lanes without one hold the identity, so they change nothing.
template <class F, class T>
[[gnu::always_inline]] inline T reduce_short(const T* src, int64_t n) {
  T lanes[kLanes];
  int64_t width = kLanes;
  while (width / 2 >= n && width > 1) width /= 2;
  for (int64_t k = 0; k < width; ++k) lanes[k] = k < n ? src[k] : identity<T, F>();
  for (int64_t s = width / 2; s >= 1; s /= 2)
    for (int64_t k = 0; k < s; ++k) lanes[k] = F::apply(lanes[k], lanes[k + s]);
  return lanes[0];
}

template <class F, class T>
[[gnu::always_inline]] inline T reduce_long(const T* src, int64_t n) {
  using Vector = typename Lanes<T>::Vector;
  Lanes<T> lanes;
#pragma GCC unroll 32
  for (int v = 0; v < Lanes<T>::kVectors; ++v) lanes.at[v] = Vector{} + identity<T, F>();
  accumulate<F>(lanes, src, n);
#pragma GCC unroll 8
  for (int s = Lanes<T>::kVectors / 2; s >= 1; s /= 2)
#pragma GCC unroll 32
    for (int v = 0; v < s; ++v) combine<F>(lanes.at[v], lanes.at[v + s]);
  alignas(64) T last[Lanes<T>::kPerVector];
  *reinterpret_cast<Vector*>(last) = lanes.at[0];
#pragma GCC unroll 8
  for (int64_t s = Lanes<T>::kPerVector / 2; s >= 1; s /= 2)
    for (int64_t k = 0; k < s; ++k) last[k] = F::apply(last[k], last[k + s]);
  return last[0];
}

template <class F, class T>
void rows(void* dst, const void* src, int64_t rows, int64_t extent) {
  T* out = static_cast<T*>(dst);
  const T* in = static_cast<const T*>(src);
  if (extent == 0)
    for (int64_t i = 0; i < rows; ++i) out[i] = std::is_same_v<F, Add> ? T{0} : identity<T, F>();
  else if (extent < kLanes)
    for (int64_t i = 0; i < rows; ++i) out[i] = reduce_short<F>(in + i * extent, extent);
  else
    for (int64_t i = 0; i < rows; ++i) out[i] = reduce_long<F>(in + i * extent, extent);
}

template <class F, class T>
void lanes(void* acc, const void* src, int64_t n) {
  using Vector = typename Lanes<T>::Unaligned;
  Vector* at = static_cast<Vector*>(acc);
  Lanes<T> lanes;
  for (int v = 0; v < Lanes<T>::kVectors; ++v) lanes.at[v] = at[v];
  accumulate<F>(lanes, static_cast<const T*>(src), n);
  for (int v = 0; v < Lanes<T>::kVectors; ++v) at[v] = lanes.at[v];
}

template <class F, class T>
void scan(void* dst, const void* src, void* carry, int64_t n) {
  T* out = static_cast<T*>(dst);
  const T* in = static_cast<const T*>(src);
  T acc = *static_cast<T*>(carry);
  for (int64_t i = 0; i < n; ++i) out[i] = acc = F::apply(acc, in[i]);
  *static_cast<T*>(carry) = acc;
}

template <class F, class T>
void scan_reverse(void* dst, const void* src, void* carry, int64_t n) {
  T* out = static_cast<T*>(dst);
  const T* in = static_cast<const T*>(src);
  T acc = *static_cast<T*>(carry);
  for (int64_t i = n - 1; i >= 0; --i) out[i] = acc = F::apply(acc, in[i]);
  *static_cast<T*>(carry) = acc;
}

template <class F, class T>
void scatter(void* base, const int64_t* offset, const void* src, const uint8_t* mask, int64_t n) {
  T* out = static_cast<T*>(base);
  const T* in = static_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i)
    if (!mask || mask[i]) out[offset[i]] = F::apply(out[offset[i]], in[i]);
}

struct IsMore {
  template <class T>
  [[gnu::always_inline]] static bool apply(T x, T best) {
    return (x > best) | ((x != x) & (best == best));
  }
};
struct IsLess {
  template <class T>
  [[gnu::always_inline]] static bool apply(T x, T best) {
    return (x < best) | ((x != x) & (best == best));
  }
};

/// The extreme of the run by lanes first; only a run that holds a better one is searched.
template <class Better, class F, class T>
void arg_run(void* best, int64_t* index, const void* src, int64_t n, int64_t first) {
  if (n == 0) return;
  const T* in = static_cast<const T*>(src);
  using Mask = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint8_t>>;
  T top;
  rows<F, T>(&top, src, 1, n);
  T& holder = *static_cast<T*>(best);
  if (*index >= 0 && !Better::apply(top, holder)) return;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {  // which lanes first: this loop vectorises
    Mask found = 0;
    for (int64_t k = 0; k < kLanes; ++k) {
      T x = in[i + k];
      found |= ((x == top) | (x != x)) ? Mask{1} : Mask{0};
    }
    if (found) break;
  }
  if (top != top)
    while (in[i] == in[i]) ++i;
  else
    while (in[i] != top) ++i;
  holder = in[i];
  *index = first + i;
}

template <class Better, class T>
void arg_columns(void* best, int64_t* index, const void* src, int64_t rows, int64_t n,
                 int64_t first) {
  T* holder = static_cast<T*>(best);
  const T* in = static_cast<const T*>(src);
  for (int64_t r = 0; r < rows; ++r, in += n)
    for (int64_t k = 0; k < n; ++k) {
      bool take = (index[k] < 0) | Better::apply(in[k], holder[k]);
      holder[k] = take ? in[k] : holder[k];
      index[k] = take ? first + r : index[k];
    }
}

template <class Better, class T>
void arg_merge(void* best, int64_t* index, const void* other, const int64_t* other_index,
               int64_t n) {
  T* holder = static_cast<T*>(best);
  const T* in = static_cast<const T*>(other);
  for (int64_t k = 0; k < n; ++k)
    if (other_index[k] >= 0 && (index[k] < 0 || Better::apply(in[k], holder[k]))) {
      holder[k] = in[k];
      index[k] = other_index[k];
    }
}

template <class F, class T>
void set_run(BlockOps& ops, Monoid monoid, DType type) {
  ops.run[static_cast<int>(monoid)][static_cast<int>(type)] = {rows<F, T>, lanes<F, T>, scan<F, T>,
                                                               scan_reverse<F, T>, scatter<F, T>};
}

template <class T>
void fill_ordered(BlockOps& ops, DType type) {
  set_run<Max, T>(ops, Monoid::max, type);
  set_run<Min, T>(ops, Monoid::min, type);
  ops.arg[0][static_cast<int>(type)] = {arg_run<IsMore, Max, T>, arg_columns<IsMore, T>,
                                        arg_merge<IsMore, T>};
  ops.arg[1][static_cast<int>(type)] = {arg_run<IsLess, Min, T>, arg_columns<IsLess, T>,
                                        arg_merge<IsLess, T>};
}

// Sums and products of signed and unsigned integers have the same bits.
template <class T>
void fill_integers(BlockOps& ops, DType plain, DType sign) {
  for (DType type : {plain, sign}) {
    set_run<Add, T>(ops, Monoid::add, type);
    set_run<Mul, T>(ops, Monoid::mul, type);
    set_run<And, T>(ops, Monoid::and_, type);
    set_run<Or, T>(ops, Monoid::or_, type);
  }
  fill_ordered<T>(ops, plain);
  fill_ordered<std::make_signed_t<T>>(ops, sign);
}

template <class T>
void fill_floats(BlockOps& ops, DType type) {
  set_run<Add, T>(ops, Monoid::add, type);
  set_run<Mul, T>(ops, Monoid::mul, type);
  fill_ordered<T>(ops, type);
}

}  // namespace

void fill_runs(BlockOps& ops) {
  fill_integers<uint8_t>(ops, DType::u8, DType::i8);
  fill_integers<uint16_t>(ops, DType::u16, DType::i16);
  fill_integers<uint32_t>(ops, DType::u32, DType::i32);
  fill_integers<uint64_t>(ops, DType::u64, DType::i64);
  fill_floats<float>(ops, DType::f32);
  fill_floats<double>(ops, DType::f64);
  set_run<And, uint8_t>(ops, Monoid::and_, DType::b1);
  set_run<Or, uint8_t>(ops, Monoid::or_, DType::b1);
  fill_ordered<uint8_t>(ops, DType::b1);
}

}  // namespace tn::TN_LEVEL
