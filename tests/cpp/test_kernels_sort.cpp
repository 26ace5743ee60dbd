#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "backend/cpu/kernels/sort.h"
#include "base/half.h"
#include "plan/host_search.h"
#include "runtime/threads.h"

using namespace tn;

namespace {

const float kNan = std::nanf("");
const float kInf = INFINITY;

std::mt19937_64 random_bits(3);

/// What argsort must give: a stable sort by `less`, NaN last.
template <class T, class Less>
std::vector<int64_t> expected_order(const T* x, int64_t n, bool descending, Less less) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return less(x[a], x[b], descending); });
  return order;
}

template <class T>
bool number_less(T a, T b, bool descending) {
  if (a != a || b != b) return a == a && b != b;
  return descending ? b < a : a < b;
}

template <class T>
T random_value(int64_t i) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (random_bits() % 16) {
      case 0:
        return static_cast<T>(kNan);
      case 1:
        return T{0};
      case 2:
        return -T{0};
      case 3:
        return i % 2 ? static_cast<T>(kInf) : -static_cast<T>(kInf);
      default:
        return static_cast<T>(static_cast<int>(random_bits() % 2000) - 1000) / 8;
    }
  }
  return static_cast<T>(random_bits() >> (random_bits() % 60));
}

template <class T>
void check_sorts(Element type, int64_t rows, int64_t n) {
  std::vector<T> x(static_cast<size_t>(rows * n)), sorted(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = random_value<T>(static_cast<int64_t>(i));
  std::vector<int64_t> order(x.size());
  for (bool descending : {false, true}) {
    sort(type, rows, n, x.data(), sorted.data(), descending);
    argsort(type, rows, n, x.data(), order.data(), descending);
    int wrong_order = 0, wrong_values = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const T* from = x.data() + row * n;
      std::vector<int64_t> right = expected_order(from, n, descending, number_less<T>);
      for (int64_t i = 0; i < n; ++i) {
        int64_t source = right[static_cast<size_t>(i)];
        wrong_order += order[static_cast<size_t>(row * n + i)] != source;
        wrong_values +=
            std::memcmp(&sorted[static_cast<size_t>(row * n + i)], from + source, sizeof(T)) != 0;
      }
    }
    CHECK(wrong_order == 0);
    CHECK(wrong_values == 0);
  }
}

template <class T>
void check_sizes(Element type) {
  for (int64_t n : {0, 1, 2, 17, 255, 300, 5000}) check_sorts<T>(type, 3, n);
}

std::vector<int64_t> ints(const BufferRef& buffer, int64_t count) {
  return {buffer.data<int64_t>(), buffer.data<int64_t>() + count};
}

}  // namespace

TEST_CASE("sort: stable, NaN last, zeros equal, both directions, every type") {
  check_sizes<uint8_t>(Element::u8);
  check_sizes<int8_t>(Element::i8);
  check_sizes<int16_t>(Element::i16);
  check_sizes<uint16_t>(Element::u16);
  check_sizes<int32_t>(Element::i32);
  check_sizes<uint32_t>(Element::u32);
  check_sizes<int64_t>(Element::i64);
  check_sizes<uint64_t>(Element::u64);
  check_sizes<float>(Element::f32);
  check_sizes<double>(Element::f64);
  check_sorts<uint8_t>(Element::boolean, 2, 300);
}

