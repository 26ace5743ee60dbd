#include "backend/cpu/kernels/factorise.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "backend/cpu/kernels/lapack.h"
#include "base/error.h"
#include "runtime/threads.h"

namespace tn {
namespace {

using lapack::Int;
using lapack::Length;
using lapack::Real;
using lapack::Text;

template <class F>
void with_type(Element type, F f) {
  switch (type) {
    case Element::f32:
      return f(float{});
    case Element::f64:
      return f(double{});
    case Element::c64:
      return f(std::complex<float>{});
    default:
      return f(std::complex<double>{});
  }
}

Int as_int(int64_t n) {
  constexpr Int kMost = std::numeric_limits<Int>::max();
  if (n > kMost) fail("linalg: a matrix has at most {} rows and columns: {}", kMost, n);
  return static_cast<Int>(n);
}

/// Calls `body(begin, end)` for parts of the batch; `work` is a matrix's number of operations.
template <class F>
void each_part(int64_t batch, int64_t work, F body) {
  int64_t chunks = std::min(batch, chunks_for(batch * std::max<int64_t>(work, 1), 1 << 16));
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(batch, chunks, chunk);
    body(begin, end);
  });
}

template <class T>
bool all_finite(const T* a, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(std::real(a[i])) || !std::isfinite(std::imag(a[i]))) return false;
  return true;
}

template <class T>
void fill_nan(T* a, int64_t count) {
  constexpr Real<T> kNan = std::numeric_limits<Real<T>>::quiet_NaN();
  if constexpr (lapack::kIsComplex<T>)
    std::fill_n(a, count, T(kNan, kNan));
  else
    std::fill_n(a, count, kNan);
}

template <class T>
T conjugate(T x) {
  if constexpr (lapack::kIsComplex<T>)
    return std::conj(x);
  else
    return x;
}

/// to[j·rows + i] = from[i·columns + j]
template <class T>
void transpose(const T* from, int64_t rows, int64_t columns, T* to) {
  constexpr int64_t kTile = 16;
  for (int64_t r = 0; r < rows; r += kTile)
    for (int64_t c = 0; c < columns; c += kTile)
      for (int64_t i = r; i < std::min(r + kTile, rows); ++i)
        for (int64_t j = c; j < std::min(c + kTile, columns); ++j)
          to[j * rows + i] = from[i * columns + j];
}

template <class T>
using Array = std::vector<T>;
template <class T>
Array<T> array_of(int64_t count) {
  return Array<T>(static_cast<size_t>(std::max<int64_t>(count, 1)));
}
/// The size of a workspace, as LAPACK says it: rounded to the type of the matrix.
template <class T>
int64_t size_of(T said) {
  return static_cast<int64_t>(std::real(said) * (1 + std::numeric_limits<Real<T>>::epsilon())) + 1;
}

template <class T>
void cholesky_all(int64_t batch, int64_t n, bool upper, const T* a, T* l) {
  using F = void(Text, const Int*, T*, const Int*, Int*, Length);
  auto* potrf = reinterpret_cast<F*>(lapack::find_for<T>("xpotrf"));
  each_part(batch, n * n * n / 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* to = l + i * n * n;
      std::copy_n(a + i * n * n, n * n, to);
      // Read by columns this is the upper triangle of the conjugate, whose factor is Lᵀ.
      Int size = as_int(n), info = 0;
      potrf(upper ? "L" : "U", &size, to, &size, &info, 1);
      if (info != 0) {
        fill_nan(to, n * n);
        continue;
      }
      for (int64_t row = 0; row < n; ++row)
        upper ? std::fill(to + row * n, to + row * n + row, T(0))
              : std::fill(to + row * n + row + 1, to + row * n + n, T(0));
    }
  });
}

