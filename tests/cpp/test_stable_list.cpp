// Lists whose items never move.
#include <doctest/doctest.h>

#include <string>

#include "base/stable_list.h"

using namespace tn;

TEST_CASE("items of a stable list stay where they are, and copies have their own") {
  StableList<std::string> list;
  CHECK(list.size() == 0);
  list.push_back("first");
  const std::string* first = &list[0];
  for (int i = 1; i < 1000; ++i) list.push_back(std::to_string(i));
  CHECK(list.size() == 1000);
  CHECK(&list[0] == first);
  for (size_t i = 1; i < list.size(); ++i) CHECK(list[i] == std::to_string(i));
  StableList<std::string> copy = list, moved = std::move(list);
  CHECK(&moved[0] == first);
  copy.push_back("last");
  CHECK(copy[1000] == "last");
  CHECK(&copy[0] != first);
  CHECK(moved.size() == 1000);
}