TEST_CASE("sort: one long row, the same for any number of threads") {
  int before = num_threads();
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    check_sorts<float>(Element::f32, 1, 300'003);
    check_sorts<double>(Element::f64, 2, 140'001);
    check_sorts<int32_t>(Element::i32, 1, 1'100'007);
  }
  set_num_threads(before);
}

TEST_CASE("sort: halves order as the floats they stand for") {
  std::vector<uint16_t> x(65536), sorted(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i * 40503u);
  for (Element type : {Element::f16, Element::bf16}) {
    auto widen = type == Element::f16 ? [](uint16_t b) { return float16_to_float(b); }
                                      : [](uint16_t b) { return bfloat16_to_float(b); };
    auto less = [&](uint16_t a, uint16_t b, bool d) { return number_less(widen(a), widen(b), d); };
    for (bool descending : {false, true}) {
      sort(type, 1, 65536, x.data(), sorted.data(), descending);
      std::vector<int64_t> order = expected_order(x.data(), 65536, descending, less);
      int wrong = 0;
      for (size_t i = 0; i < x.size(); ++i) wrong += sorted[i] != x[static_cast<size_t>(order[i])];
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("sort: complex numbers by real, then imaginary part") {
  using C = std::complex<double>;
  std::vector<C> x = {{1, 2}, {kNan, 0}, {1, -1}, {-3, 5}, {1, 2}, {0, kNan}}, sorted(6);
  std::vector<int64_t> order(6);
  argsort(Element::c128, 1, 6, x.data(), order.data());
  CHECK(order == std::vector<int64_t>{3, 2, 0, 4, 1, 5});
  sort(Element::c128, 1, 6, x.data(), sorted.data());
  CHECK(sorted[0] == C(-3, 5));
  std::vector<std::complex<float>> y(x.begin(), x.end());
  argsort(Element::c64, 1, 6, y.data(), order.data(), true);
  CHECK(order == std::vector<int64_t>{0, 4, 2, 3, 1, 5});
}

TEST_CASE("top_k: largest first, equal ones by position, NaN smallest") {
  std::vector<float> x = {1, 5, kNan, 5, -2, 9, 9, 0}, values(4);
  std::vector<int64_t> indices(4);
  top_k(Element::f32, 1, 8, 4, x.data(), values.data(), indices.data());
  CHECK(values == std::vector<float>{9, 9, 5, 5});
  CHECK(indices == std::vector<int64_t>{5, 6, 1, 3});
  int64_t rows = 5, n = 3000, k = 10;
  std::vector<int32_t> big(static_cast<size_t>(rows * n)), top(static_cast<size_t>(rows * k));
  for (int32_t& v : big) v = static_cast<int32_t>(random_bits() % 500);
  std::vector<int64_t> order(big.size()), at(top.size());
  argsort(Element::i32, rows, n, big.data(), order.data(), true);
  top_k(Element::i32, rows, n, k, big.data(), top.data(), at.data());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < k; ++i)
      CHECK(at[static_cast<size_t>(row * k + i)] == order[static_cast<size_t>(row * n + i)]);
}

TEST_CASE("unique: first occurrences, inverse, counts") {
  std::vector<float> x = {3, kNan, 1, -0.0f, 3, 0, kNan};
  Unique u = unique(Element::f32, x.data(), 7);
  REQUIRE(u.count == 5);
  CHECK(ints(u.first, 5) == std::vector<int64_t>{3, 2, 0, 1, 6});
  CHECK(ints(u.counts, 5) == std::vector<int64_t>{2, 1, 2, 1, 1});
  CHECK(ints(u.inverse, 7) == std::vector<int64_t>{2, 3, 1, 0, 2, 0, 4});
  uint64_t top[] = {~uint64_t{0}, 5, ~uint64_t{0}};
  CHECK(unique(Element::u64, top, 3).count == 2);
  std::complex<float> z[] = {{1, 1}, {1, 0}, {1, 1}};
  CHECK(ints(unique(Element::c64, z, 3).inverse, 3) == std::vector<int64_t>{1, 0, 1});
  CHECK(unique(Element::f32, x.data(), 0).count == 0);
}

TEST_CASE("nonzero: count and row-major indices") {
  std::vector<float> x = {0, 1, -0.0f, kNan, 0, 2};
  int64_t shape[] = {2, 3};
  Nonzero found = nonzero(Element::f32, x.data(), shape);
  REQUIRE(found.count == 3);
  CHECK(ints(found.axes[0], 3) == std::vector<int64_t>{0, 1, 1});
  CHECK(ints(found.axes[1], 3) == std::vector<int64_t>{1, 0, 2});
  std::vector<uint8_t> many(300'000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = i % 3 == 0;
  int64_t flat[] = {300'000};
  CHECK(count_nonzero(Element::boolean, many.data(), 300'000) == 100'000);
  found = nonzero(Element::boolean, many.data(), flat);
  REQUIRE(found.count == 100'000);
  int wrong = 0;
  for (int64_t i = 0; i < found.count; ++i) wrong += found.axes[0].data<int64_t>()[i] != 3 * i;
  CHECK(wrong == 0);
  int64_t empty[] = {0, 4};
  CHECK(nonzero(Element::f32, x.data(), empty).count == 0);
}
