// Draws by rejection: every element tries again until a draw is accepted, in its own time. Its keys
// follow from the given one and its position, so it does not depend on the others.
#include <algorithm>
#include <cmath>

#include "backend/cpu/library/cpu_library.h"
#include "loop/math.h"
#include "ops/op_decls.h"
#include "ops/threefry.h"
#include "runtime/threads.h"

namespace tn::cpu {
namespace {

using namespace ops;

using Key = Words<uint32_t>;
namespace math = generic::math;

/// Number `i` of the keys that `key` splits into, and the words for position `i`.
Key key_part(Key key, uint64_t i) {
  return threefry<uint32_t>(key, {static_cast<uint32_t>(i >> 32), static_cast<uint32_t>(i)});
}

/// draw_unit and draw_normal of one element.
template <class F>
F unit_at(Key key, uint64_t i) {
  Key w = key_part(key, i);
  if constexpr (sizeof(F) == 4) return static_cast<F>((w.a ^ w.b) >> 9) * 0x1p-23f;
  return static_cast<F>((static_cast<uint64_t>(w.a) << 32 | w.b) >> 12) * F(0x1p-52);
}
template <class F>
F normal_at(Key key, uint64_t i) {
  constexpr F kLeast = (sizeof(F) == 4 ? 0x1p-24 : 0x1p-53) - 1;
  F u = std::max(kLeast, unit_at<F>(key, i) * 2 + kLeast);
  return math::erfinv(u) * static_cast<F>(1.4142135623730951);
}

/// Marsaglia and Tsang: d·v³ with v = 1 + c·x of a normal x. Below 1 the parameter is raised by one
/// and the result multiplied by u^(1/alpha).
template <class F>
F gamma_of(Key key, F alpha) {
  constexpr F kThird = F(1) / 3, kSqueeze = F(0.0331);
  bool raised = !(alpha >= 1);
  F d = (raised ? alpha + 1 : alpha) - kThird, c = kThird / std::sqrt(d), cube = 1;
  Key last = key_part(key, 1), next = key_part(key, 0);
  for (bool again = d == d; again;) {
    Key tries = key_part(next, 1), squeeze = key_part(next, 2);
    next = key_part(next, 0);
    F x, v;
    do {
      x = normal_at<F>(key_part(tries, 1), 0), tries = key_part(tries, 0);
      v = 1 + x * c;
    } while (v <= 0);
    F square = x * x, u = unit_at<F>(squeeze, 0);
    cube = v * v * v;
    again = u >= 1 - kSqueeze * (square * square) &&
            math::log(u) >= square * F(0.5) + d * ((1 - cube) + math::log(cube));
  }
  F boost = raised ? math::pow(1 - unit_at<F>(last, 0), 1 / alpha) : F(1);
  return d * cube * boost;
}

/// Knuth: how many uniform numbers make a product above exp(-rate).
double poisson_by_product(Key key, uint64_t i, float rate) {
  double count = -1;
  for (float log_product = 0; log_product > -rate; ++count) {
    log_product += math::log(unit_at<float>(key_part(key, 1), i));
    key = key_part(key, 0);
  }
  return count;
}

/// Hörmann's transformed rejection, for rates from 10 on.
double poisson_by_rejection(Key key, uint64_t i, float rate) {
  float log_rate = math::log(rate), b = 0.931f + 2.53f * std::sqrt(rate);
  float a = -0.059f + 0.02483f * b, scale = 1.1239f + 1.1328f / (b - 3.4f);
  float certain = 0.9277f - 3.6224f / (b - 2);
  for (;;) {
    float u = unit_at<float>(key_part(key, 1), i) - 0.5f, v = unit_at<float>(key_part(key, 2), i);
    key = key_part(key, 0);
    float inner = 0.5f - std::abs(u);
    float k = std::floor((2 * a / inner + b) * u + rate + 0.43f);
    if (inner >= 0.07f && v <= certain) return k;
    if (k < 0 || (inner < 0.013f && v > inner)) continue;
    float s = math::log(v * scale / (a / (inner * inner) + b));
    if (s <= -rate + k * log_rate - math::lgamma(k + 1)) return k;
  }
}

double poisson_of(Key key, uint64_t i, float rate) {
  if (rate == 0) return 0;
  if (!(rate >= 10)) return poisson_by_product(key, i, rate);
  return std::isinf(rate) ? rate : poisson_by_rejection(key, i, rate);
}

/// Calls `draw(key, position, element)` for every element: `count` of them to a key.
template <class Draw>
void for_each_element(const LibraryCall& call, const Draw& draw) {
  int64_t total = call.out_types[0]->elements, keys = call.in_types[0]->elements / 2;
  if (total == 0) return;
  int64_t count = total / keys, chunks = chunks_for(total, 1024);
  const auto* words = static_cast<const uint32_t*>(call.in[0]);
  parallel_for(chunks, [&](int64_t chunk) {
    auto [begin, end] = chunk_range(total, chunks, chunk);
    for (int64_t e = begin; e < end; ++e) {
      const uint32_t* key = words + e / count * 2;
      draw(Key{key[0], key[1]}, static_cast<uint64_t>(e % count), e);
    }
  });
}

template <class F>
void run_gamma_of(const LibraryCall& call) {
  const auto* alpha = static_cast<const F*>(call.in[1]);
  auto* out = static_cast<F*>(call.out[0]);
  for_each_element(
      call, [&](Key key, uint64_t i, int64_t e) { out[e] = gamma_of(key_part(key, i), alpha[e]); });
}

void run_gamma(const LibraryCall& call) {
  bool wide = call.out_types[0]->dtype == DType::f64;
  return wide ? run_gamma_of<double>(call) : run_gamma_of<float>(call);
}

template <class I>
void run_poisson_of(const LibraryCall& call) {
  const auto* rate = static_cast<const float*>(call.in[1]);
  auto* out = static_cast<I*>(call.out[0]);
  constexpr double kMost = sizeof(I) == 4 ? 0x1.fffffffcp30 : 0x1p62;
  for_each_element(call, [&](Key key, uint64_t i, int64_t e) {
    out[e] = static_cast<I>(std::min(poisson_of(key, i, rate[e]), kMost));
  });
}

void run_poisson(const LibraryCall& call) {
  bool wide = call.out_types[0]->dtype == DType::i64;
  return wide ? run_poisson_of<int64_t>(call) : run_poisson_of<int32_t>(call);
}

constexpr LibraryKernel kEntriesRandom[] = {
    {&ops::random_gamma, run_gamma},
    {&ops::random_poisson, run_poisson},
};

}  // namespace

LibraryTable random_kernels() { return kEntriesRandom; }

}  // namespace tn::cpu