template <class T>
void lu_all(int64_t batch, int64_t n, const T* a, T* lu, int64_t* pivots, int64_t* permutation) {
  using F = void(const Int*, const Int*, T*, const Int*, Int*, Int*);
  auto* getrf = reinterpret_cast<F*>(lapack::find_for<T>("xgetrf"));
  each_part(batch, 2 * n * n * n / 3, [&](int64_t begin, int64_t end) {
    Array<T> columns = array_of<T>(n * n);
    Array<Int> swaps = array_of<Int>(n);
    for (int64_t i = begin; i < end; ++i) {
      transpose(a + i * n * n, n, n, columns.data());
      Int size = as_int(n), info = 0;
      getrf(&size, &size, columns.data(), &size, swaps.data(), &info);
      transpose(columns.data(), n, n, lu + i * n * n);
      int64_t *to = pivots + i * n, *order = permutation + i * n;
      for (int64_t row = 0; row < n; ++row) order[row] = row;
      for (int64_t row = 0; row < n; ++row) {
        to[row] = swaps[static_cast<size_t>(row)] - 1;
        std::swap(order[row], order[to[row]]);
      }
    }
  });
}

template <class T>
void triangular_solve_all(int64_t batch, int64_t n, int64_t k, Triangle kind, const T* a,
                          const T* b, T* x) {
  using F = void(Text, Text, Text, Text, const Int*, const Int*, const T*, const T*, const Int*, T*,
                 const Int*, Length, Length, Length, Length);
  auto* trsm = reinterpret_cast<F*>(lapack::find_for<T>("xtrsm"));
  each_part(batch, n * n * k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* to = x + i * n * k;
      std::copy_n(b + i * n * k, n * k, to);
      // Read by columns everything is transposed: Xᵀ·Aᵀ = Bᵀ.
      Int rows = as_int(k), size = as_int(n);
      T one = 1;
      trsm("R", kind.upper ? "L" : "U", kind.transpose ? "T" : "N", kind.unit_diagonal ? "U" : "N",
           &rows, &size, &one, a + i * n * n, &size, to, &rows, 1, 1, 1, 1);
    }
  });
}

/// Householder's: R above the diagonal of what geqrf leaves, Q from what is below.
template <class T>
class Qr {
 public:
  Qr(int64_t m, int64_t n, bool complete)
      : m_(m), n_(n), rank_(std::min(m, n)), columns_(complete ? m : rank_) {
    factors_ = array_of<T>(m * std::max(n, columns_));
    tau_ = array_of<T>(rank_), work_ = array_of<T>(1);
    factor(-1);
    int64_t size = size_of(work_[0]);
    generate(-1);
    work_ = array_of<T>(std::max(size, size_of(work_[0])));
  }

  void operator()(const T* a, T* q, T* r) {
    transpose(a, m_, n_, factors_.data());
    factor(static_cast<int64_t>(work_.size()));
    for (int64_t i = 0; i < columns_; ++i)
      for (int64_t j = 0; j < n_; ++j)
        r[i * n_ + j] = j < i ? T(0) : factors_[static_cast<size_t>(j * m_ + i)];
    generate(static_cast<int64_t>(work_.size()));
    transpose(factors_.data(), columns_, m_, q);
  }

 private:
  void factor(int64_t size) {
    using F = void(const Int*, const Int*, T*, const Int*, T*, T*, const Int*, Int*);
    static auto* const geqrf = reinterpret_cast<F*>(lapack::find_for<T>("xgeqrf"));
    Int m = as_int(m_), n = as_int(n_), work = as_int(size), info = 0;
    geqrf(&m, &n, factors_.data(), &m, tau_.data(), work_.data(), &work, &info);
  }
  void generate(int64_t size) {
    using F =
        void(const Int*, const Int*, const Int*, T*, const Int*, const T*, T*, const Int*, Int*);
    static auto* const orgqr =
        reinterpret_cast<F*>(lapack::find_for<T>(lapack::kIsComplex<T> ? "xungqr" : "xorgqr"));
    Int m = as_int(m_), n = as_int(columns_), k = as_int(rank_), work = as_int(size), info = 0;
    orgqr(&m, &n, &k, factors_.data(), &m, tau_.data(), work_.data(), &work, &info);
  }

  int64_t m_, n_, rank_, columns_;
  Array<T> factors_, tau_, work_;
};

