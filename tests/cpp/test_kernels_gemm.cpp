#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/kernels/gemm_amx.h"
#include "base/half.h"
#include "runtime/native.h"
#include "runtime/threads.h"

using namespace tn;

namespace {

struct Sizes {
  int64_t m, n, k, batch = 1;
};

const Sizes kShapes[] = {
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
  Sizes s;
  Layout la, lb;
  std::vector<T> a, b;
  GemmArgs args;

  template <class Fill>
  Case(Element type, const Sizes& shape, int kind, Fill fill)
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
  template <class Multiply>
  std::vector<T> run_with(Multiply multiply) {
    std::vector<T> c(static_cast<size_t>(s.m * s.n * s.batch));
    args.c = c.data();
    multiply(args);
    return c;
  }
  std::vector<T> run() { return run_with(gemm); }
  std::vector<T> run(CpuLevel level) {
    return run_with([&](const GemmArgs& g) { gemm_at(level, g); });
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
  for (const Sizes& shape : kShapes)
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
  for (const Sizes& shape : kShapes)
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
  std::vector<Sizes> shapes(std::begin(kShapes), std::end(kShapes));
  shapes.push_back({260, 140, 1100});
  shapes.push_back({20, 9, 30, 40});
  for (const Sizes& shape : shapes)
    for (int kind = 0; kind < 4; ++kind) {
      Case<T> test(type, shape, kind, fill);
      set_num_threads(1);
      std::vector<T> best = test.run(), c = test.run(cpu_level());
      for (int threads : {2, 4, 16}) {
        set_num_threads(threads);
        CHECK(same_bits(best, test.run()));
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
  check_floats<float, double>(Element::f32, 1e-6, [](float x) { return double{x}; }, random_real);
  check_floats<double, double>(Element::f64, 1e-14, [](double x) { return x; }, random_real);
  check_floats<C64, C128>(Element::c64, 1e-6, [](C64 x) { return C128(x); }, random_complex);
  check_floats<C128, C128>(Element::c128, 1e-14, [](C128 x) { return x; }, random_complex);
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
  for (const Sizes& shape : kShapes) {
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
  for (Sizes shape : {Sizes{30, 40, 50}, Sizes{1, 100, 900}, Sizes{100, 1, 900},
                      Sizes{1100, 33, 20}, Sizes{40, 3200, 18}, Sizes{1100, 3100, 5}})
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

namespace {

/// Counts how often each element of C was handed over.
struct Visits {
  Sizes s;
  std::vector<std::atomic<int>> count;
  explicit Visits(const Sizes& shape) : s(shape), count(static_cast<size_t>(s.m * s.n * s.batch)) {}
  static void run(const void* data, const KernelTile& tile) {
    auto& v = *const_cast<Visits*>(static_cast<const Visits*>(data));
    for (int64_t i = tile.row0; i < tile.row1; ++i)
      for (int64_t j = tile.column0; j < tile.column1; ++j)
        ++v.count[static_cast<size_t>((tile.batch * v.s.m + i) * v.s.n + j)];
  }
  bool once() const {
    for (const auto& n : count)
      if (n != 1) return false;
    return true;
  }
};

const Sizes kBlockShapes[] = {{3, 5, 0},       {1, 300, 70},    {200, 1, 65},     {7, 9, 11, 5},
                              {1, 40, 20, 30}, {170, 65, 40},   {260, 140, 1100}, {1100, 70, 5},
                              {90, 3200, 18},  {40, 600, 1601}, {16, 1, 20, 3}};

/// Doubles finished blocks of a strided C in place.
struct Doubling {
  float* c;
  int64_t row, batch;
  static void run(const void* data, const KernelTile& tile) {
    auto& d = *static_cast<const Doubling*>(data);
    for (int64_t i = tile.row0; i < tile.row1; ++i)
      for (int64_t j = tile.column0; j < tile.column1; ++j)
        d.c[tile.batch * d.batch + i * d.row + j] *= 2;
  }
};

template <class T>
void check_every_element_once(Element type, T (*fill)()) {
  for (const Sizes& shape : kBlockShapes)
    for (bool one_right : {false, true}) {
      Case<T> test(type, shape, 0, fill);
      if (one_right) test.args.b_batch = 0, test.args.a_batch = shape.m * test.args.a_row;
      std::vector<T> plain = test.run();
      Visits visits(shape);
      test.args.epilogue = {Visits::run, &visits};
      CHECK(same_bits(plain, test.run()));
      CHECK(visits.once());
    }
}

}  // namespace

TEST_CASE("gemm: the epilogue sees every element once") {
  check_every_element_once<float>(Element::f32, random_real);
  check_every_element_once<std::complex<double>>(Element::c128, random_complex);
  check_every_element_once<uint16_t>(Element::bf16, random_bfloat16);
  check_every_element_once<int32_t>(Element::i32,
                                    [] { return static_cast<int32_t>(random_bits()); });
}

TEST_CASE("gemm: C inside a larger buffer, rewritten by an epilogue, touches nothing else") {
  for (const Sizes& shape : kBlockShapes)
    for (int64_t gap : {int64_t{0}, int64_t{3}}) {
      Case<float> test(Element::f32, shape, 1, random_float);
      std::vector<float> plain = test.run();
      int64_t row = shape.n + gap, batch = shape.m * row + 2 * gap;
      std::vector<float> c(static_cast<size_t>(batch * shape.batch + 1), -7.f), expected = c;
      for (int64_t t = 0, at = 0; t < shape.batch; ++t)
        for (int64_t i = 0; i < shape.m; ++i)
          for (int64_t j = 0; j < shape.n; ++j)
            expected[static_cast<size_t>(t * batch + i * row + j)] =
                2 * plain[static_cast<size_t>(at++)];
      Doubling doubling{c.data(), row, batch};
      test.args.c = c.data(), test.args.c_row = row, test.args.c_batch = batch;
      test.args.epilogue = {Doubling::run, &doubling};
      gemm(test.args);
      CHECK(same_bits(c, expected));
    }
}

TEST_CASE("gemm: unpacking gives back what was packed, at every level") {
  auto check = [](auto sample, Element type) {
    using T = decltype(sample);
    for (CpuLevel level : {CpuLevel::v2, CpuLevel::v3, CpuLevel::v4})
      for (Sizes shape : {Sizes{2, 200, 100}, Sizes{40, 600, 1601}, Sizes{170, 129, 700},
                          Sizes{9, 3301, 70}, Sizes{9, 17, 2000}})
        for (bool turned : {false, true}) {
          if (level > best_cpu_level()) continue;
          std::vector<T> b(static_cast<size_t>(shape.n * shape.k)), again(b.size(), T(-7));
          for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(i);
          GemmArgs args{.type = type, .m = shape.m, .n = shape.n, .k = shape.k, .b = b.data()};
          args.b_row = turned ? 1 : shape.n, args.b_col = turned ? shape.k : 1;
          // Levels have panels of different widths.
          std::vector<T> packed(static_cast<size_t>((shape.n + 64) * shape.k));
          pack_right(args, packed.data(), level);
          auto bytes = std::as_bytes(std::span(packed));
          CHECK(unpack_right(level, args, bytes, again.data()));
          CHECK(same_bits(b, again));
          CHECK(!unpack_right(level, args, bytes.first(b.size() * sizeof(T) - 1), again.data()));
        }
  };
  check(float{}, Element::f32);
  check(double{}, Element::f64);
}

TEST_CASE("gemm: a packed right side gives the same bits") {
  auto check = [](auto sample, Element type, auto fill) {
    for (Sizes shape : {Sizes{2, 200, 100}, Sizes{40, 600, 1601}, Sizes{170, 129, 700},
                        Sizes{260, 3300, 70}, Sizes{3, 90, 300, 4}})
      for (int kind = 0; kind < 4; ++kind) {
        Case<decltype(sample)> test(type, shape, kind, fill);
        test.args.b_batch = 0;
        auto plain = test.run();
        int64_t bytes = packed_bytes(test.args);
        REQUIRE(bytes >= shape.n * shape.k * static_cast<int64_t>(sizeof sample));
        std::vector<double> packed(static_cast<size_t>(bytes) / sizeof(double) + 1, 9.);
        pack_right(test.args, packed.data());
        CHECK(packed.back() == 9.);
        test.args.packed_b = packed.data(), test.args.b = nullptr;
        CHECK(same_bits(plain, test.run()));
      }
  };
  check(float{}, Element::f32, random_real<float>);
  check(double{}, Element::f64, random_real<double>);
  check(uint16_t{}, Element::f16, random_float16);
  check(uint16_t{}, Element::bf16, random_bfloat16);
  CHECK(packed_bytes({.type = Element::f32, .m = 1, .n = 4000, .k = 4000}) == 0);
  CHECK(packed_bytes({.type = Element::i32, .m = 100, .n = 4000, .k = 4000}) == 0);
}

TEST_CASE("gemm: sums of halves without rounding") {
  Case<uint16_t> test(Element::bf16, {30, 50, 900}, 0, random_bfloat16);
  std::vector<uint16_t> rounded = test.run();
  std::vector<float> sums(rounded.size());
  test.args.c = sums.data(), test.args.wide_c = true;
  gemm(test.args);
  for (size_t i = 0; i < sums.size(); ++i) CHECK(float_to_bfloat16(sums[i]) == rounded[i]);
}

TEST_CASE("gemm: AMX, where it is granted, agrees with sums in f32") {
  if (!amx_kernels()) {
    MESSAGE("not granted here");
    return;
  }
  for (Sizes shape : {Sizes{32, 32, 32}, Sizes{17, 50, 70}, Sizes{300, 200, 1100}, Sizes{1, 40, 99},
                      Sizes{64, 96, 800, 3}})
    for (int kind = 0; kind < 4; ++kind) {
      Case<uint16_t> test(Element::bf16, shape, kind, random_bfloat16);
      std::vector<float> tiles(static_cast<size_t>(shape.m * shape.n * shape.batch)),
          chains = tiles;
      test.args.wide_c = true;
      test.args.c = tiles.data();
      gemm(test.args);
      test.args.c = chains.data();
      gemm_at(CpuLevel::v4, test.args);
      float most = 0;
      for (size_t i = 0; i < tiles.size(); ++i)
        most = std::max(most, std::abs(tiles[i] - chains[i]));
      CHECK(most <= 1e-6f * static_cast<float>(shape.k));  // |a·b| < 4
    }
}
