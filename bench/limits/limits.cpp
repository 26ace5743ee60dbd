// What the machine can do: bytes moved and multiply-adds per second, as one line of JSON.
//
//     tenon_limits THREADS
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBytes = size_t{256} << 20;  // of an array: beyond caches
constexpr int kPasses = 7, kLanes = 12;       // as many chains as hide the latency of an FMA
constexpr long kSteps = 2'000'000;

/// One thread's part of an array.
struct Part {
  float *from, *to;
  size_t count;
};

// Twice the same text: AVX-512 and AVX2 differ in their names alone.
#define TN_LIMITS(NAME, TARGET, VECTOR, P, WIDTH)                                    \
  struct NAME {                                                                      \
    [[gnu::target(TARGET)]] static void copy(Part p) {                               \
      for (size_t i = 0; i < p.count; i += (WIDTH))                                  \
        P##_store_ps(p.to + i, P##_load_ps(p.from + i));                             \
    }                                                                                \
    [[gnu::target(TARGET)]] static void stream(Part p) {                             \
      for (size_t i = 0; i < p.count; i += (WIDTH))                                  \
        P##_stream_ps(p.to + i, P##_load_ps(p.from + i));                            \
      _mm_sfence();                                                                  \
    }                                                                                \
    [[gnu::target(TARGET)]] static void read(Part p) {                               \
      VECTOR sums[8] = {};                                                           \
      for (size_t i = 0; i < p.count; i += 8 * (WIDTH))                              \
        _Pragma("GCC unroll 8") for (size_t k = 0; k < 8; ++k) sums[k] =             \
            P##_add_ps(sums[k], P##_load_ps(p.from + i + k * (WIDTH)));              \
      for (size_t k = 0; k < 8; ++k) P##_store_ps(p.to + k * (WIDTH), sums[k]);      \
    }                                                                                \
    [[gnu::target(TARGET)]] static void fma(Part p) {                                \
      VECTOR lanes[kLanes], a = P##_set1_ps(0.5f);                                   \
      for (int k = 0; k < kLanes; ++k) lanes[k] = P##_load_ps(p.from + k * (WIDTH)); \
      for (long i = 0; i < kSteps; ++i)                                              \
        _Pragma("GCC unroll 12") for (int k = 0; k < kLanes; ++k) lanes[k] =         \
            P##_fmadd_ps(lanes[k], a, a);                                            \
      for (int k = 0; k < kLanes; ++k) P##_store_ps(p.to + k * (WIDTH), lanes[k]);   \
    }                                                                                \
    static constexpr int width = WIDTH;                                              \
  };
TN_LIMITS(Avx512, "avx512f", __m512, _mm512, 16)
TN_LIMITS(Avx2, "avx2,fma", __m256, _mm256, 8)
#undef TN_LIMITS

float* array() {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, kBytes, MADV_HUGEPAGE);
  float* values = static_cast<float*>(memory);
  std::fill_n(values, kBytes / sizeof(float), 1.0f);  // pages never written are all one page
  return values;
}

/// Seconds in which all threads do their part, of the best pass: a limit is what can be reached.
double seconds(int threads, float* from, float* to, const std::function<void(Part)>& work) {
  using Clock = std::chrono::steady_clock;
  size_t each = kBytes / sizeof(float) / static_cast<size_t>(threads) / 1024 * 1024;
  std::barrier turn(threads);
  double best = std::numeric_limits<double>::max();
  auto run = [&](int thread) {
    size_t at = each * static_cast<size_t>(thread);
    for (int pass = 0; pass < kPasses; ++pass) {
      turn.arrive_and_wait();
      auto began = Clock::now();
      work({from + at, to + at, each});
      turn.arrive_and_wait();
      std::chrono::duration<double> passed = Clock::now() - began;
      if (thread == 0) best = std::min(best, passed.count());
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run, i);
  run(0);
  others.clear();
  return best;
}

template <class Kernels>
int report(int threads) {
  float *from = array(), *to = array();
  if (!from || !to) return 1;
  auto rate = [&](double amount, void (*work)(Part)) {
    return amount / seconds(threads, from, to, work);
  };
  double bytes = kBytes;
  double copy = rate(2 * bytes, Kernels::copy);
  double stream = rate(2 * bytes, Kernels::stream), read = rate(bytes, Kernels::read);
  double fma = rate(static_cast<double>(kSteps) * kLanes * Kernels::width * threads, Kernels::fma);
  std::printf("{\"copy\": %.4g, \"stream\": %.4g, \"read\": %.4g, \"multiply_adds\": %.4g}\n", copy,
              stream, read, fma);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  return __builtin_cpu_supports("avx512f") ? report<Avx512>(threads) : report<Avx2>(threads);
}