/// Of the transpose, which is what columns see: Aᵀ = V̄·diag(s)·Uᵀ.
template <class T>
class Svd {
 public:
  Svd(int64_t m, int64_t n, bool full, bool vectors)
      : m_(m), n_(n), rank_(std::min(m, n)), full_(full), vectors_(vectors) {
    int64_t low = rank_, high = std::max(m, n);
    a_ = array_of<T>(m * n), whole_ = array_of<Int>(8 * low), work_ = array_of<T>(1);
    if (lapack::kIsComplex<T>)
      real_ = array_of<Real<T>>(vectors ? low * std::max(5 * low + 7, 2 * high + 2 * low + 1)
                                        : 7 * low);
    call(a_.data(), nullptr, nullptr, nullptr, -1);
    work_ = array_of<T>(size_of(work_[0]));
  }

  void operator()(const T* a, T* u, Real<T>* s, T* vh) {
    std::copy_n(a, m_ * n_, a_.data());
    if (all_finite(a, m_ * n_) &&
        call(a_.data(), u, s, vh, static_cast<int64_t>(work_.size())) == 0)
      return;
    fill_nan(s, rank_);
    if (!vectors_) return;
    fill_nan(u, m_ * (full_ ? m_ : rank_)), fill_nan(vh, n_ * (full_ ? n_ : rank_));
  }

 private:
  Int call(T* a, T* u, Real<T>* s, T* vh, int64_t size) {
    Text job = !vectors_ ? "N" : full_ ? "A" : "S";
    Int m = as_int(n_), n = as_int(m_), work = as_int(size), info = 0;
    Int rows = as_int(full_ ? m_ : std::max<int64_t>(rank_, 1));
    if constexpr (lapack::kIsComplex<T>) {
      using F = void(Text, const Int*, const Int*, T*, const Int*, Real<T>*, T*, const Int*, T*,
                     const Int*, T*, const Int*, Real<T>*, Int*, Int*, Length);
      static auto* const gesdd = reinterpret_cast<F*>(lapack::find_for<T>("xgesdd"));
      gesdd(job, &m, &n, a, &m, s, vh, &m, u, &rows, work_.data(), &work, real_.data(),
            whole_.data(), &info, 1);
    } else {
      using F = void(Text, const Int*, const Int*, T*, const Int*, T*, T*, const Int*, T*,
                     const Int*, T*, const Int*, Int*, Int*, Length);
      static auto* const gesdd = reinterpret_cast<F*>(lapack::find_for<T>("xgesdd"));
      gesdd(job, &m, &n, a, &m, s, vh, &m, u, &rows, work_.data(), &work, whole_.data(), &info, 1);
    }
    return info;
  }

  int64_t m_, n_, rank_;
  bool full_, vectors_;
  Array<T> a_, work_;
  Array<Int> whole_;
  Array<Real<T>> real_;
};

/// Of the conjugate, which is what columns see: its vectors are the conjugates.
template <class T>
class Eigh {
 public:
  Eigh(int64_t n, bool vectors) : n_(n), vectors_(vectors) {
    a_ = array_of<T>(n * n);
    work_ = array_of<T>(1), real_ = array_of<Real<T>>(1), whole_ = array_of<Int>(1);
    call(nullptr, true);
    work_ = array_of<T>(size_of(work_[0])), whole_ = array_of<Int>(whole_[0]);
    real_ = array_of<Real<T>>(size_of(real_[0]));
  }

  void operator()(const T* a, Real<T>* w, T* v) {
    std::copy_n(a, n_ * n_, a_.data());
    bool done = all_finite(a, n_ * n_) && call(w, false) == 0;
    if (!done) fill_nan(w, n_);
    if (!vectors_) return;
    if (!done) return fill_nan(v, n_ * n_);
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t j = 0; j < n_; ++j)
        v[i * n_ + j] = conjugate(a_[static_cast<size_t>(j * n_ + i)]);
  }

 private:
  Int call(Real<T>* w, bool ask) {
    Int n = as_int(n_), info = 0, work = ask ? -1 : as_int(static_cast<int64_t>(work_.size())),
        real = ask ? -1 : as_int(static_cast<int64_t>(real_.size())),
        whole = ask ? -1 : as_int(static_cast<int64_t>(whole_.size()));
    Text job = vectors_ ? "V" : "N";
    if constexpr (lapack::kIsComplex<T>) {
      using F = void(Text, Text, const Int*, T*, const Int*, Real<T>*, T*, const Int*, Real<T>*,
                     const Int*, Int*, const Int*, Int*, Length, Length);
      static auto* const heevd = reinterpret_cast<F*>(lapack::find_for<T>("xheevd"));
      heevd(job, "U", &n, a_.data(), &n, w, work_.data(), &work, real_.data(), &real, whole_.data(),
            &whole, &info, 1, 1);
    } else {
      using F = void(Text, Text, const Int*, T*, const Int*, T*, T*, const Int*, Int*, const Int*,
                     Int*, Length, Length);
      static auto* const syevd = reinterpret_cast<F*>(lapack::find_for<T>("xsyevd"));
      syevd(job, "U", &n, a_.data(), &n, w, work_.data(), &work, whole_.data(), &whole, &info, 1,
            1);
    }
    return info;
  }

  int64_t n_;
  bool vectors_;
  Array<T> a_, work_;
  Array<Real<T>> real_;
  Array<Int> whole_;
};

