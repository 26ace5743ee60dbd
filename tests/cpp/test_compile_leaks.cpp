// Traces of functions that are gone leave nothing behind.
#include <doctest/doctest.h>

#include <fstream>
#include <functional>

#include "runtime/memory_use.h"
#include "tenon/tenon.h"

namespace tn {

namespace {

constexpr int kWarm = 1000, kTraces = 2000;

#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeepsFreed = true;  // a sanitizer keeps freed memory to watch it
#else
constexpr bool kKeepsFreed = false;
#endif

/// Pages of memory this process occupies.
int64_t resident() {
  int64_t size = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> size >> pages;
  return pages;
}

/// Pages that traces leave behind when as many came before.
int64_t grown_by(const std::function<void(int)>& trace) {
  for (int i = 0; i < kWarm; ++i) trace(i);
  size_t tensors = active_memory();
  int64_t before = resident();
  for (int i = kWarm; i < kWarm + kTraces; ++i) trace(i);
  CHECK(active_memory() == tensors);
  return resident() - before;
}

}  // namespace

TEST_CASE("2,000 traces of new functions leave memory flat" * doctest::skip(kKeepsFreed)) {
  auto traced = [](int level) {
    return [level](int i) {
      auto f = compile([i](const Tensors& in) { return Tensors{exp(in[0] * (i % 7)) + 1}; }, level);
      f({full({4}, 1.f)});
      f({full({5 + i % 3}, 1.f)});
    };
  };
  CHECK(grown_by(traced(0)) < 256);  // a megabyte; half a kilobyte a trace would show
  CHECK(grown_by(traced(3)) < 256);
  auto gradient = [](int i) {
    auto f = compile(grad([i](const Tensors& in) { return Tensors{sum(exp(in[0]) * (i % 7))}; }));
    f({full({4}, 1.f)});
  };
  CHECK(grown_by(gradient) < 256);
}

}  // namespace tn
