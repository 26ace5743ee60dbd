// The debug log of compilation, and work that is asked to stop.
#include <doctest/doctest.h>

#include "base/debug_log.h"
#include "base/interrupt.h"
#include "tenon/tenon.h"

namespace tn {

namespace {

struct Captured {
  std::vector<std::string> lines = {};
  Captured() {
    set_debug_sink([this](std::string_view line) { lines.emplace_back(line); });
  }
  ~Captured() { set_debug_sink({}); }
  size_t count(std::string_view part) const {
    return static_cast<size_t>(std::ranges::count_if(
        lines, [&](const std::string& l) { return l.find(part) != std::string::npos; }));
  }
};

Tensor curve(const Tensor& x) { return exp(x) * 0.37f + 1; }

}  // namespace

TEST_CASE("the debug log tells traces and plans, and nothing where all is known") {
  Captured log;
  auto f = compile(curve);
  for (int64_t n : {3, 4, 5}) f(full({n}, 1.f));
  CHECK(log.count("[COMPILE] Tracing function: first call") == 1);
  CHECK(log.count("[COMPILE] Recompiling function: argument 0.shape[0] was 3, now 4") == 1);
  CHECK(log.count("argument 0.shape[0] becomes symbolic") == 1);
  CHECK(log.count("[COMPILE] compiled ") == 2);
  CHECK(log.count("[COMPILE] planned anew ") == 1);
  size_t before = log.lines.size();
  f(full({5}, 2.f));
  CHECK(log.lines.size() == before);
}

TEST_CASE("a compilation that is asked to stop does, and can be had later") {
  auto f = compile([](const Tensors& in) { return Tensors{tanh(exp(in[0]) * 0.123f)}; });
  Tensor x = full({4}, 1.f);
  std::atomic<bool> stop = true;
  stop_wanted = &stop;
  CHECK_THROWS_AS(f({x}), Stopped);
  stop = false;
  CHECK(f({x}).size() == 1);
  stop_wanted = nullptr;
}

}  // namespace tn
