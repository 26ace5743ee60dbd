// Convolutions against the chain of multiply-adds that convolve.h promises, bit for bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cpu/kernels/convolve.h"
#include "runtime/native.h"
#include "runtime/threads.h"

using namespace tn;

namespace {

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), sizeof(T) * a.size()) == 0;
}

struct Problem {
  const char* what;
  int64_t batch, groups, in, out;  // channels of a group
  ConvAxis axes[3];                // `out` is filled in
  int64_t high[3] = {0, 0, 0};
};

const Problem kProblems[] = {
    {"3x3, padded", 2, 1, 64, 80, {{}, {9, 3, 0, 1, 1}, {7, 3, 0, 1, 1}}, {0, 1, 1}},
    {"few channels, stride 2", 1, 1, 3, 17, {{}, {15, 7, 0, 2, 3}, {13, 7, 0, 2, 3}}, {0, 3, 3}},
    {"pointwise", 3, 1, 33, 5, {{}, {6, 1, 0}, {5, 1, 0}}},
    {"pointwise, stride 2", 1, 1, 40, 65, {{}, {7, 1, 0, 2}, {6, 1, 0, 2}}},
    {"deep", 1, 1, 300, 130, {{}, {7, 3, 0, 1, 1}, {7, 3, 0, 1, 1}}, {0, 1, 1}},
    {"grouped", 2, 3, 4, 6, {{}, {8, 3, 0, 1, 1}, {9, 2, 0, 2, 0}}, {0, 0, 1}},
    {"depthwise", 2, 37, 1, 1, {{}, {8, 3, 0, 1, 1}, {9, 3, 0, 2, 1}}, {0, 1, 1}},
    {"dilated kernel", 1, 1, 5, 7, {{}, {11, 3, 0, 1, 2, 1, 2}, {12, 2, 0, 1, 0, 1, 3}}, {0, 2, 1}},
    {"dilated input", 2, 1, 6, 9, {{}, {5, 3, 0, 1, 1, 2}, {4, 4, 0, 2, 2, 3}}, {0, 2, 1}},
    {"three axes", 1, 1, 2, 3, {{4, 2, 0, 1, 1}, {5, 3, 0, 2, 0}, {6, 2, 0, 1, 0}}, {0, 1, 2}},
    {"cropped", 1, 1, 2, 3, {{}, {7, 2, 0, 1, -1}, {6, 3, 0, 1, 2}}, {0, -1, -2}},
    {"many results", 2, 1, 3, 4, {{}, {26, 3, 0, 1, 1}, {25, 3, 0, 1, 1}}, {0, 1, 1}},
    {"batch of small images", 29, 1, 4, 4, {{}, {2, 2, 0, 1, 1}, {3, 2, 0, 1, 0}}},
};

/// Index of [batch, channel, places] with the channels second or last.
size_t at(bool last, int64_t channels, int64_t places, int64_t n, int64_t c, int64_t place) {
  return static_cast<size_t>(last ? (n * places + place) * channels + c
                                  : (n * channels + c) * places + place);
}

template <class T>
struct Case {
  ConvArgs args;
  std::vector<T> x, w, out;  // channels second
  int64_t in_places = 1, taps = 1, places = 1, in_channels, channels;

  explicit Case(const Problem& p) {
    args.type = sizeof(T) == 4 ? Element::f32 : Element::f64;
    args.batch = p.batch, args.groups = p.groups, args.in_channels = p.in,
    args.out_channels = p.out;
    for (int k = 0; k < 3; ++k) {
      ConvAxis& a = args.axes[k] = p.axes[k];
      int64_t extent = (a.in - 1) * a.input_dilation + 1 + a.low + p.high[k];
      a.out = (extent - (a.taps - 1) * a.kernel_dilation - 1) / a.stride + 1;
      in_places *= a.in, taps *= a.taps, places *= a.out;
    }
    in_channels = p.groups * p.in, channels = p.groups * p.out;
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    x.resize(static_cast<size_t>(p.batch * in_channels * in_places));
    w.resize(static_cast<size_t>(channels * p.in * taps));
    for (T& v : x) v = static_cast<T>(normal(random));
    for (T& v : w) v = static_cast<T>(normal(random));
    out = reference();
  }

