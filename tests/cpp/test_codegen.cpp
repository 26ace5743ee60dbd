// Generated code gives the interpreter's bits: the forms of kernels, at sizes around every
// boundary.
#include "loop/builder.h"
#include "native_kernels.h"
#include "runtime/threads.h"

using namespace tn;
using namespace tn::loop;

namespace {

std::string with_size(std::string text, std::string_view name, int64_t n) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at))
    text.replace(at, name.size(), std::to_string(n));
  return text;
}

/// On every target, at every size of N.
void check(const std::string& text, std::initializer_list<int64_t> sizes, bool special = false) {
  for (const cpu::Target& target : native_targets())
    for (int64_t n : sizes) {
      CAPTURE(n);
      Kernel kernel = parse_kernel(with_size(text, "N", n));
      bool native = agrees(kernel, target, static_cast<uint64_t>(n), special);
      CHECK((native || target.level == CpuLevel::v2));
    }
}

constexpr std::initializer_list<int64_t> kSizes = {0,  1,  2,   15,   16,   17,   63,
                                                   64, 65, 129, 1000, 4097, 20000};

}  // namespace

TEST_CASE("native: flat kernels") {
  check(R"(kernel f(x: f32[N], y: f32[N]) -> (z: f32[N]) {
    axes p0:N par
    v0 = load x[p0] : f32
    v1 = load y[p0] : f32
    v2 = mul v0, v1 : f32
    v3 = add v2, v0 : f32
    v4 = max v3, v1 : f32
    store z[p0] = v4
  })",
        kSizes, true);
  check(R"(kernel f(x: f32[N]) -> (z: f32[N]) {
    axes p0:N par
    v0 = load x[p0] : f32
    v1 = erf v0 : f32
    v2 = mul v0, v1 : f32
    store z[p0] = v2
  })",
        {1, 17, 1000}, true);
}

TEST_CASE("native: broadcasts and rows") {
  check(R"(kernel f(x: f32[7*N], y: f32[N], w: f32[7]) -> (z: f32[7*N]) {
    axes p0:7 par, p1:N par
    v0 = load x[N*p0 + p1] : f32
    v1 = load y[p1] : f32
    v2 = load w[p0] : f32
    v3 = mul v0, v1 : f32
    v4 = add v3, v2 : f32
    store z[N*p0 + p1] = v4
  })",
        kSizes);
}

TEST_CASE("native: sums and extremes along rows") {
  for (const char* monoid : {"add", "max", "min", "mul"})
    check(std::string(R"(kernel f(x: f32[5*N]) -> (z: f32[5]) {
      axes p0:5 par, r1:N red
      v0 = load x[N*p0 + r1] : f32
      v1 = reduce )") +
              monoid + R"( v0 over r1 : f32
      store z[p0] = v1
    })",
          kSizes, true);
}

TEST_CASE("native: softmax") {
  check(R"(kernel softmax(x: f32[9*N]) -> (z: f32[9*N]) {
    axes p0:9 par, r1:N red
    v0 = load x[N*p0 + r1] : f32
    v1 = reduce max v0 over r1 : f32
    v2 = sub v0, v1 : f32
    v3 = exp v2 : f32
    v4 = reduce add v3 over r1 : f32
    v5 = div v3, v4 : f32
    store z[N*p0 + r1] = v5
  })",
        kSizes);
}

TEST_CASE("native: columns") {
  for (const char* monoid : {"add", "max"})
    check(std::string(R"(kernel f(x: f32[37*N]) -> (z: f32[37]) {
      axes p0:37 par, r1:N red
      v0 = load x[p0 + 37*r1] : f32
      v1 = reduce )") +
              monoid + R"( v0 over r1 : f32
      store z[p0] = v1
    })",
          kSizes, true);
}
