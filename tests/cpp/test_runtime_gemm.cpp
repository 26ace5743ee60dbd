#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "runtime/gemm.h"
#include "runtime/threads.h"

using namespace tn;

namespace {

struct Shape {
  int64_t m, n, k, batch = 1;
};

const Shape kShapes[] = {
    {1, 1, 1},    {1, 1, 0},      {3, 5, 7},     {14, 32, 16},  {15, 33, 17},    {1, 300, 70},
    {200, 1, 65}, {2, 40, 33},    {29, 10, 100}, {90, 70, 31},  {170, 65, 40},   {7, 9, 11, 5},
    {1, 8, 9, 6}, {16, 1, 20, 3}, {5, 40, 1030}, {1, 20, 1601}, {13, 3, 2000, 2}};

/// A matrix with room for any layout: 0 rows contiguous, 1 columns contiguous, 2 neither, 3
/// reversed.
struct Layout {
  int64_t row, col, begin, size;
  Layout(int64_t rows, int64_t cols, int kind) {
    row = kind == 1 ? 1 : kind == 2 ? 2 * cols + 3 : cols;
    col = kind == 1 ? rows + 1 : kind == 2 ? 2 : 1;
    begin = 0;
    if (kind == 3) begin = (rows - 1) * row + (cols - 1) * col, row = -row, col = -col;
    size = std::abs(row) * rows + std::abs(col) * cols + 1;
  }
};

template <class T>
struct Case {
  Shape s;
  Layout la, lb;
  std::vector<T> a, b;
  GemmArgs args;

  template <class Fill>
  Case(Element type, const Shape& shape, int kind, Fill fill)
      : s(shape), la(s.m, s.k, kind), lb(s.k, s.n, (kind + 1) % 4) {
    a.resize(static_cast<size_t>(la.size * s.batch + 1));
    b.resize(static_cast<size_t>(lb.size * s.batch + 1));
    for (T& x : a) x = fill();
    for (T& x : b) x = fill();
    args = {.type = type,
            .m = s.m,
            .n = s.n,
            .k = s.k,
            .a = a.data() + la.begin,
            .b = b.data() + lb.begin,
            .c = nullptr,
            .a_row = la.row,
            .a_col = la.col,
            .b_row = lb.row,
            .b_col = lb.col,
            .batch = s.batch,
            .a_batch = la.size,
            .b_batch = lb.size};
  }
  std::vector<T> run(CpuLevel level = cpu_level()) {
    std::vector<T> c(static_cast<size_t>(s.m * s.n * s.batch));
    args.c = c.data();
    gemm_at(level, args);
    return c;
  }
  /// Calls `check(batch, i, j, index of c)` after `sum(a, b)` for each k.
  template <class Sum, class Check>
  void each(Sum sum, Check check) const {
    for (int64_t t = 0, at = 0; t < s.batch; ++t)
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j, ++at) {
          for (int64_t k = 0; k < s.k; ++k)
            sum(a[static_cast<size_t>(la.begin + t * la.size + i * la.row + k * la.col)],
                b[static_cast<size_t>(lb.begin + t * lb.size + k * lb.row + j * lb.col)]);
          check(static_cast<size_t>(at));
        }
  }
};

std::mt19937 random_bits(7);

float random_float() {
  return static_cast<float>(static_cast<int>(random_bits() % 2001) - 1000) / 512;
}

/// Compares with the same sum in double (or its complex) and a bound for a chain of k additions.
template <class T, class Wide, class Widen>
void check_floats(Element type, double epsilon, Widen widen, T (*fill)()) {
  for (const Shape& shape : kShapes)
    for (int kind = 0; kind < 4; ++kind) {
      Case<T> test(type, shape, kind, fill);
      std::vector<T> c = test.run();
      Wide sum{};
      double size = 0;
      int wrong = 0;
      test.each(
          [&](T a, T b) { sum += widen(a) * widen(b), size += std::abs(widen(a) * widen(b)); },
          [&](size_t at) {
            double bound = epsilon * (std::abs(sum) + 1e-4 * size) + 1e-7 * size;
            wrong += !(std::abs(widen(c[at]) - sum) <= bound);
            sum = {}, size = 0;
          });
      CHECK(wrong == 0);
    }
}

