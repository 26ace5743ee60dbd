#include "runtime/size_program.h"

#include <algorithm>

namespace tn {
namespace {

constexpr int kMostDepth = 64;

// Division rounds down; a divisor of 0 counts as 1, as for any size.
int64_t apply(SizeStep::Kind kind, int64_t a, int64_t b) {
  int64_t d = std::max<int64_t>(b, 1);
  int64_t rest = a % d < 0 ? a % d + d : a % d;
  switch (kind) {
    case SizeStep::Kind::add:
      return a + b;
    case SizeStep::Kind::mul:
      return a * b;
    case SizeStep::Kind::div:
      return (a - rest) / d;
    case SizeStep::Kind::mod:
      return rest;
    case SizeStep::Kind::min:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

}  // namespace

int64_t SizeProgram::at(std::span<const int64_t> symbols) const {
  int64_t stack[kMostDepth];
  int top = 0;
  for (const SizeStep& step : steps) {
    if (step.kind == SizeStep::Kind::constant) {
      stack[top++] = step.number;
    } else if (step.kind == SizeStep::Kind::symbol) {
      stack[top++] = symbols[static_cast<size_t>(step.number)];
    } else {
      --top;
      stack[top - 1] = apply(step.kind, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

bool SizeProgram::is_sound(size_t symbols) const {
  int depth = 0;
  for (const SizeStep& step : steps) {
    if (step.kind > SizeStep::Kind::max) return false;
    if (step.kind == SizeStep::Kind::symbol && static_cast<uint64_t>(step.number) >= symbols)
      return false;
    depth += step.kind <= SizeStep::Kind::symbol ? 1 : -1;
    if (depth < 1 || depth > kMostDepth) return false;
  }
  return depth == 1;
}

}  // namespace tn