template <class T>
class Eig {
 public:
  using Z = std::complex<Real<T>>;
  Eig(int64_t n, bool vectors) : n_(n), vectors_(vectors) {
    a_ = array_of<T>(n * n), vectors_out_ = array_of<T>(vectors ? n * n : 1);
    values_ = array_of<T>(2 * n), real_ = array_of<Real<T>>(2 * n), work_ = array_of<T>(1);
    call(true);
    work_ = array_of<T>(size_of(work_[0]));
  }

  void operator()(const T* a, Z* w, Z* v) {
    transpose(a, n_, n_, a_.data());
    if (!all_finite(a, n_ * n_) || call(false) != 0) {
      fill_nan(w, n_);
      if (vectors_) fill_nan(v, n_ * n_);
      return;
    }
    for (int64_t j = 0; j < n_; ++j) w[j] = value(j);
    if (!vectors_) return;
    for (int64_t j = 0; j < n_; ++j)
      for (int64_t i = 0; i < n_; ++i) v[i * n_ + j] = component(i, j);
  }

 private:
  T at(int64_t i, int64_t j) const { return vectors_out_[static_cast<size_t>(j * n_ + i)]; }
  T number(int64_t j) const { return values_[static_cast<size_t>(j)]; }

  Z value(int64_t j) const {
    if constexpr (lapack::kIsComplex<T>)
      return number(j);
    else
      return {number(j), number(n_ + j)};
  }
  /// Of a real matrix, a pair of conjugate vectors is given as the real and the imaginary part.
  Z component(int64_t i, int64_t j) const {
    if constexpr (lapack::kIsComplex<T>) {
      return at(i, j);
    } else {
      T im = number(n_ + j);
      return im == 0  ? Z(at(i, j))
             : im > 0 ? Z(at(i, j), at(i, j + 1))
                      : Z(at(i, j - 1), -at(i, j));
    }
  }

  Int call(bool ask) {
    Int n = as_int(n_), info = 0, work = ask ? -1 : as_int(static_cast<int64_t>(work_.size()));
    Text job = vectors_ ? "V" : "N";
    T none{};
    if constexpr (lapack::kIsComplex<T>) {
      using F = void(Text, Text, const Int*, T*, const Int*, T*, T*, const Int*, T*, const Int*, T*,
                     const Int*, Real<T>*, Int*, Length, Length);
      static auto* const geev = reinterpret_cast<F*>(lapack::find_for<T>("xgeev"));
      geev("N", job, &n, a_.data(), &n, values_.data(), &none, &n, vectors_out_.data(), &n,
           work_.data(), &work, real_.data(), &info, 1, 1);
    } else {
      using F = void(Text, Text, const Int*, T*, const Int*, T*, T*, T*, const Int*, T*, const Int*,
                     T*, const Int*, Int*, Length, Length);
      static auto* const geev = reinterpret_cast<F*>(lapack::find_for<T>("xgeev"));
      geev("N", job, &n, a_.data(), &n, values_.data(), values_.data() + n_, &none, &n,
           vectors_out_.data(), &n, work_.data(), &work, &info, 1, 1);
    }
    return info;
  }

