#include "tenon/size_arithmetic.h"

#include "base/error.h"
#include "ir/offset.h"
#include "ir/sizes.h"

namespace tn {

/// As distances, which may be negative.
static Dim computed(Offset a, char op, Offset b, const std::source_location& at) {
  LocScope scope(at);
  bool divides = op == '/' || op == '%';
  if (divides && !decide_at_least(b, 1))
    fail("size: {} {} {}: a divisor must be at least 1", a, op, b);
  return (op == '+'   ? a + b
          : op == '-' ? a - b
          : op == '*' ? times(a, b)
          : op == '/' ? floor_quotient(a, b)
                      : floor_remainder(a, b))
      .size();
}

Dim compute(Dim a, char op, const SizeTerm& b) { return computed(a, op, b.size, b.place); }
Dim compute(const SizeNumber& a, char op, Dim b) { return computed(a.size, op, b, a.place); }

}  // namespace tn
