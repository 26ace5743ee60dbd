// Hot paths: when sequences are compiled, what is kept, and what is told.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/debug_log.h"
#include "eval/eval.h"
#include "eval/hot_paths.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

using When = HotPathPolicy::When;

HotPathInfo path_of(std::string_view sequence) {
  for (const HotPathInfo& path : hot_paths())
    if (path.sequence == sequence) return path;
  return {};
}

/// Waits until nothing is being compiled.
void settle() {
  auto is_busy = [](const HotPathInfo& path) {
    return path.status == HotPathStatus::queued || path.status == HotPathStatus::compiling;
  };
  for (int i = 0; i < 2000 && std::ranges::any_of(hot_paths(), is_busy); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

HotPathInfo settled(std::string_view sequence) {
  settle();
  return path_of(sequence);
}

struct Policy {
  HotPathPolicy before;
  explicit Policy(When when, int64_t threshold = 10)
      : before(set_hot_path_policy({when, threshold})) {
    clear_plans();
  }
  ~Policy() {
    settle();
    set_hot_path_policy(before);
    clear_plans();
  }
};

std::vector<float> curve(const Tensor& x, float scale) {
  return (tanh(x * scale) + exp(-x)).to_vector<float>();
}
constexpr std::string_view kCurve = "multiply -> tanh -> negative -> exp -> add";

Tensor line(int64_t n) {
  Tensor x = arange(0, n, 1, float32);
  x.eval();
  return x;
}

/// A walk over something pending: what a flush would see.
HotPath& made_path(std::shared_ptr<HotPath>& path, const Tensor& pending) {
  Walk seen;
  std::lock_guard lock(walk_mutex());
  walk({&pending, 1}, seen);
  return *(path = std::make_shared<HotPath>(1, seen));
}

}  // namespace

TEST_CASE("hot paths: nothing is watched unless somebody asked") {
  Policy off(When::never);
  Tensor x = line(8);
  for (int i = 0; i < 20; ++i) curve(x, 2);
  CHECK(path_of(kCurve).count == 0);
}

TEST_CASE("hot paths: after ten runs a sequence is compiled, judged, and keeps its bits") {
  Tensor x = line(1000) / 1000.f;
  x.eval();
  std::vector<float> wanted = curve(x, 2);
  Policy hot(When::hot);
  for (int i = 0; i < 9; ++i) CHECK(curve(x, 2) == wanted);
  CHECK(path_of(kCurve).status == HotPathStatus::cold);
  CHECK(curve(x, 2) == wanted);
  CHECK(settled(kCurve).status == HotPathStatus::trial);
  for (int i = 0; i < 30; ++i) CHECK(curve(x, 2) == wanted);
  HotPathInfo path = path_of(kCurve);
  CHECK((path.status == HotPathStatus::kept || path.status == HotPathStatus::dropped));
  CHECK(path.count == 40);
  CHECK(path.compile_ms > 0);
  CHECK(path.speedup() > 0);
  CHECK(to_text(path).find("Execution count: 40") != std::string::npos);
}

TEST_CASE("hot paths: a number that varies is no other sequence") {
  Policy hot(When::hot, 3);
  Tensor x = line(16);
  for (int i = 0; i < 5; ++i) curve(x, 2.5f + static_cast<float>(i));
  CHECK(path_of(kCurve).count == 5);
}

TEST_CASE("hot paths: what is forced is compiled before its first run") {
  Policy all(When::always);
  Tensor x = line(64) / 64.f;
  x.eval();
  std::vector<float> first = curve(x, 3);
  CHECK(path_of(kCurve).status == HotPathStatus::trial);
  for (int i = 0; i < 5; ++i) CHECK(curve(x, 3) == first);
  CHECK(path_of(kCurve).status == HotPathStatus::kept);
}

TEST_CASE("hot paths: sequences that differ in types only are capped") {
  Policy hot(When::hot, 2);
  for (int64_t n = 1; n <= 20; ++n)
    for (int i = 0; i < 2; ++i) curve(line(n), 2);
  int capped = 0;
  for (const HotPathInfo& path : hot_paths()) capped += path.status == HotPathStatus::capped;
  CHECK(capped >= 4);  // eight are compiled; a full queue leaves some cold
  for (const HotPathInfo& path : hot_paths())
    if (path.status == HotPathStatus::capped) CHECK(!path.reason.empty());
}

TEST_CASE("hot paths: one of too many is compiled when it is run very often") {
  Policy hot(When::hot, 2);
  auto run = [](const Tensor& x, int times) {
    for (int i = 0; i < times; ++i) sin(cos(x)).eval();
    settle();
  };
  Tensor last = line(9);
  for (int64_t n = 1; n < 9; ++n) run(line(n), 2);
  run(last, 3);  // more often than the others: path_of finds it
  CHECK(path_of("cos -> sin").status == HotPathStatus::capped);
  run(last, 197);
  HotPathInfo path = path_of("cos -> sin");
  CHECK(path.status == HotPathStatus::trial);
  CHECK(path.reason.empty());
}

TEST_CASE("hot paths: nothing is capped where everything is to be compiled") {
  Policy all(When::always);
  for (int64_t n = 1; n <= 20; ++n) curve(line(n), 2);
  for (const HotPathInfo& path : hot_paths()) CHECK(path.status == HotPathStatus::trial);
}

TEST_CASE("hot paths: a failure is told once, with its reason, and not tried again") {
  Policy all(When::always);
  std::vector<std::string> lines;
  set_debug_sink([&](std::string_view said) { lines.emplace_back(said); });
  Tensor pending = exp(line(4));
  std::shared_ptr<HotPath> held;
  HotPath& path = made_path(held, pending);
  CHECK(path.is_due(hot_path_policy()));
  Graph open = parse_graph("func @main(%x: f32[s0]) -> f32[s0] {\n%0 = exp %x\nreturn %0\n}");
  path.compile(open, {}, hot_path_policy());  // of no size that is known
  CHECK(path.info().status == HotPathStatus::failed);
  CHECK(!path.info().reason.empty());
  CHECK_FALSE(path.is_due(hot_path_policy()));
  set_debug_sink({});
  auto told = [](const std::string& said) { return said.find("failed") != std::string::npos; };
  CHECK(std::ranges::count_if(lines, told) == 1);
}

TEST_CASE("hot paths: one that is slower is measured in turns, then dropped") {
  Policy all(When::always);
  Tensor pending = exp(line(4));
  std::shared_ptr<HotPath> held;
  HotPath& path = made_path(held, pending);
  Graph graph = parse_graph("func @main(%x: f32[4]) -> f32[4] {\n%0 = exp %x\nreturn %0\n}");
  std::shared_ptr<const Plan> interpreted = compile(graph, {});
  for (int i = 0; i < 10; ++i) path.ran(*path.choose(interpreted, hot_path_policy()).plan, 1e-3);
  CHECK(path.is_due(hot_path_policy()));
  path.compile(graph, {}, hot_path_policy());
  int compiled = 0, runs = 0;
  for (HotPath::Choice next = path.choose(interpreted, hot_path_policy());
       next.measured && runs < 100; ++runs) {
    bool is_compiled = next.plan != interpreted;
    compiled += is_compiled;
    path.ran(*next.plan, is_compiled ? 2e-3 : 1e-3);
    next = path.choose(interpreted, hot_path_policy());
  }
  CHECK(path.info().status == HotPathStatus::dropped);
  CHECK(compiled == 15);
  CHECK(runs >= 24);
  CHECK(path.choose(interpreted, hot_path_policy()).plan == interpreted);
  CHECK(path.info().reason == "0.50x the speed of the interpreter");
}

TEST_CASE("hot paths: only the last runs before the threshold are measured") {
  Policy hot(When::hot, 100);
  Tensor pending = exp(line(4));
  std::shared_ptr<HotPath> held;
  HotPath& path = made_path(held, pending);
  Graph graph = parse_graph("func @main(%x: f32[4]) -> f32[4] {\n%0 = exp %x\nreturn %0\n}");
  std::shared_ptr<const Plan> interpreted = compile(graph, {});
  int measured = 0;
  for (int i = 1; i < 100; ++i) {
    CHECK_FALSE(path.is_due(hot_path_policy()));
    HotPath::Choice next = path.choose(interpreted, hot_path_policy());
    CHECK(next.plan == interpreted);
    if (next.measured) path.ran(*next.plan, 1e-3);
    measured += next.measured;
    CHECK((i > 90 || measured == 0));
  }
  CHECK(measured >= 5);
}

TEST_CASE("hot paths: threads that flush while sequences are compiled") {
  Policy hot(When::hot, 2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      Tensor x = line(32 + t);
      std::vector<float> wanted = curve(x, 2);
      for (int i = 0; i < 50; ++i) {
        if (curve(x, 2) != wanted) FAIL_CHECK("other bits");
        if (i % 10 == 0) hot_paths();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("hot paths: others look at the same tensors while a sequence is compiled") {
  Policy all(When::always);
  std::vector<Tensor> shared = {line(8), line(8), line(8)};
  std::atomic<bool> done = false;
  std::thread other([&] {  // numbers the tensors in another order
    while (!done) (sin(shared[0]) + shared[1] + shared[2]).graph();
  });
  for (int i = 0; i < 40; ++i) {
    clear_plans();
    Tensor y = (shared[0] * 3 - shared[1]) * 2 - shared[2];
    if (y.to_vector<float>()[7] != 21) FAIL_CHECK("another value");
  }
  done = true;
  other.join();
}