  int64_t n_;
  bool vectors_;
  Array<T> a_, vectors_out_, values_, work_;
  Array<Real<T>> real_;
};

template <class T>
void fill_identity(T* a, int64_t batch, int64_t n) {
  std::fill_n(a, batch * n * n, T(0));
  for (int64_t i = 0; i < batch * n; ++i) a[i * n + i % n] = T(1);
}

template <class T>
T* item(T* all, int64_t i, int64_t size) {
  return all ? all + i * size : nullptr;
}

}  // namespace

void cholesky(Element type, int64_t batch, int64_t n, bool upper, const void* a, void* l) {
  if (n == 0) return;
  with_type(type, [&]<class T>(T) {
    cholesky_all(batch, n, upper, static_cast<const T*>(a), static_cast<T*>(l));
  });
}

void lu_factor(Element type, int64_t batch, int64_t n, const void* a, void* lu, int64_t* pivots,
               int64_t* permutation) {
  if (n == 0) return;
  with_type(type, [&]<class T>(T) {
    lu_all(batch, n, static_cast<const T*>(a), static_cast<T*>(lu), pivots, permutation);
  });
}

void triangular_solve(Element type, int64_t batch, int64_t n, int64_t k, Triangle kind,
                      const void* a, const void* b, void* x) {
  if (n == 0 || k == 0) return;
  with_type(type, [&]<class T>(T) {
    triangular_solve_all(batch, n, k, kind, static_cast<const T*>(a), static_cast<const T*>(b),
                         static_cast<T*>(x));
  });
}

void qr(Element type, int64_t batch, int64_t m, int64_t n, bool complete, const void* a, void* q,
        void* r) {
  if (m == 0) return;
  int64_t columns = complete ? m : std::min(m, n);
  with_type(type, [&]<class T>(T) {
    each_part(batch, m * n * std::min(m, n), [&](int64_t begin, int64_t end) {
      Qr<T> one(m, n, complete);
      for (int64_t i = begin; i < end; ++i)
        one(static_cast<const T*>(a) + i * m * n, static_cast<T*>(q) + i * m * columns,
            static_cast<T*>(r) + i * columns * n);
    });
  });
}

void svd(Element type, int64_t batch, int64_t m, int64_t n, bool full, const void* a, void* u,
         void* s, void* vh) {
  int64_t rank = std::min(m, n);
  with_type(type, [&]<class T>(T) {
    if (rank == 0) {
      if (!full || !u) return;
      fill_identity(static_cast<T*>(u), batch, m), fill_identity(static_cast<T*>(vh), batch, n);
      return;
    }
    each_part(batch, 8 * m * n * rank, [&](int64_t begin, int64_t end) {
      Svd<T> one(m, n, full, u != nullptr);
      for (int64_t i = begin; i < end; ++i)
        one(static_cast<const T*>(a) + i * m * n,
            item(static_cast<T*>(u), i, m * (full ? m : rank)), static_cast<Real<T>*>(s) + i * rank,
            item(static_cast<T*>(vh), i, n * (full ? n : rank)));
    });
  });
}

void eigh(Element type, int64_t batch, int64_t n, const void* a, void* w, void* v) {
  if (n == 0) return;
  with_type(type, [&]<class T>(T) {
    each_part(batch, 4 * n * n * n, [&](int64_t begin, int64_t end) {
      Eigh<T> one(n, v != nullptr);
      for (int64_t i = begin; i < end; ++i)
        one(static_cast<const T*>(a) + i * n * n, static_cast<Real<T>*>(w) + i * n,
            item(static_cast<T*>(v), i, n * n));
    });
  });
}

void eig(Element type, int64_t batch, int64_t n, const void* a, void* w, void* v) {
  if (n == 0) return;
  with_type(type, [&]<class T>(T) {
    using Z = std::complex<Real<T>>;
    each_part(batch, 20 * n * n * n, [&](int64_t begin, int64_t end) {
      Eig<T> one(n, v != nullptr);
      for (int64_t i = begin; i < end; ++i)
        one(static_cast<const T*>(a) + i * n * n, static_cast<Z*>(w) + i * n,
            item(static_cast<Z*>(v), i, n * n));
    });
  });
}

}  // namespace tn
