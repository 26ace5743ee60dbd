// The expressions that stand for math operations, and their way into a kernel.
#include <bit>

#include "base/error.h"
#include "base/hash.h"
#include "loop/macro_value.h"
#include "loop/math_coefficients.h"

namespace tn::loop {
namespace {

thread_local MacroPool* current_pool = nullptr;

uint64_t bits_of(const Scalar& literal) {
  return literal.is_integral() ? static_cast<uint64_t>(literal.integer)
                               : std::bit_cast<uint64_t>(literal.real);
}

/// The multiple of the largest power of two in (lo, hi): cuts of overlapping ranges agree.
int64_t cut(int64_t lo, int64_t hi) {
  for (int64_t step = int64_t{1} << 32; step > 1; step /= 2) {
    int64_t multiple = (hi - 1) & -step;
    if (multiple > lo) return multiple;
  }
  return hi - 1;
}

}  // namespace

MacroPool::MacroPool(Builder& builder) : builder_(builder), outer_(current_pool) {
  current_pool = this;
}

MacroPool::~MacroPool() { current_pool = outer_; }

MacroPool& MacroPool::current() { return *current_pool; }

MacroNode MacroPool::intern(const Node& node) {
  uint64_t hash = combine(static_cast<uint64_t>(node.op), static_cast<uint64_t>(node.type));
  for (MacroNode id : {node.a, node.b, node.c}) hash = combine(hash, static_cast<uint64_t>(id));
  hash = combine(hash, bits_of(node.literal));
  auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Node& other = nodes_[static_cast<size_t>(it->second)];
    bool same = other.op == node.op && other.type == node.type && other.a == node.a &&
                other.b == node.b && other.c == node.c &&
                bits_of(other.literal) == bits_of(node.literal);
    if (same) return it->second;
  }
  nodes_.push_back(node);
  MacroNode id = static_cast<MacroNode>(nodes_.size()) - 1;
  index_.emplace(hash, id);
  return id;
}

// A value of the kernel is a leaf; its number tells it from the others.
MacroNode MacroPool::of_value(ValueId id) {
  DType type = builder_.kernel().values[static_cast<size_t>(id)].type;
  return intern({.op = Op::load, .type = type, .a = id, .value = id});
}

MacroNode MacroPool::constant(const Scalar& value, DType type) {
  return intern({.op = Op::constant, .type = type, .literal = value});
}

MacroNode MacroPool::apply(Op op, DType type, MacroNode a, MacroNode b, MacroNode c) {
  return intern({.op = op, .type = type, .a = a, .b = b, .c = c});
}

MacroNode MacroPool::table(const double* words, MacroNode index) {
  using generic::math::kTwoOverPi;
  invariant(words == kTwoOverPi, "macros: a table of unknown length");
  // Neighbouring words are read at one index, itself at least 0, plus a constant: compared without
  // the constant, they share their comparisons.
  int64_t shift = 0;
  const Node at = nodes_[static_cast<size_t>(index)];
  if (at.op == Op::add) {
    const Node& offset = nodes_[static_cast<size_t>(at.b)];
    if (offset.op == Op::constant) {
      shift = offset.literal.integer;
      index = at.a;
    }
  }
  return choose(words, shift, index, 0, static_cast<int64_t>(std::size(kTwoOverPi)) - shift);
}

// words[shift + index] for an index in [lo, hi).
MacroNode MacroPool::choose(const double* words, int64_t shift, MacroNode index, int64_t lo,
                            int64_t hi) {
  if (hi - lo == 1) return constant(words[shift + lo], DType::f64);
  int64_t middle = cut(lo, hi);
  MacroNode below = apply(Op::lt, DType::b1, index, constant(middle, DType::i64));
  MacroNode low = choose(words, shift, index, lo, middle);
  MacroNode high = choose(words, shift, index, middle, hi);
  return apply(Op::select, DType::f64, below, low, high);
}

ValueId MacroPool::materialise(MacroNode id) {
  const Node node = nodes_[static_cast<size_t>(id)];
  if (node.value != kNone) return node.value;
  auto operand = [&](MacroNode n) { return S{&builder_, materialise(n)}; };
  S result;
  if (node.op == Op::constant) {
    result = builder_.constant(node.literal, node.type);
  } else if (node.op == Op::cast) {
    result = builder_.cast(operand(node.a), node.type);
  } else if (node.op == Op::bitcast) {
    result = builder_.bitcast(operand(node.a), node.type);
  } else if (node.c != kNone) {
    S a = operand(node.a), b = operand(node.b), c = operand(node.c);
    result = builder_.ternary(node.op, a, b, c);
  } else if (node.b != kNone) {
    S a = operand(node.a), b = operand(node.b);
    result = builder_.binary(node.op, a, b);
  } else {
    result = builder_.unary(node.op, operand(node.a));
  }
  nodes_[static_cast<size_t>(id)].value = result.id;
  return result.id;
}

}  // namespace tn::loop
