// The map that drops what was least recently used.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/recent.h"

using namespace tn;

static std::vector<std::string> keys(const Recent<std::string, int>& cache) {
  std::vector<std::string> found;
  for (const auto& [key, value] : cache) found.push_back(key);
  return found;
}

TEST_CASE("recent: the least recently used go first") {
  Recent<std::string, int> cache;
  CHECK(cache.add("a", 1));
  CHECK(cache.add("b", 2));
  CHECK(cache.add("c", 3));
  CHECK(cache.find("d") == nullptr);
  REQUIRE(cache.find("a") != nullptr);
  CHECK(*cache.find("a") == 1);
  CHECK(keys(cache) == std::vector<std::string>{"a", "c", "b"});
  CHECK(cache.take_last() == std::pair<std::string, int>("b", 2));
  CHECK(cache.find("b") == nullptr);
  CHECK(cache.size() == 2);
}

TEST_CASE("recent: a key that is there gets another value, and counts as used") {
  Recent<std::string, int> cache;
  cache.add("a", 1);
  cache.add("b", 2);
  CHECK_FALSE(cache.add("a", 3));
  CHECK(cache.size() == 2);
  CHECK(*cache.find("a") == 3);
  CHECK(cache.take_last().first == "b");
  cache.clear();
  CHECK(cache.size() == 0);
  CHECK(cache.find("a") == nullptr);
  CHECK(cache.add("a", 4));
}

TEST_CASE("recent: what is dropped is given back, not destroyed inside") {
  Recent<int, std::shared_ptr<int>> cache;
  std::weak_ptr<int> seen;
  {
    auto value = std::make_shared<int>(7);
    seen = value;
    cache.add(1, std::move(value));
  }
  auto last = cache.take_last();
  CHECK(cache.size() == 0);
  CHECK(*seen.lock() == 7);
}
