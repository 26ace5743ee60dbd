#include "backend/cpu/kernels/fft_plan.h"

#include <array>
#include <cmath>
#include <complex>
#include <mutex>
#include <numbers>

#include "backend/cpu/kernels/fourier_transform.h"
#include "base/at_fork.h"
#include "base/recent.h"

namespace tn {
namespace {

using Number = std::complex<double>;
constexpr int64_t kLong = 4096;              // from here on a line is taken apart
constexpr int64_t kKept = int64_t{1} << 22;  // numbers in all plans that are kept

/// exp(-2πi k/n) for 0 <= k <= n, from an angle of at most an eighth of a turn.
Number exact_root(int64_t k, int64_t n) {
  if (2 * k > n) return std::conj(exact_root(n - k, n));
  if (4 * k > n) return -std::conj(exact_root(n - 2 * k, 2 * n));
  if (8 * k > n) {
    Number z = exact_root(n - 4 * k, 4 * n);
    return {-z.imag(), -z.real()};
  }
  double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

/// exp(-2πi k/n) for many k: those of long circles as products of two.
class Roots {
 public:
  explicit Roots(int64_t n) : n_(n) {
    while (step_ * step_ < n && n > kLong) step_ *= 2;
    for (int64_t k = 0; k < n; k += step_) coarse_.push_back(exact_root(k, n));
    for (int64_t k = 0; k < std::min(step_, n); ++k) fine_.push_back(exact_root(k, n));
  }
  Number operator()(int64_t k) const {
    k %= n_;
    Number a = coarse_[static_cast<size_t>(k / step_)], b = fine_[static_cast<size_t>(k % step_)];
    if (step_ == 1) return a;
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

 private:
  int64_t n_, step_ = 1;
  std::vector<Number> coarse_, fine_;
};

template <class R>
void append(FftNumbers<R>& to, Number z) {
  to.re.push_back(static_cast<R>(z.real())), to.im.push_back(static_cast<R>(z.imag()));
}

/// The radices of n's stages; none when another prime divides it.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t radix : {4, 2, 3, 5, 7, 11, 13})
    for (; n % radix == 0; n /= radix) found.push_back(radix);
  return n == 1 ? found : std::vector<int64_t>();
}

template <class R>
void add_stages(FftPlan<R>& plan, const std::vector<int64_t>& radices) {
  Roots circle(plan.n);
  FftNumbers<R>& table = plan.twiddles;
  int64_t rest = plan.n, stride = 1;
  for (int64_t radix : radices) {
    FftStage stage{radix, rest / radix, stride, static_cast<int64_t>(table.re.size()), 0};
    for (int64_t p = 0; p < stage.m; ++p)
      for (int64_t k = 1; k < radix; ++k) append(table, circle(p * k * stride));
    stage.roots = static_cast<int64_t>(table.re.size());
    if (radix % 2)
      for (int64_t k = 0; k < radix; ++k) append(table, exact_root(k, radix));
    plan.stages.push_back(stage);
    rest = stage.m, stride *= radix;
  }
}

template <class R>
typename FftPlan<R>::Ref make_plan(int64_t n, bool may_be_long);

template <class R>
void make_matrix(FftPlan<R>& plan) {
  int64_t rows = static_cast<int64_t>(std::sqrt(static_cast<double>(plan.n)));
  while (plan.n % rows) --rows;
  int64_t columns = plan.n / rows;
  plan.columns = make_plan<R>(rows, false), plan.rows = make_plan<R>(columns, false);
  Roots circle(plan.n);
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t k = 0; k < columns; ++k) append(plan.between, circle(j * k));
}

/// The least 2^a · {1, 3, 5, 9, 15} that is not less than n.
int64_t even_length(int64_t n) {
  int64_t best = INT64_MAX;
  for (int64_t m : {1, 3, 5, 9, 15}) {
    while (m < n) m *= 2;
    best = std::min(best, m);
  }
  return best;
}

template <class R>
void make_chirp(FftPlan<R>& plan) {
  int64_t n = plan.n, m = even_length(2 * n - 1);
  plan.longer = make_plan<R>(m, n > kLong);
  Roots circle(2 * n);
  std::vector<Number> wave(static_cast<size_t>(m)), spectrum(wave.size());
  for (int64_t j = 0; j < n; ++j) {
    Number z = circle(static_cast<int64_t>(static_cast<unsigned __int128>(j) * j % (2 * n)));
    append(plan.chirp, z);
    wave[static_cast<size_t>(j)] = wave[static_cast<size_t>(j ? m - j : 0)] = std::conj(z);
  }
  fft({.type = Element::c128,
       .scale = 1 / static_cast<double>(m),
       .n = m,
       .in = wave.data(),
       .out = spectrum.data()});
  for (Number z : spectrum) append(plan.spectrum, z);
}

template <class R>
typename FftPlan<R>::Ref make_plan(int64_t n, bool may_be_long) {
  auto plan = std::make_shared<FftPlan<R>>();
  plan->n = n;
  std::vector<int64_t> radices = radices_of(n);
  if (radices.empty() && n > 1)
    make_chirp(*plan);
  else if (may_be_long && n > kLong)
    make_matrix(*plan);
  else
    add_stages(*plan, radices);
  return plan;
}

template <class R>
class PlanCache {
 public:
  std::mutex mutex;

  typename FftPlan<R>::Ref find(int64_t n, bool real) {
    int64_t key = 2 * n + real;
    {
      std::lock_guard lock(mutex);
      if (auto* known = plans_.find(key)) return *known;
    }
    auto plan = std::make_shared<FftPlan<R>>(*make_plan<R>(n, true));
    if (real) {
      Roots circle(2 * n);
      for (int64_t k = 0; k <= n; ++k) append(plan->real_roots, circle(k));
    }
    std::lock_guard lock(mutex);
    if (plans_.add(key, plan)) total_ += plan->extent();
    while (total_ > kKept && plans_.size() > 1) total_ -= plans_.take_last().second->extent();
    return plan;
  }

 private:
  Recent<int64_t, typename FftPlan<R>::Ref> plans_;
  int64_t total_ = 0;
};

}  // namespace

template <class R>
typename FftPlan<R>::Ref fft_plan(int64_t n, bool real) {
  static auto& cache = guarded_for_process<PlanCache<R>>(kInnermost);
  return cache.find(n, real);
}
template FftPlan<float>::Ref fft_plan<float>(int64_t, bool);
template FftPlan<double>::Ref fft_plan<double>(int64_t, bool);

}  // namespace tn
