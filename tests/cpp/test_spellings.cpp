// The tables of what ops are in other languages.
#include <doctest/doctest.h>

#include "backend/source/c_call.h"
#include "backend/source/python_call.h"
#include "base/error.h"
#include "ops/op_decls.h"

using namespace tn;

TEST_CASE("spellings read the attributes of their ops") {
  int in_c = 0, in_python = 0;
  for (const OpDef* op : op_table()) {
    CAPTURE(op->name);
    CHECK_NOTHROW(in_c += source::c_spelling(*op) != nullptr);
    CHECK_NOTHROW(in_python += source::python_spelling(*op) != nullptr);
  }
  CHECK(in_c > 0);
  CHECK(in_python > 0);
}

TEST_CASE("a spelling of an op with other attributes is refused") {
  using Table = source::SpelledOp<source::CCall>;
  const Table table[] = {{&ops::sort, {nullptr, &attr_kind<NoAttrs>}}, {&ops::after, {nullptr}}};
  std::span<const Table> tables = table;
  CHECK_THROWS_WITH_AS(source::find_spelling(tables, ops::sort),
                       doctest::Contains("sort has other attributes"), InternalError);
  CHECK(source::find_spelling(tables, ops::after) == &table[1].second);
  CHECK(source::find_spelling(tables, ops::exp) == nullptr);
}
