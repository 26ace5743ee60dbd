// The kernels of Fourier transforms, compiled once per CPU level.
#include <utility>

#include "backend/cpu/kernels/fft_kernels.h"

namespace tn::TN_LEVEL {
namespace {

#if defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

typedef float VecF __attribute__((vector_size(kVectorBytes)));
typedef double VecD __attribute__((vector_size(kVectorBytes)));

template <class R>
struct Lanes;
template <>
struct Lanes<float> {
  using Vec = VecF;
};
template <>
struct Lanes<double> {
  using Vec = VecD;
};

template <class V>
struct Complex {
  V re, im;
};
template <class V>
[[gnu::always_inline]] inline Complex<V> operator+(Complex<V> a, Complex<V> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
[[gnu::always_inline]] inline Complex<V> operator-(Complex<V> a, Complex<V> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V, class R>
[[gnu::always_inline]] inline Complex<V> times(Complex<V> a, R re, R im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}
/// a · (-i)
template <class V>
[[gnu::always_inline]] inline Complex<V> turned(Complex<V> a) {
  return {a.im, -a.re};
}

template <class V, class R>
constexpr int kLanes = sizeof(V) / sizeof(R);  // NOLINT(bugprone-sizeof-expression): V may be R

/// One number of every lane, from anywhere in memory.
template <class V, class R>
[[gnu::always_inline]] inline V read(const R* at) {
  V v;
  __builtin_memcpy(&v, at, sizeof(V));
  return v;
}

template <class V, class R>
struct Numbers {
  R *re, *im;
  explicit Numbers(FftSplit<R> s) : re(s.re), im(s.im) {}
  [[gnu::always_inline]] Complex<V> get(int64_t i) const {
    return {read<V>(re + i * kLanes<V, R>), read<V>(im + i * kLanes<V, R>)};
  }
  [[gnu::always_inline]] void set(int64_t i, Complex<V> z) const {
    __builtin_memcpy(re + i * kLanes<V, R>, &z.re, sizeof(V));
    __builtin_memcpy(im + i * kLanes<V, R>, &z.im, sizeof(V));
  }
};

template <int kRadix, class V, class R>
[[gnu::always_inline]] inline void butterfly(Complex<V> (&a)[kRadix], FftTable<R> roots) {
  if constexpr (kRadix == 2) {
    Complex<V> sum = a[0] + a[1];
    a[1] = a[0] - a[1], a[0] = sum;
  } else if constexpr (kRadix == 4) {
    Complex<V> even = a[0] + a[2], odd = a[1] + a[3];
    Complex<V> even_rest = a[0] - a[2], odd_rest = turned(a[1] - a[3]);
    a[0] = even + odd, a[2] = even - odd, a[1] = even_rest + odd_rest, a[3] = even_rest - odd_rest;
  } else {
    constexpr int kHalf = kRadix / 2;
    Complex<V> sums[kHalf], rests[kHalf], first = a[0];
    for (int j = 0; j < kHalf; ++j) {
      sums[j] = a[j + 1] + a[kRadix - 1 - j], rests[j] = a[j + 1] - a[kRadix - 1 - j];
      a[0] = a[0] + sums[j];
    }
    for (int k = 1; k <= kHalf; ++k) {
      Complex<V> even = first, odd{};
      for (int j = 0; j < kHalf; ++j) {
        R cosine = roots.re[(j + 1) * k % kRadix], sine = -roots.im[(j + 1) * k % kRadix];
        even = even + Complex<V>{sums[j].re * cosine, sums[j].im * cosine};
        odd = odd + Complex<V>{rests[j].re * sine, rests[j].im * sine};
      }
      odd = turned(odd);
      a[k] = even + odd, a[kRadix - k] = even - odd;
    }
  }
}

/// y[q + stride·(radix·p + k)] = w^(pk) · butterfly_k(x[q + stride·(p + m·j)] for all j)
template <int kRadix, class V, class R>
void pass(const FftStage& s, FftTable<R> table, Numbers<V, R> x, Numbers<V, R> y) {
  FftTable<R> roots{table.re + s.roots, table.im + s.roots};
  for (int64_t p = 0; p < s.m; ++p) {
    const R* re = table.re + s.twiddles + p * (kRadix - 1);
    const R* im = table.im + s.twiddles + p * (kRadix - 1);
    for (int64_t q = 0; q < s.stride; ++q) {
      Complex<V> a[kRadix];
#pragma GCC unroll 16
      for (int j = 0; j < kRadix; ++j) a[j] = x.get(q + s.stride * (p + s.m * j));
      butterfly<kRadix>(a, roots);
      y.set(q + s.stride * kRadix * p, a[0]);
#pragma GCC unroll 16
      for (int k = 1; k < kRadix; ++k)
        y.set(q + s.stride * (kRadix * p + k), times(a[k], re[k - 1], im[k - 1]));
    }
  }
}

template <class V, class R>
FftSplit<R> transform(const FftStages<R>& s, FftSplit<R> data, FftSplit<R> work) {
  for (const FftStage* stage = s.stages; stage != s.stages + s.count; ++stage) {
    Numbers<V, R> x(data), y(work);
    switch (stage->radix) {
      case 2:
        pass<2>(*stage, s.table, x, y);
        break;
      case 3:
        pass<3>(*stage, s.table, x, y);
        break;
      case 4:
        pass<4>(*stage, s.table, x, y);
        break;
      case 5:
        pass<5>(*stage, s.table, x, y);
        break;
      case 7:
        pass<7>(*stage, s.table, x, y);
        break;
      case 11:
        pass<11>(*stage, s.table, x, y);
        break;
      default:
        pass<13>(*stage, s.table, x, y);
    }
    std::swap(data, work);
  }
  return data;
}

/// `lane`, `part`: as in the lines, known to the compiler where they are usual.
template <int kCount, class R>
[[gnu::always_inline]] inline void load_lanes(const FftLines<const R>& from, int64_t lane,
                                              int64_t part, int64_t count, FftSplit<R> to) {
  for (int64_t j = 0; j < count; ++j)
    for (int l = 0; l < kCount; ++l) {
      const R* at = from.at + l * lane + j * from.step;
      to.re[j * kCount + l] = at[0];
      to.im[j * kCount + l] = part ? at[part] : R(0);
    }
}

template <class V, class R>
void load(const FftLines<const R>& from, int64_t count, FftSplit<R> to) {
  constexpr int kCount = kLanes<V, R>;
  if (from.lane == 2 && from.part == 1)
    load_lanes<kCount>(from, 2, 1, count, to);
  else if (from.part == 1)
    load_lanes<kCount>(from, from.lane, 1, count, to);
  else
    load_lanes<kCount>(from, from.lane, from.part, count, to);
}

template <int kCount, class R>
[[gnu::always_inline]] inline void store_lanes(FftSplit<R> from, int64_t count, R scale, R im_scale,
                                               const FftLines<R>& to, int64_t lane, int64_t part) {
  for (int64_t j = 0; j < count; ++j)
    for (int l = 0; l < kCount; ++l) {
      R* at = to.at + l * lane + j * to.step;
      at[0] = from.re[j * kCount + l] * scale;
      if (part) at[part] = from.im[j * kCount + l] * im_scale;
    }
}

template <class V, class R>
void store(FftSplit<R> from, int64_t count, R scale, R im_scale, const FftLines<R>& to) {
  constexpr int kCount = kLanes<V, R>;
  if (to.lane == 2 && to.part == 1)
    store_lanes<kCount>(from, count, scale, im_scale, to, 2, 1);
  else if (to.part == 1)
    store_lanes<kCount>(from, count, scale, im_scale, to, to.lane, 1);
  else
    store_lanes<kCount>(from, count, scale, im_scale, to, to.lane, to.part);
}

template <class V, class R>
void multiply(FftTable<R> table, int64_t count, int64_t step, bool across, FftSplit<R> data) {
  Numbers<V, R> x(data);
  if (across) {
    for (int64_t j = 0; j < count; ++j)
      x.set(j, times(x.get(j), read<V>(table.re + j * step), read<V>(table.im + j * step)));
  } else {
    for (int64_t j = 0; j < count; ++j)
      x.set(j, times(x.get(j), table.re[j * step], table.im[j * step]));
  }
}

/// With Z of the pairs x[2j] + i·x[2j+1]: 2X[k] = (Z[k] + Z̄[m-k]) - i·w^k·(Z[k] - Z̄[m-k])
template <class V, class R>
void unpack(FftTable<R> roots, int64_t m, FftSplit<R> from, FftSplit<R> to) {
  Numbers<V, R> z(from), x(to);
  for (int64_t k = 0; k <= m; ++k) {
    Complex<V> a = z.get(k == m ? 0 : k), b = z.get(k == 0 ? 0 : m - k);
    Complex<V> even{a.re + b.re, a.im - b.im}, odd{a.re - b.re, a.im + b.im};
    Complex<V> sum = even + turned(times(odd, roots.re[k], roots.im[k]));
    x.set(k, {sum.re * R(0.5), sum.im * R(0.5)});
  }
}

/// Z[k] = (X[k] + X̄[m-k]) + i·w̄^k·(X[k] - X̄[m-k])
template <class V, class R>
void pack(FftTable<R> roots, int64_t m, FftSplit<R> from, FftSplit<R> to) {
  Numbers<V, R> x(from), z(to);
  for (int64_t k = 0; k < m; ++k) {
    Complex<V> a = x.get(k), b = x.get(m - k);
    if (k == 0) a.im = b.im = V{};
    Complex<V> even{a.re + b.re, a.im - b.im}, odd{a.re - b.re, a.im + b.im};
    z.set(k, even - turned(times(odd, roots.re[k], -roots.im[k])));
  }
}

template <class R>
constexpr FftKernels<R> kernels() {
  using V = typename Lanes<R>::Vec;
  return {
      .lanes = kLanes<V, R>,
      .transform =
          [](const FftStages<R>& s, bool wide, FftSplit<R> data, FftSplit<R> work) {
            return wide ? transform<V>(s, data, work) : transform<R>(s, data, work);
          },
      .load = [](const FftLines<const R>& from, bool wide, int64_t count,
                 FftSplit<R> to) { wide ? load<V>(from, count, to) : load<R>(from, count, to); },
      .store =
          [](FftSplit<R> from, bool wide, int64_t count, R scale, R im_scale,
             const FftLines<R>& to) {
            wide ? store<V>(from, count, scale, im_scale, to)
                 : store<R>(from, count, scale, im_scale, to);
          },
      .multiply =
          [](FftTable<R> table, bool wide, int64_t count, int64_t step, bool across,
             FftSplit<R> data) {
            wide ? multiply<V>(table, count, step, across, data)
                 : multiply<R>(table, count, step, across, data);
          },
      .unpack =
          [](FftTable<R> roots, bool wide, int64_t m, FftSplit<R> from, FftSplit<R> to) {
            wide ? unpack<V>(roots, m, from, to) : unpack<R>(roots, m, from, to);
          },
      .pack =
          [](FftTable<R> roots, bool wide, int64_t m, FftSplit<R> from, FftSplit<R> to) {
            wide ? pack<V>(roots, m, from, to) : pack<R>(roots, m, from, to);
          },
  };
}

}  // namespace

const FftLevel fft_level = {kernels<float>(), kernels<double>()};

}  // namespace tn::TN_LEVEL
