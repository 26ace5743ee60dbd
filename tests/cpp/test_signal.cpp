// Signals in C++: regions that are computed on their own, and their configuration.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "errors.h"
#include "tenon/tenon.h"

namespace tn {

namespace {

struct Configured {
  explicit Configured(std::string_view yaml) { signal::load_text(yaml); }
  ~Configured() { signal::unload(); }
};

std::vector<HotPathInfo> of_region(std::string_view name) {
  std::vector<HotPathInfo> found = hot_paths();
  std::erase_if(found, [&](const HotPathInfo& path) { return path.region != name; });
  return found;
}

}  // namespace

TEST_CASE("what a file says of signals") {
  Configured file("a: {compile: {threshold: 3}, shard: {axis: 1, workers: [2, 0]}}\nb:\n");
  std::vector<signal::Settings> all = signal::config();
  REQUIRE(all.size() == 2);
  CHECK(all[0].compile == signal::Compile{true, "default", 3});
  CHECK(all[0].shard == signal::Shard{1, {2, 0}, false});
  CHECK((all[1].name == "b" && !all[1].compile && !all[1].shard));
  CHECK(contains(error_in([] { signal::load_text("a:\n  compile: 3\n", "f.yaml"); }),
                 "f.yaml:2: a.compile: needs true, false"));
  CHECK(signal::config().size() == 2);
}

TEST_CASE("a region is a plan of its own, and so are its derivatives") {
  Configured file("cpp_forward: {compile: true, backward: cpp_grads}\ncpp_grads: {compile: true}");
  Tensor w = array({0.5f, 1.f, 2.f});
  require_grad(w);
  Tensor loss = [&] {
    signal::Context region("cpp_forward");
    return sum(sin(w) * w);
  }();
  CHECK(signal::entered().empty());
  backward(loss);
  std::vector<float> values = {0.5f, 1.f, 2.f};
  for (size_t i = 0; i < 3; ++i)
    CHECK(grad(w).data<float>()[i] ==
          doctest::Approx(std::cos(values[i]) * values[i] + std::sin(values[i])));
  REQUIRE(of_region("cpp_forward").size() == 1);
  CHECK(contains(of_region("cpp_forward")[0].sequence, "sin"));
  REQUIRE(of_region("cpp_grads").size() == 1);
  CHECK(contains(of_region("cpp_grads")[0].sequence, "cos"));
}

TEST_CASE("threads in regions of all modes") {
  Configured file(
      "quick: {compile: {mode: reduce-overhead}}\ntuned: {compile: {mode: max-autotune}}\n"
      "later: {compile: {mode: max-autotune, threshold: 3}}\noff: {compile: false}");
  std::vector<std::thread> threads;
  for (const char* name : {"quick", "tuned", "later", "off", "quick", "later"})
    threads.emplace_back([name] {
      for (int i = 0; i < 30; ++i) {
        Tensor x = full({64}, 2.f), y;
        {
          signal::Context region(name);
          y = sqrt(x * x) * 1.5f + mean(x);
        }
        if ((y + 1).to_vector<float>()[63] != 6) FAIL_CHECK("another value");
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(!of_region("quick").empty());
  CHECK(!of_region("tuned").empty());
  CHECK(of_region("off").empty());
}

TEST_CASE("contexts close what was entered in them, on their thread only") {
  {
    signal::Context outer("outer");
    signal::enter("inner");
    std::thread([] { CHECK(signal::entered().empty()); }).join();
    CHECK(signal::entered() == std::vector<std::string>{"outer", "inner"});
    CHECK(contains(error_in([] { signal::leave("outer"); }), "'inner' was entered after 'outer'"));
  }
  CHECK(signal::entered().empty());
  CHECK(contains(error_in([] { signal::leave("outer"); }), "was not entered"));
  CHECK(contains(error_in([] { signal::tensor({}, "x"); }), "null tensor"));
}

TEST_CASE("files of any bytes are read or refused") {
  const std::string seed =
      "a: &x {compile: true, shard: {axis: 0, workers: [0, 1]}}\nb:\n  - 'q'\n  - \"\\x41\"\n"
      "c: *x\nd: |\n  text\n? e\n: {mode: max-autotune}\n";
  uint64_t state = 1;
  auto random = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  const std::string_view signs = ":-?[]{}&*!|>'\"%@,#\n \t~\0\xff\xc3\xa9<";
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed;
    for (size_t edits = 1 + random(6); edits > 0; --edits) {
      size_t at = random(text.size());
      if (random(3) == 0)
        text.erase(at, random(8));
      else
        text.insert(at, std::string(1, signs[random(signs.size())]));
      if (text.empty()) text = "a";
    }
    try {
      signal::load_text(text);
    } catch (const UserError&) {  // what a bad file should give
    }
  }
  signal::unload();
}

}  // namespace tn