  /// Where result y and tap t meet: the place in x, -1 outside, -2 where they do not.
  int64_t meeting(const int64_t* y, int64_t t) const {
    int64_t place = 0, step = 1;
    bool met = true, inside = true;
    for (int k = 2; k >= 0; --k) {
      const ConvAxis& a = args.axes[k];
      int64_t i = y[k] * a.stride + t % a.taps * a.kernel_dilation - a.low;
      t /= a.taps;
      met &= i % a.input_dilation == 0;
      i = i >= 0 ? i / a.input_dilation : -1;
      inside &= i >= 0 && i < a.in;
      place += i * step, step *= a.in;
    }
    return !met ? -2 : inside ? place : -1;
  }

  T element(int64_t n, int64_t o, const int64_t* y) const {
    T sum = 0;
    for (int64_t t = 0; t < taps; ++t) {
      int64_t place = meeting(y, t);
      if (place == -2) continue;
      for (int64_t c = 0; c < args.in_channels; ++c) {
        int64_t from = o / args.out_channels * args.in_channels + c;
        T value = place >= 0 ? x[at(false, in_channels, in_places, n, from, place)] : T(0);
        sum = std::fma(value, w[at(false, args.in_channels, taps, o, c, t)], sum);
      }
    }
    return sum;
  }

  /// The cotangent of one weight, with that of the result.
  T weight(const std::vector<T>& ct, int64_t o, int64_t c, int64_t t) const {
    T sum = 0, block = 0;
    int64_t from = o / args.out_channels * args.in_channels + c;
    for (int64_t i = 0; i < args.batch * places; ++i) {
      if (i > 0 && i % 1024 == 0) sum = i == 1024 ? block : sum + block, block = 0;
      int64_t n = i / places, rest = i % places, y[3];
      for (int k = 2; k >= 0; --k) y[k] = rest % args.axes[k].out, rest /= args.axes[k].out;
      int64_t place = meeting(y, t);
      T value = place >= 0 ? x[at(false, in_channels, in_places, n, from, place)] : T(0);
      block = std::fma(value, ct[at(false, channels, places, n, o, i % places)], block);
    }
    return args.batch * places > 1024 ? sum + block : block;
  }

  std::vector<T> reference() const {
    std::vector<T> result;
    int64_t y[3];
    for (int64_t n = 0; n < args.batch; ++n)
      for (int64_t o = 0; o < channels; ++o)
        for (y[0] = 0; y[0] < args.axes[0].out; ++y[0])
          for (y[1] = 0; y[1] < args.axes[1].out; ++y[1])
            for (y[2] = 0; y[2] < args.axes[2].out; ++y[2]) result.push_back(element(n, o, y));
    return result;
  }

  static std::vector<T> laid_out(const std::vector<T>& from, bool last, int64_t n, int64_t c,
                                 int64_t places) {
    std::vector<T> to(from.size());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < c; ++k)
        for (int64_t p = 0; p < places; ++p)
          to[at(last, c, places, i, k, p)] = from[at(false, c, places, i, k, p)];
    return to;
  }

  bool has_input_dilation() const {
    return std::ranges::any_of(args.axes, [](const ConvAxis& a) { return a.input_dilation > 1; });
  }

  /// Runs with the given layouts and compares the bits.
  void check(CpuLevel level, bool x_last, bool w_last, bool out_last, bool packed) {
    INFO("last: x ", x_last, " w ", w_last, " out ", out_last, ", packed ", packed);
    ConvArgs a = args;
    a.x_last = x_last, a.w_last = w_last, a.out_last = out_last;
    auto given = laid_out(x, x_last, args.batch, in_channels, in_places);
    auto weights = laid_out(w, w_last, channels, args.in_channels, taps);
    auto expected = laid_out(out, out_last, args.batch, channels, places);
    std::vector<T> made(expected.size(), T(-1));
    a.x = given.data(), a.w = weights.data(), a.out = made.data();
    std::vector<T> pack;
    if (packed) {
      pack.resize(static_cast<size_t>(packed_bytes(a)) / sizeof(T));
      pack_weights(a, pack.data());
      std::vector<T> again(weights.size());
      if (unpack_weights(cpu_level(), a, std::as_bytes(std::span(pack)), again.data()))
        CHECK(same_bits(again, weights));
      else
        CHECK(has_input_dilation());
      a.packed_w = pack.data(), a.w = nullptr;
    }
    conv_at(level, a);
    CHECK(same_bits(made, expected));
  }
};

