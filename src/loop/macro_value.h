#pragma once
// The value types that make the math templates write LoopIR: numbers of nodes in a pool.
//
// A node becomes a value of the kernel only when a result needs it, and equal nodes are one.
#include <concepts>
#include <type_traits>
#include <unordered_map>

#include "loop/builder.h"

namespace tn::loop {

using MacroNode = int32_t;

/// The expressions of one kernel under expansion. The math templates have no place for it among
/// their arguments, so it is the current one of its thread while it lives.
class MacroPool {
 public:
  explicit MacroPool(Builder& builder);
  ~MacroPool();
  MacroPool(const MacroPool&) = delete;
  MacroPool& operator=(const MacroPool&) = delete;
  static MacroPool& current();

  MacroNode of_value(ValueId id);
  MacroNode constant(const Scalar& value, DType type);
  MacroNode apply(Op op, DType type, MacroNode a, MacroNode b = kNone, MacroNode c = kNone);
  /// words[index], by selects on the index.
  MacroNode table(const double* words, MacroNode index);
  /// The value that computes the node; adds what it needs to the kernel.
  ValueId materialise(MacroNode node);

 private:
  struct Node {
    Op op;
    DType type;
    MacroNode a = kNone, b = kNone, c = kNone;
    Scalar literal = {};
    ValueId value = kNone;
  };
  MacroNode intern(const Node& node);
  MacroNode choose(const double* words, int64_t shift, MacroNode index, int64_t lo, int64_t hi);

  Builder& builder_;
  MacroPool* outer_;
  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, MacroNode> index_;
};

template <class T>
constexpr DType macro_type() {
  if constexpr (std::is_same_v<T, bool>) return DType::b1;
  if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  return DType::f64;
}

/// An element of type T, known by the node that computes it.
template <class T>
struct Macro {
  MacroNode node = kNone;

  static constexpr DType kType = macro_type<T>();
  static constexpr int kBits = 8 * sizeof(T);
  static constexpr bool kReal = std::is_floating_point_v<T>;
  static constexpr bool kWhole = !kReal && !std::is_same_v<T, bool>;
  using Bits = Macro<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  using Mask = Macro<bool>;

  static Macro constant(std::convertible_to<T> auto x) {
    return {MacroPool::current().constant(static_cast<T>(x), kType)};
  }
  static Macro from_bits(Bits i) { return {apply(Op::bitcast, kType, i.node)}; }
  static Macro table(const double* words, Bits i) {
    return {MacroPool::current().table(words, i.node)};
  }

  friend Macro operator+(Macro a, Macro b) { return of(Op::add, a, b); }
  friend Macro operator-(Macro a, Macro b) { return of(Op::sub, a, b); }
  friend Macro operator*(Macro a, Macro b) { return of(Op::mul, a, b); }
  friend Macro operator/(Macro a, Macro b) { return of(Op::div, a, b); }
  friend Macro operator-(Macro a) { return of(Op::neg, a); }
  friend Macro operator&(Macro a, Macro b) { return of(Op::and_, a, b); }
  friend Macro operator|(Macro a, Macro b) { return of(Op::or_, a, b); }
  friend Macro operator^(Macro a, Macro b) { return of(Op::xor_, a, b); }
  friend Macro operator!(Macro a) { return of(Op::not_, a); }
  friend Macro operator<<(Macro a, int n) { return of(Op::shl, a, constant(n)); }
  friend Macro operator>>(Macro a, int n) { return of(Op::shr, a, constant(n)); }
  friend Mask operator<(Macro a, Macro b) { return test(Op::lt, a, b); }
  friend Mask operator<=(Macro a, Macro b) { return test(Op::le, a, b); }
  friend Mask operator>(Macro a, Macro b) { return test(Op::lt, b, a); }
  friend Mask operator>=(Macro a, Macro b) { return test(Op::le, b, a); }
  friend Mask operator==(Macro a, Macro b) { return test(Op::eq, a, b); }
  friend Mask operator!=(Macro a, Macro b) { return test(Op::ne, a, b); }
  friend Macro select(Mask m, Macro a, Macro b) {
    return {apply(Op::select, kType, m.node, a.node, b.node)};
  }
  friend Macro fma(Macro a, Macro b, Macro c) {
    return {apply(Op::fma, kType, a.node, b.node, c.node)};
  }
  friend Macro sqrt(Macro a) { return of(Op::sqrt, a); }
  friend Macro floor(Macro a) { return of(Op::floor, a); }
  friend Macro trunc(Macro a) { return of(Op::trunc, a); }
  friend Macro round_even(Macro a) { return of(Op::round, a); }
  friend Macro abs(Macro a) { return of(Op::abs, a); }

  friend Bits bits(Macro a)
    requires kReal
  {
    return {apply(Op::bitcast, Bits::kType, a.node)};
  }
  // Shifting an unsigned number brings in zeros.
  friend Macro shift_right(Macro a, int n)
    requires kWhole
  {
    constexpr DType kUnsigned = kBits == 32 ? DType::u32 : DType::u64;
    MacroNode count = MacroPool::current().constant(n, kUnsigned);
    MacroNode moved = apply(Op::shr, kUnsigned, apply(Op::bitcast, kUnsigned, a.node), count);
    return {apply(Op::bitcast, kType, moved)};
  }

 private:
  static MacroNode apply(Op op, DType type, MacroNode a, MacroNode b = kNone, MacroNode c = kNone) {
    return MacroPool::current().apply(op, type, a, b, c);
  }
  static Macro of(Op op, Macro a, Macro b = {}) { return {apply(op, kType, a.node, b.node)}; }
  static Mask test(Op op, Macro a, Macro b) { return {apply(op, DType::b1, a.node, b.node)}; }
};

template <class To, class From>
Macro<To> macro_cast(Macro<From> x) {
  return {MacroPool::current().apply(Op::cast, Macro<To>::kType, x.node)};
}
inline Macro<double> widen(Macro<float> x) { return macro_cast<double>(x); }
inline Macro<float> narrow(Macro<double> x) { return macro_cast<float>(x); }

// f64 and i64 meet by the sum that the native primitives use: machines without a conversion are
// common.
inline Macro<int32_t> to_int(Macro<float> x) { return macro_cast<int32_t>(x); }
inline Macro<int64_t> to_int(Macro<double> x) {
  return bits(x + Macro<double>::constant(0x1.8p52)) - Macro<int64_t>::constant(0x4338000000000000);
}
inline Macro<float> to_float(Macro<int32_t> i) { return macro_cast<float>(i); }
inline Macro<double> to_float(Macro<int64_t> i) {
  return Macro<double>::from_bits(i + Macro<int64_t>::constant(0x4338000000000000)) -
         Macro<double>::constant(0x1.8p52);
}

/// The definition of a math op; `y` is used by those of two operands.
Macro<float> expand(Op op, Macro<float> x, Macro<float> y);
/// Its narrow form.
Macro<float> expand_narrow(Op op, Macro<float> x);
Macro<double> expand(Op op, Macro<double> x, Macro<double> y);

}  // namespace tn::loop
