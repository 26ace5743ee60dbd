// Sorting as C. `$` is the element type.
#include "backend/source/c_expressions.h"
#include "backend/source/c_library.h"
#include "backend/source/embedded_text.h"
#include "base/error.h"

namespace tn::source {
namespace {

std::string argsort_of(DType type) {
  DType wide = info(type).compute;
  return c_filled(c_typed(embedded_section("tn_orders.c", "argsort"), type),
                  {{"@WIDE", c_type(wide)},
                   {"@X", c_cast(type, wide, "x")},
                   {"@Y", c_cast(type, wide, "y")},
                   {"@NAN", is_float(type) ? " || (b != b && a == a)" : ""}});
}

}  // namespace

std::vector<CPart> c_orders() {
  std::vector<CPart> parts;
  for (DType type : kCTypes) parts.push_back({argsort_of(type), {format("tn_argsort_{}(", type)}});
  return parts;
}

}  // namespace tn::source