/// The cotangent of the weights in the given layouts; any cotangent of the result will do, so
/// the result itself.
void check_gradient(const Case<float>& c, bool x_last, bool w_last, bool out_last) {
  INFO("last: x ", x_last, " w ", w_last, " ct ", out_last);
  ConvArgs a = c.args;
  a.x_last = x_last, a.w_last = w_last, a.out_last = out_last;
  auto x = Case<float>::laid_out(c.x, x_last, a.batch, c.in_channels, c.in_places);
  auto ct = Case<float>::laid_out(c.out, out_last, a.batch, c.channels, c.places);
  a.x = x.data();
  std::vector<float> made(c.w.size()), expected;
  conv_gradient(a, ct.data(), made.data());
  for (int64_t o = 0; o < c.channels; ++o)
    for (int64_t k = 0; k < a.in_channels; ++k)
      for (int64_t t = 0; t < c.taps; ++t) expected.push_back(c.weight(c.out, o, k, t));
  expected = Case<float>::laid_out(expected, w_last, c.channels, a.in_channels, c.taps);
  CHECK(std::memcmp(made.data(), expected.data(), sizeof(float) * made.size()) == 0);
}

struct Touched {
  std::vector<std::atomic<int>> count;
  int64_t rows, columns;
};

}  // namespace

TEST_CASE_TEMPLATE("a convolution is one chain of multiply-adds in every layout", T, float,
                   double) {
  for (const Problem& p : kProblems) {
    CAPTURE(p.what);
    Case<T> c(p);
    for (int layout = 0; layout < 8; ++layout)
      for (bool packed : {false, true})
        c.check(cpu_level(), layout & 1, layout & 2, layout & 4, packed);
  }
}

TEST_CASE("convolutions have the same bits at every level and with any number of threads") {
  int before = num_threads();
  for (const Problem& p : kProblems) {
    CAPTURE(p.what);
    Case<float> c(p);
    for (auto level : {CpuLevel::v2, CpuLevel::v3, CpuLevel::v4})
      if (level <= best_cpu_level()) c.check(level, true, true, true, false);
    for (int threads : {1, 3}) {
      set_num_threads(threads);
      c.check(cpu_level(), true, false, true, false);
    }
    set_num_threads(before);
  }
}

TEST_CASE("the epilogue of a convolution sees every element once") {
  for (const Problem& p : kProblems)
    for (bool last : {false, true}) {
      INFO(p.what, ", last: ", last);
      Case<float> c(p);
      std::vector<float> made(c.out.size());
      ConvArgs a = c.args;
      a.out_last = last;
      a.x = c.x.data(), a.w = c.w.data(), a.out = made.data();
      Touched touched{std::vector<std::atomic<int>>(c.out.size()), last ? c.places : c.channels,
                      last ? c.channels : c.places};
      a.epilogue.data = &touched;
      a.epilogue.run = [](const void* data, const KernelTile& t) {
        auto& seen = *static_cast<Touched*>(const_cast<void*>(data));
        for (int64_t r = t.row0; r < t.row1; ++r)
          for (int64_t k = t.column0; k < t.column1; ++k)
            ++seen.count[static_cast<size_t>((t.batch * seen.rows + r) * seen.columns + k)];
      };
      conv(a);
      int wrong = 0;
      for (const auto& count : touched.count) wrong += count != 1;
      CHECK(wrong == 0);
    }
}

TEST_CASE("the cotangent of the weights of a convolution is a chain over images and results") {
  for (const Problem& p : kProblems) {
    INFO(p.what);
    bool dilated = false;
    for (const ConvAxis& a : p.axes) dilated |= a.input_dilation != 1;
    if (dilated) continue;  // summed in another order
    Case<float> c(p);
    for (int layout = 0; layout < 8; ++layout)
      check_gradient(c, layout & 1, layout & 2, layout & 4);
  }
}
