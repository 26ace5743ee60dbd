#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/half.h"

using namespace tn;

static_assert(float16_to_float(0x3c00) == 1.0f && float_to_float16(1.0f) == 0x3c00);
static_assert(float_to_float16(65504.0f) == 0x7bff && float_to_float16(65520.0f) == 0x7c00);
static_assert(float_to_float16(65519.0f) == 0x7bff);
static_assert(float16_to_float(0x0001) == 0x1p-24f && float_to_float16(0x1p-24f) == 1);
static_assert(float_to_float16(0x1p-25f) == 0 && float_to_float16(0x1.8p-25f) == 1);
static_assert(float_to_float8_e4m3fn(448.0f) == 0x7e && float_to_float8_e4m3fn(464.0f) == 0x7e);
static_assert(float_to_float8_e4m3fn(465.0f) == 0x7f && float8_e4m3fn_to_float(0x01) == 0x1p-9f);
static_assert(float_to_float8_e5m2(57344.0f) == 0x7b && float_to_float8_e5m2(61440.0f) == 0x7c);
static_assert(float_to_bfloat16(1.0f) == 0x3f80 && bfloat16_to_float(0x3f80) == 1.0f);

namespace {

/// Every pattern survives the trip, and between two neighbours the nearer wins, the even on a tie.
template <class Widen, class Narrow>
void check_format(uint32_t patterns, Widen widen, Narrow narrow) {
  for (uint32_t bits = 0; bits < patterns; ++bits) {
    float value = widen(bits);
    if (value != value) {
      float back = widen(narrow(value));
      CHECK(back != back);
      continue;
    }
    REQUIRE(narrow(value) == bits);
    if (bits + 1 >= patterns / 2) continue;
    float next = widen(bits + 1);
    if (!std::isfinite(next)) continue;
    float middle = static_cast<float>((static_cast<double>(value) + next) / 2);
    uint32_t even = bits % 2 ? bits + 1 : bits;
    REQUIRE(narrow(middle) == even);
    REQUIRE(narrow(std::nextafterf(middle, 0)) == bits);
    REQUIRE(narrow(std::nextafterf(middle, INFINITY)) == bits + 1);
    REQUIRE(narrow(-middle) == (even | patterns / 2));
  }
}

}  // namespace

TEST_CASE("half: every pattern of every format, and the ties between them") {
  check_format(
      65536, [](uint32_t b) { return float16_to_float(static_cast<uint16_t>(b)); },
      [](float f) { return uint32_t{float_to_float16(f)}; });
  check_format(
      65536, [](uint32_t b) { return bfloat16_to_float(static_cast<uint16_t>(b)); },
      [](float f) { return uint32_t{float_to_bfloat16(f)}; });
  check_format(
      256, [](uint32_t b) { return float8_e4m3fn_to_float(static_cast<uint8_t>(b)); },
      [](float f) { return uint32_t{float_to_float8_e4m3fn(f)}; });
  check_format(
      256, [](uint32_t b) { return float8_e5m2_to_float(static_cast<uint8_t>(b)); },
      [](float f) { return uint32_t{float_to_float8_e5m2(f)}; });
}

TEST_CASE("half: NaN is quiet, infinity stays, the sign is kept") {
  float inf = std::numeric_limits<float>::infinity();
  float signalling = std::bit_cast<float>(0x7f800001u);
  CHECK(float_to_float16(inf) == 0x7c00);
  CHECK(float_to_float16(-inf) == 0xfc00);
  CHECK((float_to_float16(signalling) & 0x7e00) == 0x7e00);
  CHECK((float_to_bfloat16(signalling) & 0x7fc0) == 0x7fc0);
  CHECK(std::bit_cast<uint32_t>(float16_to_float(0x7c01)) == 0x7fc02000u);
  CHECK((float_to_float8_e4m3fn(inf) & 0x7f) == 0x7f);
  CHECK(float_to_float8_e5m2(-inf) == 0xfc);
  CHECK(float_to_float16(-0.0f) == 0x8000);
  CHECK(std::signbit(float16_to_float(0x8000)));
}

TEST_CASE("half: doubles round once") {
  // Just above a tie of float16: rounding to float first would lose the excess.
  double above = 1 + 0x1p-11 + 0x1p-40, below = 1 + 3 * 0x1p-11 - 0x1p-40;
  CHECK(float_to_float16(double_to_float_odd(above)) == 0x3c01);
  CHECK(float_to_float16(double_to_float_odd(below)) == 0x3c01);
  CHECK(float_to_float16(double_to_float_odd(-above)) == 0xbc01);
  CHECK(double_to_float_odd(0.5) == 0.5f);
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    double value =
        std::ldexp(static_cast<double>(random()) - 9e18, static_cast<int>(random() % 40) - 70);
    float odd = double_to_float_odd(value);
    CHECK(std::fabs(static_cast<double>(odd) - value) <= std::fabs(value) * 0x1p-23);
  }
  CHECK(float_to_float16(double_to_float_odd(1e300)) == 0x7c00);
  CHECK(double_to_float_odd(std::numeric_limits<double>::quiet_NaN()) !=
        double_to_float_odd(std::numeric_limits<double>::quiet_NaN()));
}