template <class T>
void check_integers(Element type) {
  for (const Shape& shape : kShapes)
    for (int kind = 0; kind < 4; ++kind) {
      Case<T> test(type, shape, kind, [] { return static_cast<T>(random_bits()); });
      std::vector<T> c = test.run();
      uint64_t sum = 0;
      int wrong = 0;
      test.each([&](T a, T b) { sum += static_cast<uint64_t>(a) * static_cast<uint64_t>(b); },
                [&](size_t at) { wrong += c[at] != static_cast<T>(sum), sum = 0; });
      CHECK(wrong == 0);
    }
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void check_same_bits(Element type, T (*fill)()) {
  int before = num_threads();
  std::vector<Shape> shapes(std::begin(kShapes), std::end(kShapes));
  shapes.push_back({260, 140, 1100});
  shapes.push_back({20, 9, 30, 40});
  for (const Shape& shape : shapes)
    for (int kind = 0; kind < 4; ++kind) {
      Case<T> test(type, shape, kind, fill);
      set_num_threads(1);
      std::vector<T> c = test.run();
      for (int threads : {2, 4}) {
        set_num_threads(threads);
        CHECK(same_bits(c, test.run()));
      }
      set_num_threads(2);
      for (CpuLevel level : {CpuLevel::v2, CpuLevel::v3, CpuLevel::v4})
        if (level <= best_cpu_level()) CHECK(same_bits(c, test.run(level)));
    }
  set_num_threads(before);
}

template <class T>
T random_real() {
  return static_cast<T>(random_float());
}
template <class T>
std::complex<T> random_complex() {
  return {static_cast<T>(random_float()), static_cast<T>(random_float())};
}
uint16_t random_float16() { return float_to_float16(random_float()); }
uint16_t random_bfloat16() { return float_to_bfloat16(random_float()); }

}  // namespace

TEST_CASE("gemm: floats against sums in double, all layouts and batches") {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  check_floats<float, double>(
      Element::f32, 1e-6, [](float x) { return double{x}; }, random_real);
  check_floats<double, double>(
      Element::f64, 1e-14, [](double x) { return x; }, random_real);
  check_floats<C64, C128>(
      Element::c64, 1e-6, [](C64 x) { return C128(x); }, random_complex);
  check_floats<C128, C128>(
      Element::c128, 1e-14, [](C128 x) { return x; }, random_complex);
  auto from_half = [](uint16_t x) { return double{float16_to_float(x)}; };
  auto from_bfloat = [](uint16_t x) { return double{bfloat16_to_float(x)}; };
  check_floats<uint16_t, double>(Element::f16, 0x1.01p-11, from_half, random_float16);
  check_floats<uint16_t, double>(Element::bf16, 0x1.01p-8, from_bfloat, random_bfloat16);
}

TEST_CASE("gemm: integers wrap, exactly") {
  check_integers<int8_t>(Element::i8);
  check_integers<uint16_t>(Element::u16);
  check_integers<int16_t>(Element::i16);
  check_integers<int32_t>(Element::i32);
  check_integers<uint64_t>(Element::u64);
  check_integers<int64_t>(Element::i64);
}

TEST_CASE("gemm: booleans are or-and") {
  for (const Shape& shape : kShapes) {
    Case<uint8_t> test(Element::boolean, shape, 0,
                       [] { return static_cast<uint8_t>(random_bits() % 8 == 0); });
    std::vector<uint8_t> c = test.run();
    bool any = false;
    test.each([&](uint8_t a, uint8_t b) { any |= a && b; },
              [&](size_t at) {
                CHECK(c[at] == any);
                any = false;
              });
  }
}

TEST_CASE("gemm: the bits depend on neither threads nor level") {
  check_same_bits<float>(Element::f32, random_real);
  check_same_bits<double>(Element::f64, random_real);
  check_same_bits<std::complex<float>>(Element::c64, random_complex);
  check_same_bits<uint16_t>(Element::bf16, random_bfloat16);
}

TEST_CASE(
    "gemm: one K block is the plain chain of fused multiply-adds, beyond one block of C too") {
  for (Shape shape : {Shape{30, 40, 50}, Shape{1, 100, 900}, Shape{100, 1, 900},
                      Shape{1100, 33, 20}, Shape{40, 3200, 18}, Shape{1100, 3100, 5}})
    for (int kind = 0; kind < 4; ++kind) {
      Case<float> test(Element::f32, shape, kind, random_float);
      std::vector<float> c = test.run();
      float sum = 0;
      int wrong = 0;
      test.each([&](float a, float b) { sum = std::fmaf(a, b, sum); },
                [&](size_t at) { wrong += c[at] != sum, sum = 0; });
      CHECK(wrong == 0);
    }
}

TEST_CASE("gemm: batch offsets and a shared operand") {
  std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8}, b = {1, 1, 1, -1}, c(8);
  GemmArgs args{.m = 2,
                .n = 2,
                .k = 2,
                .a = a.data(),
                .b = b.data(),
                .c = c.data(),
                .a_row = 2,
                .a_col = 1,
                .b_row = 2,
                .b_col = 1,
                .batch = 2,
                .a_batch = 4};
  gemm(args);
  CHECK(c == std::vector<float>{3, -1, 7, -1, 11, -1, 15, -1});
  int64_t a_offsets[] = {4, 0}, b_offsets[] = {0, 0};
  args.a_offsets = a_offsets;
  args.b_offsets = b_offsets;
  gemm(args);
  CHECK(c == std::vector<float>{11, -1, 15, -1, 3, -1, 7, -1});
}
